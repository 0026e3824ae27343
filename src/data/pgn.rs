//! One game's PGN text to moves. Stricter than pgn-reader, which reads it: a token that is no move, number, comment or
//! result makes the game broken instead of being passed over, since what follows it can no longer be trusted.

use std::ops::ControlFlow;
use std::slice;

use pgn_reader::{RawComment, RawTag, Reader, Skip, Visitor};
use serde::{Deserialize, Serialize};
use shakmaty::fen::Fen;
use shakmaty::san::{San, SanPlus};
use shakmaty::{CastlingMode, CastlingSide, Chess, Color, KnownOutcome, Move, Outcome, Position};

use super::GameResult;
use super::outline::{Kind, Mark, Outline, Outliner, Trouble};
use crate::units::{Centipawn, Ply};

/// A game read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    /// Where its text begins, in bytes of the decompressed file.
    pub offset: u64,
    pub start: Chess,
    pub moves: Vec<PlayedMove>,
    /// White's view; none for `*` or where there is no `Result` tag and no result at the end of the moves.
    pub result: Option<GameResult>,
}

impl Game {
    /// The ply of the first move: 0, or what the move number of the starting position says.
    #[must_use]
    pub fn first_ply(&self) -> Ply {
        let plies = (self.start.fullmoves().get() - 1).saturating_mul(2);
        Ply(plies.saturating_add(u32::from(self.start.turn().is_black())).min(u32::from(u16::MAX)) as u16)
    }
}

/// A move of the game and what its comment says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PlayedMove {
    pub mv: Move,
    /// White's view, of the position after the move.
    pub eval: Option<Eval>,
}

/// An evaluation, from one side's view.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Eval {
    Score(Centipawn),
    /// Mate in so many moves; negative: getting mated.
    Mate(i32),
}

impl Eval {
    /// The largest score that is not a mate; larger ones are cut to it.
    pub const LARGEST: i32 = 30_000;
    /// Mate in n moves is ±(`MATE` − 2·n), n at most 999.
    pub const MATE: i32 = 32_000;

    /// From the other side.
    #[must_use]
    pub const fn reversed(self) -> Eval {
        match self {
            Eval::Score(Centipawn(score)) => Eval::Score(Centipawn(-score)),
            Eval::Mate(moves) => Eval::Mate(-moves),
        }
    }

    /// As one number that orders mates beyond all scores and fits a record.
    #[must_use]
    pub fn centipawns(self) -> i16 {
        match self {
            Eval::Score(Centipawn(score)) => score.clamp(-Self::LARGEST, Self::LARGEST) as i16,
            Eval::Mate(moves) => (moves.signum() * (Self::MATE - 2 * moves.saturating_abs().min(999))) as i16,
        }
    }

    /// What stands in `[%eval …]`: pawns, or `#` and moves to mate; a depth may follow after a comma.
    fn parse(text: &[u8]) -> Option<Eval> {
        let text = std::str::from_utf8(text).ok()?;
        let value = text.split(',').next()?.trim();
        if let Some(moves) = value.strip_prefix('#') {
            return moves.parse().ok().filter(|moves| *moves != 0).map(Eval::Mate);
        }
        let pawns: f64 = value.parse().ok()?;
        let score = (pawns * 100.0).round();
        (score.abs() < 1e9).then_some(Eval::Score(Centipawn(score as i32)))
    }
}

/// Why a game was passed over.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Chess960 or another variant.
    Variant,
    /// The `FEN` tag holds no legal standard position.
    StartPosition,
    /// A line that begins like a tag and is none.
    MalformedTag,
    /// Something that is no move, number, comment or result.
    Garbage,
    IllegalMove,
    MalformedEval,
    /// The text ends before the game's result.
    Unfinished,
}

/// A game that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedGame {
    pub reason: SkipReason,
    /// Where the game begins and where the trouble is, in bytes of the decompressed file.
    pub game_offset: u64,
    pub offset: u64,
    /// The offending text, shortened.
    pub text: String,
}

