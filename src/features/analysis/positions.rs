//! Random legal positions: random play, and pieces placed at random.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use shakmaty::Position;

use crate::chess::{Board, Chess, Move, too_close};
use crate::features::spec::Entity;
use crate::units::Seed;

use super::domain::{Domain, Squares};
use super::legal::{END_RANKS, FLEXIBLE, piece};
use super::partial_board::KING;
use super::witness::Witness;

const SEED: Seed = Seed(20_240_603);
/// Plies of a random game.
const PLIES: usize = 160;

/// The random generator for a purpose and an index.
pub fn stream(name: &str, index: u64) -> ChaCha8Rng {
    SEED.stream(name, index)
}

/// All positions of a random game from the initial position. Captures, promotions and castling are sometimes preferred,
/// so that games reach endings.
pub fn random_game(index: u64) -> Vec<Chess> {
    let mut rng = stream("random play", index);
    let mut position = Chess::default();
    let mut positions = vec![position.clone()];
    for _ in 0..PLIES {
        let moves = position.legal_moves();
        let is_sharp = |mv: &&Move| mv.is_capture() || mv.is_promotion() || mv.is_castle();
        let sharp: Vec<Move> = moves.iter().filter(is_sharp).copied().collect();
        let chosen =
            if !sharp.is_empty() && rng.random_bool(0.3) { sharp.choose(&mut rng) } else { moves.choose(&mut rng) };
        let Some(mv) = chosen else { break };
        position.play_unchecked(*mv);
        positions.push(position.clone());
    }
    positions
}

/// Places kings on squares of `allowed` and up to 30 more pieces anywhere; `None` when the result is not legal.
pub fn random_placement(allowed: &Domain, rng: &mut ChaCha8Rng) -> Option<Witness> {
    let extras = [rng.random_range(0..=15), rng.random_range(0..=15)];
    random_placement_of(allowed, extras, rng)
}

/// [`random_placement`] with the number of more pieces given per side.
pub fn random_placement_of(allowed: &Domain, extras: [u32; 2], rng: &mut ChaCha8Rng) -> Option<Witness> {
    let pawns_in_8 = rng.random_range(2..=8);
    let mut board = Board::empty();
    let mut free = !0u64;
    let mut put = |entity: Entity, free: &mut u64| {
        *free &= !(1 << entity.square);
        board.set_piece_at(shakmaty::Square::new(entity.square), piece(entity));
    };
    let own = pick(allowed.king_squares(0), rng)?;
    let apart = Squares(allowed.king_squares(1)).filter(|square| !too_close(own, *square));
    let enemy = pick(apart.fold(0, |all, square| all | 1 << square), rng)?;
    for (color, square) in [(0, own), (1, enemy)] {
        put(Entity { square, role: KING, color }, &mut free);
    }
    for (color, count) in extras.into_iter().enumerate() {
        for role in roles(count, pawns_in_8, rng) {
            let allowed = if role == 0 { free & !END_RANKS } else { free };
            if let Some(square) = pick(allowed, rng) {
                put(Entity { square, role, color: color as u32 }, &mut free);
            }
        }
    }
    Witness::of(board)
}

/// Roles for the pieces of one side, at most eight of them pawns or promoted.
fn roles(count: u32, pawns_in_8: u32, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut left = vec![1, 1, 2, 2, 3, 3, 4];
    let mut flexible = FLEXIBLE;
    let mut chosen = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let unpromoted = !left.is_empty() && (flexible == 0 || rng.random_bool(0.47));
        if unpromoted {
            chosen.push(left.swap_remove(rng.random_range(0..left.len())));
        } else if flexible > 0 {
            flexible -= 1;
            chosen.push(if rng.random_range(0..8) < pawns_in_8 { 0 } else { rng.random_range(1..=4) });
        }
    }
    chosen
}

/// A random square of a bitboard.
pub fn pick(squares: u64, rng: &mut ChaCha8Rng) -> Option<u32> {
    let count = squares.count_ones();
    if count == 0 {
        return None;
    }
    Squares(squares).nth(rng.random_range(0..count) as usize)
}
