//! A game while it is read. Both readers find its parts and hand them to this one place, which knows their meaning.

use std::ops::ControlFlow;

use shakmaty::{Chess, Move, Position};

use super::comment_score::{CommentScore, DecimalNumber, Fraction, WrittenScore, comment_score};
use super::eval_options::{EvalRules, EvalView, WholeNumbers};
use super::notes::PgnNotes;
use super::tags::Tags;
use super::{Eval, GameHeader, GameVisitor};
use crate::data::GameResult;
use crate::text::excerpt;
use crate::units::Centipawn;

/// Bytes of a comment that a message quotes.
const QUOTED_BYTES: usize = 60;

/// A game whose tags are read.
pub struct OpenGame<S> {
    header: GameHeader,
    state: S,
    pub position: Chess,
    /// Whether a move was played.
    moved: bool,
    notes: PgnNotes,
}

/// A game that was read to its end, or as far as its visitor wants it.
pub struct ReadGame<O> {
    pub output: O,
    pub notes: PgnNotes,
}

impl<S> OpenGame<S> {
    /// Begins a game of at most `length` bytes; breaks when the visitor does not want its moves.
    pub fn begin<V: GameVisitor<State = S>>(
        visitor: &V,
        tags: Tags,
        length: usize,
    ) -> ControlFlow<ReadGame<V::Output>, OpenGame<S>> {
        let notes = PgnNotes { malformed_tags: tags.malformed, ..PgnNotes::default() };
        let header = tags.header;
        match visitor.begin_game(&header, length) {
            ControlFlow::Continue(state) => {
                let position = header.start.clone();
                ControlFlow::Continue(OpenGame { header, state, position, moved: false, notes })
            }
            ControlFlow::Break(output) => ControlFlow::Break(ReadGame { output, notes }),
        }
    }

    /// Plays a legal move.
    pub fn play<V: GameVisitor<State = S>>(&mut self, visitor: &V, mv: Move) {
        visitor.visit_move(&mut self.state, &self.position, mv);
        self.position.play_unchecked(mv);
        self.moved = true;
    }

    /// Reads the score in a comment, if there is one. Before the first move only `[%eval …]` is one: the start
    /// position's.
    #[inline]
    pub fn comment<V: GameVisitor<State = S>>(&mut self, visitor: &V, rules: EvalRules, comment: &[u8]) {
        let found = comment_score(comment);
        if !self.moved && !matches!(found, CommentScore::Eval(_)) {
            return;
        }
        // White's view of the position after the move, or else the mover's view of the position before it.
        let (score, view) = match found {
            CommentScore::None => return,
            CommentScore::Eval(score) => (score, Some(rules.view.unwrap_or(EvalView::White))),
            CommentScore::AfterByMover(score) => {
                self.notes.mover_scores += u64::from(rules.view.is_none());
                (score, Some(rules.view.unwrap_or(EvalView::Mover)))
            }
            CommentScore::AfterByWhite(score) => (score, Some(EvalView::White)),
            CommentScore::Search(score) => (score, None),
            CommentScore::Book => {
                self.notes.book_scores += 1;
                return;
            }
            CommentScore::Unread => {
                self.notes.unread_scores += 1;
                self.notes.add_unread_example(quoted(comment));
                return;
            }
        };
        let eval = self.eval_of(score, rules, comment);
        let mover_is_white = self.position.turn().is_black();
        match view {
            Some(EvalView::Mover) if !mover_is_white => visitor.visit_eval(&mut self.state, eval.reversed()),
            Some(_) => visitor.visit_eval(&mut self.state, eval),
            None => visitor.visit_search_eval(&mut self.state, eval),
        }
    }

    fn eval_of(&mut self, score: WrittenScore, rules: EvalRules, comment: &[u8]) -> Eval {
        let number = match score {
            WrittenScore::Mate(moves) => return Eval::Mate(moves),
            WrittenScore::Number(number) => number,
        };
        match number.fraction {
            Fraction::Point(_) => self.notes.points = true,
            Fraction::DecimalComma(_) => self.notes.commas = true,
            Fraction::None if number.whole == 0 => {}
            Fraction::None | Fraction::CommaOrDepth(_) => {
                self.notes.whole_numbers += 1;
                if self.notes.whole_number_example.is_none() {
                    self.notes.whole_number_example = Some(quoted(comment));
                }
            }
        }
        let score = centipawns(number, rules);
        self.notes.scores_cut += u64::from(score.abs() > Eval::LARGEST);
        Eval::Score(Centipawn(score))
    }

    /// Notes that an illegal move ended the game.
    pub fn note_illegal_end(&mut self) {
        self.notes.ended_by_illegal_move += 1;
    }

    /// Whether the tags give another result than the one after the moves.
    pub fn contradicts(&self, result: Option<GameResult>) -> bool {
        self.header.result.zip(result).is_some_and(|(by_tag, by_moves)| by_tag != by_moves)
    }

    /// Ends the game. `result` is the result after the moves; it replaces a missing or unknown result of the tags.
    pub fn end<V: GameVisitor<State = S>>(self, visitor: &V, result: Option<GameResult>) -> ReadGame<V::Output> {
        let result = self.header.result.or(result);
        ReadGame { output: visitor.end_game(self.state, self.header, result), notes: self.notes }
    }
}

fn quoted(comment: &[u8]) -> String {
    let words: Vec<&[u8]> =
        comment.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(QUOTED_BYTES).collect();
    let text = words.join(&b' ');
    let shown = excerpt(&text, QUOTED_BYTES);
    if text.len() > QUOTED_BYTES { shown + "…" } else { shown }
}

/// A number in centipawns.
#[inline]
fn centipawns(number: DecimalNumber, rules: EvalRules) -> i32 {
    let DecimalNumber { negative, whole, fraction } = number;
    let hundredths = match (fraction, rules.whole_numbers) {
        (Fraction::Point(part) | Fraction::DecimalComma(part), _) => part,
        (Fraction::CommaOrDepth(part), WholeNumbers::DecimalComma) => part,
        _ => 0,
    };
    let has_point = matches!(fraction, Fraction::Point(_) | Fraction::DecimalComma(_));
    let magnitude = if rules.all_centipawns || rules.whole_numbers == WholeNumbers::Centipawns && !has_point {
        whole + u32::from(hundredths >= 50)
    } else {
        100 * whole + hundredths
    };
    if negative { -(magnitude as i32) } else { magnitude as i32 }
}
