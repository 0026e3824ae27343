//! Balanced openings: positions after random moves that a network scores as level.

use std::collections::HashSet;

use shakmaty::{Chess, Position};

use super::minimax::Minimax;
use super::player::Player;
use super::{PlayError, PlayerKind};
use crate::chess::{key_of, random_move};
use crate::units::Seed;

/// Settings of the search for openings.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OpeningSettings {
    pub count: usize,
    /// Random moves from the initial position.
    pub plies: u16,
    /// Plies of the full-width search that judges a position.
    pub depth: u32,
    /// Largest |score| of a balanced position, in the network's centipawns.
    pub max_score: u16,
    pub seed: Seed,
}

/// Finds openings; the same settings and network give the same list, in every version of the playing search. `progress`
/// receives the number of openings found.
///
/// # Errors
/// When the player is not a network, or not enough openings are found.
pub fn balanced_openings(
    player: &Player,
    settings: &OpeningSettings,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Chess>, PlayError> {
    /// Random walks per opening, at most.
    const TRIES: u64 = 1000;
    let PlayerKind::Network(network) = &player.kind else {
        return Err(PlayError::Request("openings are judged by a network, not by a UCI engine".into()));
    };
    let mut judge = Minimax::new(player, network)?;
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for number in 0..TRIES.saturating_mul(settings.count as u64) {
        if found.len() == settings.count {
            break;
        }
        let Some(position) = random_walk(settings.plies, settings.seed, number) else { continue };
        if !seen.insert(key_of(&position)) {
            continue;
        }
        if judge.is_within(&position, settings.depth, settings.max_score) {
            found.push(position);
            progress(found.len());
        }
    }
    if found.len() < settings.count {
        return Err(PlayError::Request(format!(
            "only {} of {} openings were found: allow more plies or a larger score",
            found.len(),
            settings.count
        )));
    }
    Ok(found)
}

/// The position after `plies` random moves, unless the game is over or the side to move is in check.
fn random_walk(plies: u16, seed: Seed, number: u64) -> Option<Chess> {
    let mut rng = seed.stream("openings", number);
    let mut position = Chess::default();
    for _ in 0..plies {
        position.play_unchecked(random_move(&position, &mut rng)?);
    }
    (!position.is_game_over() && !position.is_check()).then_some(position)
}
