//! Boards before and after moves: of random play, and of the sample games.

use fsbench::chess::{Board, Move};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::Position;

use super::compiled::Step;
use crate::common::castlings::every_castling;
use crate::common::start_of_each_kind;

/// Random games, also of Chess960, that prefer captures, promotions, castling and en passant, and castlings of Chess960.
/// The first step of each is from an empty board.
pub fn random(name: &str, number: u64, count: usize) -> Vec<Step> {
    let mut rng = Seed(29).stream(name, number);
    let mut steps: Vec<Step> = Vec::with_capacity(count);
    for (mut position, mv) in every_castling().into_iter().skip(number as usize % 7).step_by(7) {
        let before = position.board().clone();
        position.play_unchecked(mv);
        steps.push([Board::empty(), before.clone()]);
        steps.push([before, position.board().clone()]);
    }
    while steps.len() < count {
        let mut position = start_of_each_kind(rng.random());
        steps.push([Board::empty(), position.board().clone()]);
        for _ in 0..rng.random_range(20..200) {
            let moves = position.legal_moves();
            if moves.is_empty() || steps.len() >= count {
                break;
            }
            let is_sharp = |mv: &&Move| mv.is_capture() || mv.is_promotion() || mv.is_castle();
            let sharp: Vec<Move> = moves.iter().filter(is_sharp).copied().collect();
            let passing = sharp.iter().copied().find(|mv| mv.is_en_passant());
            let pool = if !sharp.is_empty() && rng.random_bool(0.3) { &sharp[..] } else { &moves[..] };
            let mv = passing.unwrap_or(pool[rng.random_range(0..pool.len())]);
            let before = position.board().clone();
            position.play_unchecked(mv);
            steps.push([before, position.board().clone()]);
        }
    }
    steps
}

/// The first moves of the sample games.
pub fn real(count: usize) -> Vec<Step> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart/games.pgn.zst");
    let mut steps: Vec<Step> = Vec::with_capacity(count);
    for game in fsbench::data::games(&path).unwrap() {
        let game = game.unwrap();
        let mut position = game.start;
        for played in game.moves {
            let before = position.board().clone();
            position.play_unchecked(played.mv);
            steps.push([before, position.board().clone()]);
            if steps.len() == count {
                return steps;
            }
        }
    }
    steps
}