/// The games in one text: usually one; more where games without tags follow each other.
pub fn parse(text: &[u8], offset: u64, out: &mut Vec<Result<Game, SkippedGame>>) {
    let mut outliner = Outliner::new(text);
    let mut next = outliner.next_text(0);
    while let Some(start) = next {
        let outline = outliner.outline(start);
        let game = read(text, offset, &outline);
        next = match &game {
            Ok(_) => outliner.next_text(outline.end),
            // What follows its tags belongs to it.
            Err(_) if text[start] == b'[' => None,
            Err(_) => outliner.next_game(&outline),
        };
        out.push(game.map_err(|trouble| SkippedGame {
            reason: trouble.reason,
            game_offset: offset + start as u64,
            offset: offset + trouble.at as u64,
            text: excerpt(&text[trouble.at..]),
        }));
    }
}

fn excerpt(text: &[u8]) -> String {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len()).min(24);
    String::from_utf8_lossy(&text[..end]).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn read(text: &[u8], offset: u64, outline: &Outline) -> Result<Game, Trouble> {
    let readable = outline.readable(text);
    let mut reader = Reader::build(&*readable).set_supported_tag_line_length(outline.longest_tag).finish();
    let mut player = Player { text, offset, outline, marks: outline.marks.iter() };
    match reader.read_game(&mut player) {
        Ok(Some(game)) => game,
        // Nothing before the trouble; tags and comments without an end are not in the outline.
        Ok(None) | Err(_) => Err(player.unexpected()),
    }
}

/// Plays the moves that pgn-reader finds. Every call it gets must meet the next mark of the outline: else the reader
/// passed over what stands there.
struct Player<'a> {
    text: &'a [u8],
    offset: u64,
    outline: &'a Outline,
    marks: slice::Iter<'a, Mark>,
}

/// From the tags.
struct Tags {
    start: Chess,
    /// None where there is no (known) `Result` tag.
    outcome: Option<Outcome>,
}

/// From the movetext so far.
struct Movetext {
    tags: Tags,
    position: Chess,
    moves: Vec<PlayedMove>,
    /// What a comment longer than the reader's buffer began with.
    comment: Vec<u8>,
    outcome: Outcome,
}

type Flow<T = ()> = ControlFlow<Result<Game, Trouble>, T>;

fn broken<T>(reason: SkipReason, at: usize) -> Flow<T> {
    ControlFlow::Break(Err(Trouble { reason, at }))
}

impl<'a> Player<'a> {
    fn meet(&mut self, kind: Kind) -> Flow<&'a Mark> {
        match self.marks.next() {
            Some(mark) if mark.kind == kind => ControlFlow::Continue(mark),
            Some(mark) => broken(SkipReason::Garbage, mark.start),
            None => ControlFlow::Break(Err(self.unexpected())),
        }
    }

    /// Where the reader found something that the outline lacks.
    fn unexpected(&self) -> Trouble {
        self.outline.trouble.unwrap_or(Trouble { reason: SkipReason::Garbage, at: self.outline.end })
    }
}

