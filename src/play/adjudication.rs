//! Adjudication: ends games by the players' scores before the rules end them.

use shakmaty::{Color, Position};

use super::game_line::GameLine;
use crate::data::{Eval, GameResult};
use crate::pipeline::generation::GenerateAdjudication;
pub use crate::record::Adjudication;

/// When a game ends by its scores. Matches and generated games have rules of their own, each a case of these.
#[derive(Copy, Clone, Debug, Default)]
pub struct AdjudicationRules {
    pub win: Option<WinRule>,
    pub draw: Option<DrawRule>,
    /// A game of so many plies, the opening's included, is a draw.
    pub max_plies: Option<u16>,
}

/// A side has won when both players' scores say so: its own are at least `score` centipawns, the other's at most minus
/// that.
#[derive(Copy, Clone, Debug)]
pub struct WinRule {
    pub score: u16,
    /// Scores in a row of the player that has just searched.
    pub own: u16,
    /// Scores in a row of its opponent before that.
    pub other: u16,
    /// Only the loser's search ends the game: it resigns, and the winner agrees.
    pub by_resignation: bool,
}

/// A draw after `scores` level scores in a row, of both players together.
#[derive(Copy, Clone, Debug)]
pub struct DrawRule {
    /// Level scores lie within ± this, in centipawns.
    pub score: u16,
    pub scores: u16,
    /// None before this move number, as FEN counts moves.
    pub from_move: u16,
    /// None before this ply, counted from the game's start position.
    pub from_ply: u16,
    /// Whether captures and pawn moves start the count again.
    pub zeroing_restarts: bool,
}

impl From<Adjudication> for AdjudicationRules {
    fn from(rules: Adjudication) -> AdjudicationRules {
        AdjudicationRules {
            win: Some(WinRule { score: rules.resign_score, own: rules.resign_moves, other: 1, by_resignation: true }),
            draw: Some(DrawRule {
                score: rules.draw_score,
                scores: rules.draw_moves.saturating_mul(2),
                from_move: rules.draw_from_move,
                from_ply: 0,
                zeroing_restarts: true,
            }),
            max_plies: None,
        }
    }
}

impl From<GenerateAdjudication> for AdjudicationRules {
    fn from(rules: GenerateAdjudication) -> AdjudicationRules {
        let GenerateAdjudication { max_plies, win_score, win_plies, draw_score, draw_plies, draw_from } = rules;
        // The players search in turn: of five scores in a row, the last player gave three.
        let win = WinRule { score: win_score, own: win_plies.div_ceil(2), other: win_plies / 2, by_resignation: false };
        let draw = DrawRule {
            score: draw_score,
            scores: draw_plies,
            from_move: 0,
            // The first of the level scores comes at `draw_from` or later.
            from_ply: draw_from.saturating_add(draw_plies.saturating_sub(1)),
            zeroing_restarts: false,
        };
        AdjudicationRules { win: Some(win), draw: Some(draw), max_plies: Some(max_plies) }
    }
}

/// Follows the scores of one game.
#[derive(Clone, Debug)]
pub(super) struct Adjudicator {
    rules: AdjudicationRules,
    /// By colour: scores in a row at which the player wins, and at which it loses.
    winning: [u16; 2],
    losing: [u16; 2],
    /// Level scores in a row, of both players together.
    level: u16,
}

impl Adjudicator {
    pub(super) const fn new(rules: AdjudicationRules) -> Adjudicator {
        Adjudicator { rules, winning: [0; 2], losing: [0; 2], level: 0 }
    }

    /// Whether the game is too long.
    pub(super) fn is_too_long(&self, plies: usize) -> bool {
        self.rules.max_plies.is_some_and(|most| plies >= usize::from(most))
    }

    /// Takes the score of the position that `line` has reached, as the side to move sees it. `zeroing`: its best move
    /// is a capture or a pawn move. A missing score starts all counts again. Returns White's result once the rules
    /// decide the game.
    pub(super) fn observe(&mut self, line: &GameLine, eval: Option<Eval>, zeroing: bool) -> Option<GameResult> {
        let Some(eval) = eval else {
            *self = Adjudicator::new(self.rules);
            return None;
        };
        let score = i32::from(eval.centipawns());
        let turn = line.position().turn();
        let winner = self.rules.win.and_then(|rule| self.winner(rule, turn, score));
        if let Some(winner) = winner {
            return Some(winner.fold_wb(GameResult::Win, GameResult::Loss));
        }
        let is_drawn = self.rules.draw.is_some_and(|rule| self.is_drawn(rule, line, score, zeroing));
        is_drawn.then_some(GameResult::Draw)
    }

