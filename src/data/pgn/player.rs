//! Plays the moves that pgn-reader finds and tells a [`Scribe`]. Every call it gets must meet the next mark of the
//! outline of the same text: else the reader passed over what stands there.

use std::ops::ControlFlow;
use std::slice;

use pgn_reader::{RawComment, RawTag, Reader, Skip, Visitor};
use shakmaty::san::{San, SanPlus};
use shakmaty::{CastlingSide, Chess, Color, KnownOutcome, Move, Outcome, Position};

use super::eval::{in_comment, of_search};
use super::outline::{Kind, Mark, Outline, Trouble};
use super::san::resolve;
use super::tags::{Head, Speed, is_standard, rating, start_position};
use super::{Eval, SkipReason};
use crate::data::GameResult;

/// Notes what is wanted of games while they are read.
pub trait Scribe: Sync {
    /// Of the game being read.
    type Page;
    /// Of a finished game.
    type Kept: Send;

    /// The tags are read; the whole game has `length` bytes at most. A game that is broken off here is not read on, nor
    /// checked.
    fn open(&self, head: &Head, length: usize) -> ControlFlow<Self::Kept, Self::Page>;
    /// A legal move and the position before it.
    fn ply(&self, page: &mut Self::Page, before: &Chess, mv: Move);
    /// White's view of the position after the newest move.
    fn eval(&self, page: &mut Self::Page, eval: Eval);
    /// The newest move's player's view of the position it was played in, by the player's own search.
    fn searched(&self, _page: &mut Self::Page, _eval: Eval) {}
    /// White's view of the result; none where neither a tag nor the end of the moves tells one.
    fn close(&self, page: Self::Page, head: Head, result: Option<GameResult>) -> Self::Kept;
}

/// The game that `outline` found in `text`, which begins at byte `offset` of its file.
pub fn read<S: Scribe>(scribe: &S, text: &[u8], offset: u64, outline: &Outline) -> Result<S::Kept, Trouble> {
    let readable = outline.readable(text);
    let mut reader = Reader::build(&*readable).set_supported_tag_line_length(outline.longest_tag).finish();
    let mut player = Player { scribe, text, offset, outline, marks: outline.marks.iter() };
    match reader.read_game(&mut player) {
        Ok(Some(game)) => game,
        // Nothing before the trouble; tags and comments without an end are not in the outline.
        Ok(None) | Err(_) => Err(player.unexpected()),
    }
}

struct Player<'a, S> {
    scribe: &'a S,
    text: &'a [u8],
    offset: u64,
    outline: &'a Outline,
    marks: slice::Iter<'a, Mark>,
}

/// From the movetext so far.
struct Movetext<P> {
    head: Head,
    page: P,
    position: Chess,
    /// There was a move that an evaluation can belong to.
    moved: bool,
    /// What a comment longer than the reader's buffer began with.
    comment: Vec<u8>,
    outcome: Outcome,
}

type Flow<K, T = ()> = ControlFlow<Result<K, Trouble>, T>;

fn broken<K, T>(reason: SkipReason, at: usize) -> Flow<K, T> {
    ControlFlow::Break(Err(Trouble { reason, at }))
}

