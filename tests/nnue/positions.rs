//! Positions to compare scores on.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use fsbench::chess::{Bitboard, Chess, Color, File, Rank};
use fsbench::data::games;
use shakmaty::fen::Fen;
use shakmaty::{EnPassantMode, Position};

use super::common::random_game;

const WANTED: usize = 1200;

/// At least 1,000 positions not in check, from random games and, if there are data, from played games.
pub fn positions() -> Vec<Chess> {
    let mut found = Vec::new();
    for game in 0.. {
        let mut position = Chess::default();
        for (ply, mv) in random_game(game, 400).into_iter().enumerate() {
            position.play_unchecked(mv);
            if (ply % 23 == 7 || ply % 3 == 0 && near_promotion(&position)) && !position.is_check() {
                found.push(position.clone());
            }
        }
        if found.len() >= WANTED {
            break;
        }
    }
    match super::common::skip::shared_data("lichess-plain.pgn.zst") {
        // Random games are enough.
        None => {}
        Some(path) => {
            for game in games(&path).unwrap().take(100) {
                let game = game.unwrap();
                let mut position = game.start.clone();
                for (ply, played) in game.moves.iter().enumerate() {
                    position.play_unchecked(played.mv);
                    if ply % 11 == 5 && !position.is_check() {
                        found.push(position.clone());
                    }
                }
            }
        }
    }
    check_variety(&found);
    found
}

/// Whether a pawn may promote at its next move.
fn near_promotion(position: &Chess) -> bool {
    let pawns = |color: Color, rank: Rank| {
        position.board().by_color(color) & position.board().pawns() & Bitboard::from_rank(rank)
    };
    (pawns(Color::White, Rank::Seventh) | pawns(Color::Black, Rank::Second)).any()
}

/// Checks that the positions cover the cases that formulas get wrong easily.
fn check_variety(positions: &[Chess]) {
    assert!(positions.len() >= 1000);
    let count = |holds: &dyn Fn(&Chess) -> bool| positions.iter().filter(|position| holds(position)).count();
    let half = |color: Color, left: bool| {
        move |position: &Chess| (position.board().king_of(color).unwrap().file() < File::E) == left
    };
    let pieces = |position: &Chess| position.board().occupied().count();
    let counts = [
        count(&half(Color::White, true)),
        count(&half(Color::White, false)),
        count(&half(Color::Black, true)),
        count(&half(Color::Black, false)),
        count(&|position| position.turn() == Color::White),
        count(&|position| position.turn() == Color::Black),
        count(&|position| pieces(position) <= 8),
        count(&near_promotion),
    ];
    assert!(counts.iter().all(|count| *count > 30), "{counts:?}");
    for bucket in 0..8 {
        assert!(count(&|position| (pieces(position) - 1) / 4 == bucket) > 0, "no position in bucket {bucket}");
    }
}

pub fn fen(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}
