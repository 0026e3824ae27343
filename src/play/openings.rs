//! Balanced openings: random walks from the initial position that a reference network calls level.

use std::collections::HashSet;

use rand::RngExt;
use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, EnPassantMode, Position};

use super::player::{NetworkPlayer, Player};
use super::{MatchError, PlayerKind};
use crate::engine::BackEnd;
use crate::search::{Game, Limits, Score, Searcher};
use crate::units::Seed;

/// Which openings are wanted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OpeningSettings {
    pub count: usize,
    /// Random moves from the initial position.
    pub plies: u16,
    /// Nodes of the search that judges a position.
    pub nodes: u64,
    /// Largest |score| of a balanced position, in the search's centipawns.
    pub max_score: u16,
    pub seed: Seed,
}

/// Finds openings; the same settings and network give the same list. `progress` gets how many were found.
///
/// # Errors
/// When the player is no network, or so many openings cannot be found.
pub fn balanced_openings(
    player: &Player,
    settings: &OpeningSettings,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Chess>, MatchError> {
    /// Walks per opening wanted, at most.
    const TRIES: u64 = 1000;
    let PlayerKind::Network(network) = &player.kind else {
        return Err(MatchError::Request("openings are judged by a network, not by a UCI engine".into()));
    };
    let mut searcher = searcher(player, network)?;
    let limits = Limits { nodes: Some(settings.nodes), ..Limits::default() };
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for number in 0..TRIES.saturating_mul(settings.count as u64) {
        if found.len() == settings.count {
            break;
        }
        let Some(position) = random_walk(settings.plies, settings.seed, number) else { continue };
        if !seen.insert(position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal)) {
            continue;
        }
        searcher.clear();
        let judged = searcher.search(&Game::new(position.clone()), &limits, |_| ());
        if matches!(judged.score, Score::Cp(score) if score.unsigned_abs() <= u32::from(settings.max_score)) {
            found.push(position);
            progress(found.len());
        }
    }
    if found.len() < settings.count {
        return Err(MatchError::Request(format!(
            "only {} of {} openings were found: allow more plies or a larger score",
            found.len(),
            settings.count
        )));
    }
    Ok(found)
}

fn searcher<'a>(player: &Player, network: &'a NetworkPlayer) -> Result<Searcher<'a>, MatchError> {
    /// Mebibytes.
    const TABLE: usize = 16;
    Searcher::new(&network.set, &network.model, BackEnd::best(), TABLE)
        .map_err(|error| MatchError::player(player, &error))
}

/// The position after so many random moves, unless the game is over or the side to move is in check.
fn random_walk(plies: u16, seed: Seed, number: u64) -> Option<Chess> {
    let mut rng = seed.stream("openings", number);
    let mut position = Chess::default();
    for _ in 0..plies {
        let moves = position.legal_moves();
        if moves.is_empty() {
            return None;
        }
        position.play_unchecked(moves[rng.random_range(0..moves.len())]);
    }
    (!position.is_game_over() && !position.is_check()).then_some(position)
}