impl<'a, S: Scribe> Player<'a, S> {
    fn meet(&mut self, kind: Kind) -> Flow<S::Kept, &'a Mark> {
        match self.marks.next() {
            Some(mark) if mark.kind == kind => ControlFlow::Continue(mark),
            Some(mark) => broken(SkipReason::Garbage, mark.start()),
            None => ControlFlow::Break(Err(self.unexpected())),
        }
    }

    /// Where the reader found something that the outline lacks.
    fn unexpected(&self) -> Trouble {
        self.outline.trouble.unwrap_or(Trouble { reason: SkipReason::Garbage, at: self.outline.end })
    }

    fn note(&self, movetext: &mut Movetext<S::Page>, comment: &[u8], at: usize) -> Flow<S::Kept> {
        match in_comment(comment).filter(|_| movetext.moved) {
            Some(Ok(eval)) => self.scribe.eval(&mut movetext.page, eval),
            Some(Err(())) => return broken(SkipReason::MalformedEval, at),
            None if movetext.moved => {
                of_search(comment).into_iter().for_each(|eval| self.scribe.searched(&mut movetext.page, eval));
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

impl<S: Scribe> Visitor for Player<'_, S> {
    type Tags = Head;
    type Movetext = Movetext<S::Page>;
    type Output = Result<S::Kept, Trouble>;

    fn begin_tags(&mut self) -> Flow<S::Kept, Head> {
        ControlFlow::Continue(Head::new(self.offset + self.outline.start as u64))
    }

    fn tag(&mut self, head: &mut Head, name: &[u8], value: RawTag<'_>) -> Flow<S::Kept> {
        let at = self.meet(Kind::Tag)?.start();
        match read_tag(head, name.trim_ascii(), value.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => broken(reason, at),
        }
    }

    fn begin_movetext(&mut self, head: Head) -> Flow<S::Kept, Movetext<S::Page>> {
        let page = match self.scribe.open(&head, self.text.len()) {
            ControlFlow::Continue(page) => page,
            ControlFlow::Break(kept) => return ControlFlow::Break(Ok(kept)),
        };
        let position = head.start.clone();
        let (comment, outcome) = (Vec::new(), Outcome::Unknown);
        ControlFlow::Continue(Movetext { head, page, position, moved: false, comment, outcome })
    }

    fn san(&mut self, movetext: &mut Self::Movetext, san: SanPlus) -> Flow<S::Kept> {
        let mark = self.meet(Kind::Word)?;
        if !spells(&self.text[mark.range()], san) {
            return broken(SkipReason::Garbage, mark.start());
        }
        let Some(mv) = resolve(san.san, &movetext.position) else {
            return broken(SkipReason::IllegalMove, mark.start());
        };
        self.scribe.ply(&mut movetext.page, &movetext.position, mv);
        movetext.position.play_unchecked(mv);
        movetext.moved = true;
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Self::Movetext) -> Flow<S::Kept, Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn partial_comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<S::Kept> {
        movetext.comment.extend_from_slice(comment.as_bytes());
        ControlFlow::Continue(())
    }

    fn comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<S::Kept> {
        let at = self.meet(Kind::Comment)?.start();
        if movetext.comment.is_empty() {
            return self.note(movetext, comment.as_bytes(), at);
        }
        let mut whole = std::mem::take(&mut movetext.comment);
        whole.extend_from_slice(comment.as_bytes());
        self.note(movetext, &whole, at)
    }

    fn outcome(&mut self, movetext: &mut Self::Movetext, outcome: Outcome) -> Flow<S::Kept> {
        self.meet(Kind::Result)?;
        movetext.outcome = outcome;
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, movetext: Self::Movetext) -> Self::Output {
        if let Some(passed_over) = self.marks.next() {
            return Err(Trouble { reason: SkipReason::Garbage, at: passed_over.start() });
        }
        if let Some(trouble) = self.outline.trouble {
            return Err(trouble);
        }
        let result = game_result(movetext.head.outcome.unwrap_or(movetext.outcome));
        Ok(self.scribe.close(movetext.page, movetext.head, result))
    }
}

/// Whether `word` is this move and nothing else: the reader goes on in the middle of a word it stumbled over.
fn spells(word: &[u8], san: SanPlus) -> bool {
    if !word.starts_with(b"0") {
        return SanPlus::from_ascii(word).is_ok_and(|spelt| spelt == san);
    }
    let body = word.len() - word.iter().rev().take_while(|byte| matches!(byte, b'+' | b'#')).count();
    match &word[..body] {
        b"0-0" => san.san == San::Castle(CastlingSide::KingSide),
        b"0-0-0" => san.san == San::Castle(CastlingSide::QueenSide),
        _ => false,
    }
}

/// Notes what a tag says.
pub(super) fn read_tag(head: &mut Head, name: &[u8], value: &[u8]) -> Result<(), SkipReason> {
    match name {
        b"FEN" => head.start = start_position(value).ok_or(SkipReason::StartPosition)?,
        b"Variant" if !is_standard(value) => return Err(SkipReason::Variant),
        b"Result" => head.outcome = Outcome::from_ascii(value).ok(),
        b"WhiteElo" => head.ratings.white = rating(value),
        b"BlackElo" => head.ratings.black = rating(value),
        b"TimeControl" => head.speed = Speed::of(value),
        _ => {}
    }
    Ok(())
}

/// White's view.
pub(super) fn game_result(outcome: Outcome) -> Option<GameResult> {
    match outcome {
        Outcome::Known(KnownOutcome::Decisive { winner: Color::White }) => Some(GameResult::Win),
        Outcome::Known(KnownOutcome::Decisive { winner: Color::Black }) => Some(GameResult::Loss),
        Outcome::Known(KnownOutcome::Draw) => Some(GameResult::Draw),
        Outcome::Unknown => None,
    }
}
