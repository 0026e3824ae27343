//! Reads games in the usual notation without tokenizing them first. It follows the text alongside pgn-reader's calls
//! and gives up on anything unusual, which is then left to the token reader.

use std::ops::ControlFlow;

use pgn_reader::{RawComment, RawTag, Reader, Skip, Visitor};
use shakmaty::san::{San, SanPlus, Suffix};
use shakmaty::{CastlingSide, File, Outcome, Rank, Role};

use super::GameVisitor;
use super::eval_options::EvalRules;
use super::open_game::{OpenGame, ReadGame};
use super::san::resolve;
use super::splitter::GameText;
use super::tags::Tags;
use super::tokenizer::{ends_token, is_blank, result_of};

/// Reads the one game of `text`, at whose beginning `reader` stands. `None` if the text is unusual in any way: then
/// `reader` stands at an unknown position.
pub fn read<'a, V: GameVisitor>(
    visitor: &V,
    rules: EvalRules,
    text: GameText<'a>,
    reader: &mut Reader<&'a [u8]>,
) -> Option<ReadGame<V::Output>> {
    let offset = text.offset;
    let text = text.bytes();
    if !text.starts_with(b"[") {
        return None;
    }
    let mut fast = FastReader { visitor, rules, text, at: 0, offset };
    let output = reader.read_game(&mut fast).ok()??;
    output.filter(|_| fast.rest_is_blank())
}

struct FastReader<'a, V> {
    visitor: &'a V,
    rules: EvalRules,
    text: &'a [u8],
    /// The end of the text matched so far.
    at: usize,
    offset: u64,
}

struct Movetext<S> {
    game: OpenGame<S>,
    outcome: Option<Outcome>,
}

/// Breaks with none to give up.
type Flow<O, T = ()> = ControlFlow<Option<ReadGame<O>>, T>;

