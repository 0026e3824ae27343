//! Reads games as nearly all are written without an outline: the text is followed along with pgn-reader's calls, and
//! wherever it is not plainly what was called for, the game is left to the thorough way.

use std::ops::ControlFlow;

use pgn_reader::{RawComment, RawTag, Reader, Skip, Visitor};
use shakmaty::san::{San, SanPlus, Suffix};
use shakmaty::{CastlingSide, Chess, File, Outcome, Position, Rank, Role};

use super::eval::{in_comment, of_search};
use super::outline::{ends_token, is_blank};
use super::player::{Scribe, game_result, read_tag};
use super::san::resolve;
use super::tags::Head;

/// The one game of `text`, which begins at byte `offset` of its file and where `reader` stands; none where anything in it
/// calls for a closer look: then nobody knows where `reader` is.
pub fn follow<'a, S: Scribe>(
    scribe: &S,
    text: &'a [u8],
    offset: u64,
    reader: &mut Reader<&'a [u8]>,
) -> Option<S::Kept> {
    if !text.starts_with(b"[") {
        return None;
    }
    let mut follower = Follower { scribe, text, at: 0, offset };
    let kept = reader.read_game(&mut follower).ok()??;
    kept.filter(|_| follower.rest_is_blank())
}

struct Follower<'a, S> {
    scribe: &'a S,
    text: &'a [u8],
    /// Behind what was called for so far.
    at: usize,
    offset: u64,
}

struct Movetext<P> {
    head: Head,
    page: P,
    position: Chess,
    moved: bool,
    outcome: Option<Outcome>,
}

/// What is kept; none: a closer look.
type Flow<K, T = ()> = ControlFlow<Option<K>, T>;

impl<S: Scribe> Follower<'_, S> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn rest_is_blank(&self) -> bool {
        self.rest().iter().all(|byte| is_blank(*byte) || *byte == b'\n')
    }

    /// Passes over exactly these bytes.
    fn pass(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest().starts_with(bytes).then(|| self.at += bytes.len())
    }

    /// Passes over blanks and the ends of lines that are not empty and go on with moves.
    fn pass_blanks(&mut self) -> Option<()> {
        loop {
            match self.rest() {
                [byte, ..] if is_blank(*byte) => self.at += 1,
                [b'\n', b'\n' | b'\r' | b'%' | b'[', ..] => return None,
                [b'\n', ..] => self.at += 1,
                _ => return Some(()),
            }
        }
    }

    /// Passes over glyphs too.
    fn pass_glyphs(&mut self) -> Option<()> {
        self.pass_blanks()?;
        while let [b'.' | b'!' | b'?', ..] = self.rest() {
            self.at += 1;
            self.pass_blanks()?;
        }
        Some(())
    }

    /// Passes over move numbers and glyphs too.
    fn pass_numbers(&mut self) -> Option<()> {
        loop {
            self.pass_glyphs()?;
            match self.rest() {
                [b'0'..=b'9', ..] => {
                    while matches!(self.rest(), [b'0'..=b'9', ..]) {
                        self.at += 1;
                    }
                    if !matches!(self.rest(), [byte, ..] if *byte == b'.' || is_blank(*byte)) {
                        return None;
                    }
                }
                _ => return Some(()),
            }
        }
    }
}

/// None as a break: the thorough way decides.
fn or_closer<K, T>(found: Option<T>) -> Flow<K, T> {
    found.map_or(ControlFlow::Break(None), ControlFlow::Continue)
}