    /// Counts a score for the rule of wins.
    fn winner(&mut self, rule: WinRule, turn: Color, score: i32) -> Option<Color> {
        let bound = i32::from(rule.score);
        let own = turn.fold_wb(0, 1);
        let other = 1 - own;
        self.winning[own] = if score >= bound { self.winning[own].saturating_add(1) } else { 0 };
        self.losing[own] = if score <= -bound { self.losing[own].saturating_add(1) } else { 0 };
        // The score just taken is one of them.
        let enough = rule.own.max(1);
        if self.losing[own] >= enough && self.winning[other] >= rule.other {
            return Some(turn.other());
        }
        let wins = self.winning[own] >= enough && self.losing[other] >= rule.other;
        (wins && !rule.by_resignation).then_some(turn)
    }

    /// Counts a score for the rule of draws.
    fn is_drawn(&mut self, rule: DrawRule, line: &GameLine, score: i32, zeroing: bool) -> bool {
        let restarts = zeroing && rule.zeroing_restarts;
        let is_level = !restarts && score.unsigned_abs() <= u32::from(rule.score);
        self.level = if is_level { self.level.saturating_add(1) } else { 0 };
        let is_late = line.position().fullmoves().get() >= u32::from(rule.from_move)
            && line.moves.len() >= usize::from(rule.from_ply);
        is_level && is_late && self.level >= rule.scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{legal_move, parse_fen};
    use crate::play::GameMove;
    use crate::units::Centipawn;

    /// The decision of rules when each side's view of a position is scored so, one ply after the other; `zeroing_at`:
    /// which ply has a capture or a pawn move. The game begins at move `fullmove`.
    fn decide(
        rules: impl Into<AdjudicationRules>,
        scores: &[i32],
        fullmove: u32,
        zeroing_at: Option<usize>,
    ) -> Option<GameResult> {
        let mut adjudicator = Adjudicator::new(rules.into());
        let start = format!("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 {fullmove}");
        let mut line = GameLine::new(parse_fen(&start).unwrap());
        for (ply, score) in scores.iter().enumerate() {
            let decided = adjudicator.observe(&line, Some(Eval::Score(Centipawn(*score))), zeroing_at == Some(ply));
            if decided.is_some() {
                return decided;
            }
            let mv = legal_move(["g1f3", "g8f6", "f3g1", "f6g8"][ply % 4], line.position()).unwrap();
            line.play(GameMove { mv, search: None });
        }
        None
    }

    #[test]
    fn one_side_resigns_when_the_other_agrees() {
        let rules = Adjudication { draw_moves: 2, ..Adjudication::default() };
        let check = |scores: &[i32], expected| assert_eq!(decide(rules, scores, 10, None), expected, "{scores:?}");
        check(&[-600, 700, -650, 700, -600], Some(GameResult::Loss));
        check(&[700, -600, 700, -600, 700, -600], Some(GameResult::Win));
        // The opponent does not see it.
        check(&[-600, 100, -650, 100, -600], None);
        // Not in a row.
        check(&[-600, 700, -500, 700, -600, 700, -600], None);
        // The winner alone ends no game.
        check(&[700, -600, 700, -600, 700], None);
    }

    #[test]
    fn level_scores_are_a_draw_late_in_a_match() {
        let rules = Adjudication { draw_moves: 2, ..Adjudication::default() };
        let check = |fullmove, zeroing, expected| {
            assert_eq!(decide(rules, &[20, -20, 0, 5], fullmove, zeroing), expected, "{fullmove}");
        };
        check(34, None, Some(GameResult::Draw));
        check(32, None, None);
        check(40, Some(3), None);
        assert_eq!(decide(rules, &[0, 0, 21, 0], 40, None), None);
    }

    #[test]
    fn generated_games_end_when_all_scores_agree() {
        let rules = GenerateAdjudication { win_plies: 3, draw_plies: 2, draw_from: 2, ..Default::default() };
        let check = |scores: &[i32], expected| assert_eq!(decide(rules, scores, 1, None), expected, "{scores:?}");
        check(&[1000, -1200, 1000], Some(GameResult::Win));
        check(&[-1000, 1200, -1000], Some(GameResult::Loss));
        check(&[0, 1000, -1200, 1000], Some(GameResult::Loss));
        check(&[1000, -1200, 999], None);
        check(&[1000, 1200, -1000], None);
        check(&[11, 11, 0, 0], Some(GameResult::Draw));
        check(&[11, 0, 0], None);
        check(&[11, 11, 0, 20, 0], None);
        let adjudicator = Adjudicator::new(rules.into());
        assert_eq!([299, 300].map(|plies| adjudicator.is_too_long(plies)), [false, true]);
    }
}