impl<V: GameVisitor> FastReader<'_, V> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn rest_is_blank(&self) -> bool {
        self.rest().iter().all(|byte| is_blank(*byte) || *byte == b'\n')
    }

    /// Skips exactly these bytes.
    fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest().starts_with(bytes).then(|| self.at += bytes.len())
    }

    /// Skips blanks and line ends; `None` at an empty line and before `%` and `[`.
    fn skip_blanks(&mut self) -> Option<()> {
        loop {
            match self.rest() {
                [byte, ..] if is_blank(*byte) => self.at += 1,
                [b'\n', b'\n' | b'\r' | b'%' | b'[', ..] => return None,
                [b'\n', ..] => self.at += 1,
                _ => return Some(()),
            }
        }
    }

    /// Skips blanks and glyphs.
    fn skip_glyphs(&mut self) -> Option<()> {
        self.skip_blanks()?;
        while let [b'.' | b'!' | b'?', ..] = self.rest() {
            self.at += 1;
            self.skip_blanks()?;
        }
        Some(())
    }

    /// Skips blanks, glyphs and move numbers.
    fn skip_numbers(&mut self) -> Option<()> {
        loop {
            self.skip_glyphs()?;
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

fn or_give_up<O, T>(value: Option<T>) -> Flow<O, T> {
    value.map_or(ControlFlow::Break(None), ControlFlow::Continue)
}

impl<V: GameVisitor> Visitor for FastReader<'_, V> {
    type Tags = Tags;
    type Movetext = Movetext<V::State>;
    type Output = Option<ReadGame<V::Output>>;

    fn begin_tags(&mut self) -> Flow<V::Output, Tags> {
        ControlFlow::Continue(Tags::new(self.offset))
    }

    fn tag(&mut self, tags: &mut Tags, name: &[u8], value: RawTag<'_>) -> Flow<V::Output> {
        let value = value.as_bytes();
        let plain = !value.contains(&b'"') && !value.ends_with(b"\\") && name.iter().all(u8::is_ascii_alphanumeric);
        let tag = [&b"["[..], name, b" \"", value, b"\"]"];
        let matched = tag.into_iter().try_for_each(|bytes| self.expect(bytes));
        or_give_up(matched.filter(|()| plain && !name.is_empty()))?;
        or_give_up(self.expect(b"\n").or_else(|| self.expect(b"\r\n")))?;
        tags.take(name, value, self.at);
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, tags: Tags) -> Flow<V::Output, Movetext<V::State>> {
        // One empty line.
        or_give_up(self.expect(b"\n").or_else(|| self.expect(b"\r\n")).filter(|()| tags.problem().is_none()))?;
        // A visitor that breaks here leaves the rest of the text unread, and more games may follow in it.
        let game = or_give_up(OpenGame::begin(self.visitor, tags, self.text.len()).continue_value())?;
        ControlFlow::Continue(Movetext { game, outcome: None })
    }

    fn san(&mut self, movetext: &mut Self::Movetext, san: SanPlus) -> Flow<V::Output> {
        // A move after the result belongs to another game, which pgn-reader takes for the same one.
        or_give_up(self.skip_numbers().filter(|()| movetext.outcome.is_none()))?;
        let length = or_give_up(move_length(self.rest(), san))?;
        self.at += length;
        or_give_up(self.rest().first().is_none_or(|byte| ends_token(*byte)).then_some(()))?;
        let mv = or_give_up(resolve(san.san, &movetext.game.position))?;
        movetext.game.play(self.visitor, mv);
        ControlFlow::Continue(())
    }

    fn begin_variation(&mut self, _: &mut Self::Movetext) -> Flow<V::Output, Skip> {
        ControlFlow::Break(None)
    }

    fn partial_comment(&mut self, _: &mut Self::Movetext, _: RawComment<'_>) -> Flow<V::Output> {
        ControlFlow::Break(None)
    }

    fn comment(&mut self, movetext: &mut Self::Movetext, comment: RawComment<'_>) -> Flow<V::Output> {
        let comment = comment.as_bytes();
        or_give_up(self.skip_numbers())?;
        or_give_up(self.expect(b"{"))?;
        // pgn-reader looked for the brace beyond the end of this text, too.
        or_give_up((self.rest().len() > comment.len()).then(|| self.at += comment.len()))?;
        or_give_up(self.expect(b"}"))?;
        // After the result a comment belongs to no move.
        if movetext.outcome.is_none() {
            movetext.game.comment(self.visitor, self.rules, comment);
        }
        ControlFlow::Continue(())
    }

    fn outcome(&mut self, movetext: &mut Self::Movetext, outcome: Outcome) -> Flow<V::Output> {
        or_give_up(self.skip_glyphs().filter(|()| movetext.outcome.is_none()))?;
        or_give_up(self.expect(outcome.as_str().as_bytes()))?;
        movetext.outcome = Some(outcome);
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, movetext: Self::Movetext) -> Self::Output {
        let result = result_of(movetext.outcome?.as_str().as_bytes());
        let is_clear = !movetext.game.contradicts(result);
        is_clear.then(|| movetext.game.end(self.visitor, result))
    }
}

/// The length of the move if `text` begins with it in the usual notation.
fn move_length(text: &[u8], san: SanPlus) -> Option<usize> {
    let mut at = 0;
    let mut expect = |byte: u8| (text.get(at) == Some(&byte)).then(|| at += 1);
    match san.san {
        San::Normal { role, file, rank, capture, to, promotion } => {
            if role != Role::Pawn {
                expect(role.upper_char() as u8)?;
            }
            file.map_or(Some(()), |file: File| expect(file.char() as u8))?;
            rank.map_or(Some(()), |rank: Rank| expect(rank.char() as u8))?;
            if capture {
                expect(b'x')?;
            }
            expect(to.file().char() as u8)?;
            expect(to.rank().char() as u8)?;
            if let Some(role) = promotion {
                expect(b'=')?;
                expect(role.upper_char() as u8)?;
            }
        }
        San::Castle(side) => {
            let written: &[u8] = if side == CastlingSide::KingSide { b"O-O" } else { b"O-O-O" };
            written.iter().try_for_each(|byte| expect(*byte))?;
        }
        San::Put { .. } | San::Null => return None,
    }
    san.suffix.map_or(Some(()), |suffix: Suffix| expect(suffix.char() as u8))?;
    Some(at)
}