impl Visitor for Player<'_> {
    type Tags = Tags;
    type Movetext = Movetext;
    type Output = Result<Game, Trouble>;

    fn begin_tags(&mut self) -> Flow<Tags> {
        ControlFlow::Continue(Tags { start: Chess::default(), outcome: None })
    }

    fn tag(&mut self, tags: &mut Tags, name: &[u8], value: RawTag<'_>) -> Flow {
        let at = self.meet(Kind::Tag)?.start;
        match name.trim_ascii() {
            b"FEN" => match start_position(value.as_bytes()) {
                Some(start) => tags.start = start,
                None => return broken(SkipReason::StartPosition, at),
            },
            b"Variant" if !is_standard(value.as_bytes()) => return broken(SkipReason::Variant, at),
            b"Result" => tags.outcome = Outcome::from_ascii(value.as_bytes()).ok(),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Tags) -> Flow<Movetext> {
        let position = tags.start.clone();
        let moves = Vec::with_capacity(self.outline.words);
        ControlFlow::Continue(Movetext { tags, position, moves, comment: Vec::new(), outcome: Outcome::Unknown })
    }

    fn san(&mut self, movetext: &mut Movetext, san: SanPlus) -> Flow {
        let mark = self.meet(Kind::Word)?;
        if !spells(&self.text[mark.start..mark.end], san) {
            return broken(SkipReason::Garbage, mark.start);
        }
        let Ok(mv) = san.san.to_move(&movetext.position) else {
            return broken(SkipReason::IllegalMove, mark.start);
        };
        movetext.position.play_unchecked(mv);
        movetext.moves.push(PlayedMove { mv, eval: None });
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Movetext) -> Flow<Skip> {
        ControlFlow::Continue(Skip(true))
    }

    fn partial_comment(&mut self, movetext: &mut Movetext, comment: RawComment<'_>) -> Flow {
        movetext.comment.extend_from_slice(comment.as_bytes());
        ControlFlow::Continue(())
    }

    fn comment(&mut self, movetext: &mut Movetext, comment: RawComment<'_>) -> Flow {
        let at = self.meet(Kind::Comment)?.start;
        movetext.comment.extend_from_slice(comment.as_bytes());
        if let (Some(text), Some(played)) = (eval_text(&movetext.comment), movetext.moves.last_mut()) {
            match Eval::parse(text) {
                Some(eval) => played.eval = Some(eval),
                None => return broken(SkipReason::MalformedEval, at),
            }
        }
        movetext.comment.clear();
        ControlFlow::Continue(())
    }

    fn outcome(&mut self, movetext: &mut Movetext, outcome: Outcome) -> Flow {
        self.meet(Kind::Result)?;
        movetext.outcome = outcome;
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, movetext: Movetext) -> Result<Game, Trouble> {
        if let Some(passed_over) = self.marks.next() {
            return Err(Trouble { reason: SkipReason::Garbage, at: passed_over.start });
        }
        if let Some(trouble) = self.outline.trouble {
            return Err(trouble);
        }
        let Movetext { tags, moves, outcome, .. } = movetext;
        let offset = self.offset + self.outline.start as u64;
        Ok(Game { offset, start: tags.start, moves, result: game_result(tags.outcome.unwrap_or(outcome)) })
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

/// White's view.
fn game_result(outcome: Outcome) -> Option<GameResult> {
    match outcome {
        Outcome::Known(KnownOutcome::Decisive { winner: Color::White }) => Some(GameResult::Win),
        Outcome::Known(KnownOutcome::Decisive { winner: Color::Black }) => Some(GameResult::Loss),
        Outcome::Known(KnownOutcome::Draw) => Some(GameResult::Draw),
        Outcome::Unknown => None,
    }
}

fn is_standard(variant: &[u8]) -> bool {
    [&b"standard"[..], b"chess", b"normal", b"from position", b"?", b""]
        .iter()
        .any(|name| variant.trim_ascii().eq_ignore_ascii_case(name))
}

fn start_position(fen: &[u8]) -> Option<Chess> {
    let fen = Fen::from_ascii(fen.trim_ascii()).ok()?;
    let position: Chess = match fen.into_position(CastlingMode::Standard) {
        Ok(position) => position,
        Err(error) => error.ignore_invalid_ep_square().ok()?,
    };
    (position.board().occupied().count() <= 32).then_some(position)
}

/// What stands behind `[%eval` in a comment.
fn eval_text(comment: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"[%eval ";
    let start = memchr::memmem::find(comment, MARK)? + MARK.len();
    let rest = &comment[start..];
    Some(&rest[..memchr::memchr(b']', rest).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests;
