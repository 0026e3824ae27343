//! Adjudication: ends games of a match by the players' scores before the rules end them.

use shakmaty::Color;

use crate::data::{Eval, GameResult};
pub use crate::record::Adjudication;

/// Follows the scores of one game.
#[derive(Clone, Debug)]
pub(super) struct Adjudicator {
    rules: Adjudication,
    /// Consecutive scores of White and Black at which each would resign.
    losing: [u16; 2],
    /// Last score of White and Black, each from its own view.
    last: [Option<i32>; 2],
    /// Consecutive level scores, of both sides together.
    level: u16,
}

impl Adjudicator {
    pub(super) fn new(rules: Adjudication) -> Adjudicator {
        Adjudicator { rules, losing: [0; 2], last: [None; 2], level: 0 }
    }

    /// Takes the score of the side that moves (its own view) at move number `fullmove`; `zeroing`: the move is a
    /// capture or a pawn move. A missing score starts all counts again. Returns the result (White's view) once the
    /// rules decide the game.
    pub(super) fn observe(
        &mut self,
        turn: Color,
        eval: Option<Eval>,
        fullmove: u32,
        zeroing: bool,
    ) -> Option<GameResult> {
        let Some(eval) = eval else {
            *self = Adjudicator::new(self.rules);
            return None;
        };
        let score = i32::from(eval.centipawns());
        let resign = i32::from(self.rules.resign_score);
        let (own, other) = (turn.fold_wb(0, 1), turn.fold_wb(1, 0));
        self.losing[own] = if score <= -resign { self.losing[own] + 1 } else { 0 };
        self.last[own] = Some(score);
        if self.losing[own] >= self.rules.resign_moves && self.last[other].is_some_and(|score| score >= resign) {
            return Some(turn.fold_wb(GameResult::Loss, GameResult::Win));
        }
        let is_level = !zeroing && score.unsigned_abs() <= u32::from(self.rules.draw_score);
        self.level = if is_level { self.level + 1 } else { 0 };
        let late = fullmove >= u32::from(self.rules.draw_from_move);
        (late && self.level >= 2 * self.rules.draw_moves).then_some(GameResult::Draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Centipawn;

    fn decide(scores: &[i32], fullmove: u32, zeroing_at: Option<usize>) -> Option<GameResult> {
        let mut adjudicator = Adjudicator::new(Adjudication { draw_moves: 2, ..Adjudication::default() });
        let mut observe = |(at, score): (usize, &i32)| {
            let turn = Color::from_white(at % 2 == 0);
            adjudicator.observe(turn, Some(Eval::Score(Centipawn(*score))), fullmove, zeroing_at == Some(at))
        };
        scores.iter().enumerate().find_map(&mut observe)
    }

    #[test]
    fn one_side_resigns_when_the_other_agrees() {
        let check = |scores: &[i32], expected| assert_eq!(decide(scores, 10, None), expected, "{scores:?}");
        check(&[-600, 700, -650, 700, -600], Some(GameResult::Loss));
        check(&[700, -600, 700, -600, 700, -600], Some(GameResult::Win));
        // The opponent does not see it.
        check(&[-600, 100, -650, 100, -600], None);
        // Not in a row.
        check(&[-600, 700, -500, 700, -600, 700, -600], None);
    }

    #[test]
    fn level_scores_are_a_draw_late_in_the_game() {
        let check = |fullmove, zeroing, expected| {
            assert_eq!(decide(&[20, -20, 0, 5], fullmove, zeroing), expected, "{fullmove}");
        };
        check(34, None, Some(GameResult::Draw));
        check(33, None, None);
        check(40, Some(3), None);
        assert_eq!(decide(&[0, 0, 21, 0], 40, None), None);
    }
}