impl<S: Scribe> Visitor for Follower<'_, S> {
    type Tags = Head;
    type Movetext = Movetext<S::Page>;
    type Output = Option<S::Kept>;

    fn begin_tags(&mut self) -> Flow<S::Kept, Head> {
        ControlFlow::Continue(Head::new(self.offset))
    }

    fn tag(&mut self, head: &mut Head, name: &[u8], value: RawTag<'_>) -> Flow<S::Kept> {
        let value = value.as_bytes();
        let plain = !value.contains(&b'"') && !value.ends_with(b"\\") && name.iter().all(u8::is_ascii_alphanumeric);
        let parts = [&b"["[..], name, b" \"", value, b"\"]"];
        let passed = parts.into_iter().try_for_each(|part| self.pass(part));
        or_closer(passed.filter(|()| plain && !name.is_empty()))?;
        or_closer(self.pass(b"\n").or_else(|| self.pass(b"\r\n")))?;
        or_closer(read_tag(head, name, value).ok())
    }

    fn begin_movetext(&mut self, head: Head) -> Flow<S::Kept, Movetext<S::Page>> {
        // One empty line.
        or_closer(self.pass(b"\n").or_else(|| self.pass(b"\r\n")))?;
        // What stands behind a game that is not wanted shows only when it is read.
        let page = or_closer(self.scribe.open(&head, self.text.len()).continue_value())?;
        let position = head.start.clone();
        ControlFlow::Continue(Movetext { head, page, position, moved: false, outcome: None })
    }

    fn san(&mut self, movetext: &mut Self::Movetext, san: SanPlus) -> Flow<S::Kept> {
        // Behind the result begins another game, for the reader the same one.
        or_closer(self.pass_numbers().filter(|()| movetext.outcome.is_none()))?;
        let length = or_closer(spelt(self.rest(), san))?;
        self.at += length;
        or_closer(self.rest().first().is_none_or(|byte| ends_token(*byte)).then_some(()))?;
        let mv = or_closer(resolve(san.san, &movetext.position))?;
        self.scribe.ply(&mut movetext.page, &movetext.position, mv);
        movetext.position.play_unchecked(mv);
        movetext.moved = true;
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Self::Movetext) -> Flow<S::Kept, Skip> {
        ControlFlow::Break(None)
    }

    fn partial_comment(&mut self, _: &mut Self::Movetext, _: RawComment<'_>) -> Flow<S::Kept> {
        ControlFlow::Break(None)
    }

    fn comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<S::Kept> {
        let comment = comment.as_bytes();
        or_closer(self.pass_numbers().filter(|()| movetext.outcome.is_none()))?;
        or_closer(self.pass(b"{"))?;
        // The reader looked for the same brace, but not only in this text.
        or_closer((self.rest().len() > comment.len()).then(|| self.at += comment.len()))?;
        or_closer(self.pass(b"}"))?;
        if !movetext.moved {
            return ControlFlow::Continue(());
        }
        match in_comment(comment) {
            Some(eval) => self.scribe.eval(&mut movetext.page, or_closer(eval.ok())?),
            None => of_search(comment).into_iter().for_each(|eval| self.scribe.searched(&mut movetext.page, eval)),
        }
        ControlFlow::Continue(())
    }

    fn outcome(&mut self, movetext: &mut Self::Movetext, outcome: Outcome) -> Flow<S::Kept> {
        or_closer(self.pass_glyphs().filter(|()| movetext.outcome.is_none()))?;
        or_closer(self.pass(outcome.as_str().as_bytes()))?;
        movetext.outcome = Some(outcome);
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, movetext: Self::Movetext) -> Self::Output {
        let outcome = movetext.outcome?;
        let result = game_result(movetext.head.outcome.unwrap_or(outcome));
        Some(self.scribe.close(movetext.page, movetext.head, result))
    }
}

/// Length of the move where `text` begins with it, written in the one usual way.
fn spelt(text: &[u8], san: SanPlus) -> Option<usize> {
    let mut at = 0;
    let mut meet = |byte: u8| (text.get(at) == Some(&byte)).then(|| at += 1);
    match san.san {
        San::Normal { role, file, rank, capture, to, promotion } => {
            if role != Role::Pawn {
                meet(role.upper_char() as u8)?;
            }
            file.map_or(Some(()), |file: File| meet(file.char() as u8))?;
            rank.map_or(Some(()), |rank: Rank| meet(rank.char() as u8))?;
            if capture {
                meet(b'x')?;
            }
            meet(to.file().char() as u8)?;
            meet(to.rank().char() as u8)?;
            if let Some(role) = promotion {
                meet(b'=')?;
                meet(role.upper_char() as u8)?;
            }
        }
        San::Castle(side) => {
            let written: &[u8] = if side == CastlingSide::KingSide { b"O-O" } else { b"O-O-O" };
            written.iter().try_for_each(|byte| meet(*byte))?;
        }
        San::Put { .. } | San::Null => return None,
    }
    san.suffix.map_or(Some(()), |suffix: Suffix| meet(suffix.char() as u8))?;
    Some(at)
}
