//! What determined games that engines played for data, as the manifest of the file records it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::uci::{EngineIdentity, SearchLimit};
use crate::units::Seed;

/// The facts that the games depend on, for journals and manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    pub engines: Vec<EngineIdentity>,
    pub settings: GenerateSettings,
    pub book: Option<BookFacts>,
}

/// The settings that a game depends on, besides its number and the engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerateSettings {
    pub limit: SearchLimit,
    pub seed: Seed,
    /// The opening book; games begin at the initial position without one.
    pub book: Option<BookSpec>,
    /// Least and largest number of random moves after the opening.
    pub random_plies: (u16, u16),
    /// Probability that a later move is random too; its position is searched anyway.
    pub random_move_rate: f64,
    /// No move is random from this ply on, counted from the game's start position.
    pub random_move_until: Option<u16>,
    pub adjudication: GenerateAdjudication,
}

impl GenerateSettings {
    /// Games from the initial position with 4 to 10 random moves, and none after these.
    #[must_use]
    pub fn new(limit: SearchLimit, seed: Seed) -> GenerateSettings {
        GenerateSettings {
            limit,
            seed,
            book: None,
            random_plies: (4, 10),
            random_move_rate: 0.0,
            random_move_until: None,
            adjudication: GenerateAdjudication::default(),
        }
    }
}

/// When a game is adjudicated. Plies are counted from the game's start position.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerateAdjudication {
    /// Longer games are draws.
    pub max_plies: u16,
    /// A win after `win_plies` scores in a row of at least `win_score` centipawns for the same side.
    pub win_score: u16,
    pub win_plies: u16,
    /// A draw after `draw_plies` scores in a row of at most `draw_score` centipawns, from ply `draw_from` on.
    pub draw_score: u16,
    pub draw_plies: u16,
    pub draw_from: u16,
}

impl Default for GenerateAdjudication {
    fn default() -> GenerateAdjudication {
        GenerateAdjudication {
            max_plies: 300,
            win_score: 1000,
            win_plies: 5,
            draw_score: 10,
            draw_plies: 10,
            draw_from: 70,
        }
    }
}

/// An opening book and how to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookSpec {
    /// Not recorded: the games depend on the file's content only.
    #[serde(skip)]
    pub path: PathBuf,
    pub order: BookOrder,
    /// Moves taken from each game of a PGN book; all moves without a number.
    pub plies: Option<u16>,
}

/// The order in which a book's openings are played.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BookOrder {
    /// Shuffled by the seed, in another order for each pass through the book.
    Random,
    /// In file order; begins again at the end.
    Sequential,
}

/// Facts about a book, for journals and manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookFacts {
    pub openings: u64,
    /// Skipped: broken games, and openings that end the game.
    pub skipped: u64,
    /// blake3 of the openings, in hexadecimal.
    pub blake3: String,
}
