//! A plain search that judges openings: full width to a fixed depth, then captures.
//!
//! Its value depends on the network alone. The playing search prunes and reorders, and every change of that would give
//! another book.

use shakmaty::{Chess, Move, MoveList, Position, Role};

use crate::chess::BoardChange;
use crate::engine::{BackEnd, Evaluator, Strategy};

use super::PlayError;
use super::player::{NetworkPlayer, Player};

/// Searches positions with one network's evaluation.
pub(super) struct Minimax<'a> {
    evaluator: Evaluator<'a>,
    network: &'a NetworkPlayer,
}

/// Worse than every evaluation.
const MATED: i32 = -1_000_000;

impl<'a> Minimax<'a> {
    /// # Errors
    /// When the network was not made for its feature set.
    pub(super) fn new(player: &Player, network: &'a NetworkPlayer) -> Result<Minimax<'a>, PlayError> {
        let evaluator = Evaluator::new(&network.set, &network.model, Strategy::LazyCached, BackEnd::best());
        let evaluator = evaluator.map_err(|error| PlayError::player(player, &error))?;
        Ok(Minimax { evaluator, network })
    }

    /// Whether the minimax value of a position, in the network's centipawns, lies within ± `bound`. The value of a
    /// search of all moves to `depth` plies and of captures and queen promotions below, where the side to move may
    /// stop.
    pub(super) fn is_within(&mut self, position: &Chess, depth: u32, bound: u16) -> bool {
        self.evaluator.set(position.board());
        let bound = i32::from(bound);
        let value = self.value(position, depth, -bound - 1, bound + 1);
        value.abs() <= bound
    }

    /// The value where it lies between `alpha` and `beta`, else a bound of it.
    fn value(&mut self, position: &Chess, depth: u32, alpha: i32, beta: i32) -> i32 {
        if depth == 0 {
            return self.quiet_value(position, alpha, beta);
        }
        let moves = position.legal_moves();
        if moves.is_empty() {
            return if position.is_check() { MATED } else { 0 };
        }
        self.best(position, moves, (MATED, alpha, beta), |this, after, alpha, beta| {
            this.value(after, depth - 1, alpha, beta)
        })
    }

    fn quiet_value(&mut self, position: &Chess, alpha: i32, beta: i32) -> i32 {
        let scheme = self.network.model.scheme();
        let stand = scheme.centipawns(self.evaluator.score(position.turn()));
        if stand >= beta {
            return stand;
        }
        let mut moves = position.legal_moves();
        moves.retain(|mv| mv.is_capture() || mv.promotion().is_some());
        moves.retain(|mv| mv.promotion().is_none_or(|role| role == Role::Queen));
        self.best(position, moves, (stand, alpha.max(stand), beta), Minimax::quiet_value)
    }

    /// The best value of `moves` and of `best`, each move valued by `child`.
    fn best(
        &mut self,
        position: &Chess,
        mut moves: MoveList,
        (mut best, mut alpha, beta): (i32, i32, i32),
        child: impl Fn(&mut Minimax<'a>, &Chess, i32, i32) -> i32,
    ) -> i32 {
        // The order affects the time only.
        moves.sort_by_key(|mv| std::cmp::Reverse(victim_and_attacker(mv)));
        for mv in moves {
            let mut after = position.clone();
            after.play_unchecked(mv);
            self.evaluator.play(&BoardChange::of(mv, position.turn()));
            let value = -child(self, &after, -beta, -alpha);
            self.evaluator.undo();
            best = best.max(value);
            alpha = alpha.max(value);
            if alpha >= beta {
                break;
            }
        }
        best
    }
}

/// Captures of the most valuable piece by the least valuable one come first.
fn victim_and_attacker(mv: &Move) -> (u8, u8) {
    mv.capture().map_or((0, 0), |victim| (victim as u8, 6 - mv.role() as u8))
}
