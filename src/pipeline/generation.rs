//! What determined games that engines played for data, as the manifest of the file records it.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scorer_identity::ScorerIdentity;
use super::uci::SearchLimit;
use crate::units::Seed;

/// The facts that the games depend on, for journals and manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generation {
    pub engines: Vec<ScorerIdentity>,
    pub settings: GenerateSettings,
    pub book: Option<BookFacts>,
}

/// The settings that a game depends on, besides its number and the engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[command(next_help_heading = "Games")]
pub struct GenerateSettings {
    #[arg(skip = SearchLimit::Nodes(0))]
    pub limit: SearchLimit,
    /// Seed of all random choices
    #[arg(long, value_name = "S", default_value_t)]
    pub seed: Seed,
    // Games begin at the initial position without one.
    #[command(flatten)]
    pub book: Option<BookSpec>,
    /// Least and largest number of random moves after the opening.
    // The command's default depends on the book.
    #[arg(skip)]
    pub random_plies: (u16, u16),
    /// Probability of a random move later in the game; its position is searched anyway
    #[arg(long, value_name = "P", default_value_t)]
    pub random_move_rate: f64,
    /// Play no random moves from this ply of the game on
    #[arg(long, value_name = "PLY", requires = "random_move_rate")]
    pub random_move_until: Option<u16>,
    /// Drop a game whose opening the player to move scores beyond ± this, in centipawns
    #[arg(long, value_name = "CP", default_value_t = GenerateSettings::OPENING_BOUND)]
    #[serde(default = "no_bound")]
    pub opening_bound: u16,
    #[command(flatten)]
    pub adjudication: GenerateAdjudication,
}

impl GenerateSettings {
    /// Numbers of random moves by which games without a book begin: both sides are to move equally often.
    pub const RANDOM_PLIES: (u16, u16) = (8, 9);
    /// Largest score of an opening, in centipawns.
    pub const OPENING_BOUND: u16 = 1000;

    /// Games from the initial position with 8 or 9 random moves, and none after these.
    #[must_use]
    pub fn new(limit: SearchLimit, seed: Seed) -> GenerateSettings {
        GenerateSettings {
            limit,
            seed,
            book: None,
            random_plies: GenerateSettings::RANDOM_PLIES,
            random_move_rate: 0.0,
            random_move_until: None,
            opening_bound: GenerateSettings::OPENING_BOUND,
            adjudication: GenerateAdjudication::default(),
        }
    }
}

/// Of games that were made before there was a bound.
const fn no_bound() -> u16 {
    u16::MAX
}

/// When a game is adjudicated. Plies are counted from the game's start position.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[command(next_help_heading = "Adjudication")]
pub struct GenerateAdjudication {
    /// Adjudicate a draw after this many plies
    #[arg(long, value_name = "N", default_value_t = GenerateAdjudication::default().max_plies)]
    pub max_plies: u16,
    /// Adjudicate a win at scores of at least this many centipawns
    #[arg(long, value_name = "CP", default_value_t = GenerateAdjudication::default().win_score)]
    pub win_score: u16,
    /// Consecutive scores, of both sides, needed to adjudicate a win
    #[arg(long, value_name = "N", default_value_t = GenerateAdjudication::default().win_plies)]
    pub win_plies: u16,
    /// Adjudicate a draw at scores of at most this many centipawns
    #[arg(long, value_name = "CP", default_value_t = GenerateAdjudication::default().draw_score)]
    pub draw_score: u16,
    /// Consecutive scores, of both sides, needed to adjudicate a draw
    #[arg(long, value_name = "N", default_value_t = GenerateAdjudication::default().draw_plies)]
    pub draw_plies: u16,
    /// First ply at which a draw can be adjudicated
    #[arg(long, value_name = "PLY", default_value_t = GenerateAdjudication::default().draw_from)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args, JsonSchema)]
pub struct BookSpec {
    /// Openings: an EPD, FEN or PGN file, plain or compressed [default: the initial position]
    // Not recorded: the games depend on the file's content only.
    #[arg(long = "book", id = "book", value_name = "FILE", group = "openings")]
    #[serde(skip)]
    pub path: Option<PathBuf>,
    /// Begin at the 960 start positions of Chess960
    // Recorded by the hash of the openings.
    #[arg(long, group = "openings")]
    #[serde(skip)]
    pub chess960: bool,
    /// Begin at the 921,600 start positions of double Chess960, each side's drawn by itself
    #[arg(long, group = "openings")]
    #[serde(skip)]
    pub double_chess960: bool,
    /// Whether to shuffle the openings or to play them in order
    #[arg(long = "book-order", id = "book_order", value_enum, default_value_t, requires = "openings")]
    pub order: BookOrder,
    /// Moves taken from each game of a PGN book [default: all]
    #[arg(long = "book-plies", id = "book_plies", value_name = "N", requires = "book",
        conflicts_with_all = ["chess960", "double_chess960"])]
    pub plies: Option<u16>,
}

impl BookSpec {
    /// All openings of a source, in random order.
    #[must_use]
    pub fn of(source: BookSource) -> BookSpec {
        let none =
            BookSpec { path: None, chess960: false, double_chess960: false, order: BookOrder::default(), plies: None };
        match source {
            BookSource::File(path) => BookSpec { path: Some(path), ..none },
            BookSource::Chess960 => BookSpec { chess960: true, ..none },
            BookSource::DoubleChess960 => BookSpec { double_chess960: true, ..none },
        }
    }

    /// Whether the openings are more than start positions.
    #[must_use]
    pub const fn has_openings(&self) -> bool {
        self.path.is_some()
    }

    /// Where the openings come from; `None` if nothing says so.
    #[must_use]
    pub fn source(&self) -> Option<BookSource> {
        match (&self.path, self.chess960, self.double_chess960) {
            (Some(path), ..) => Some(BookSource::File(path.clone())),
            (None, true, _) => Some(BookSource::Chess960),
            (None, _, true) => Some(BookSource::DoubleChess960),
            (None, false, false) => None,
        }
    }
}

/// Where openings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookSource {
    /// An EPD, FEN or PGN file, plain or compressed.
    File(PathBuf),
    /// The 960 start positions of Chess960.
    Chess960,
    /// The 921,600 start positions of double Chess960.
    DoubleChess960,
}

impl fmt::Display for BookSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BookSource::File(path) => path.display().fmt(f),
            BookSource::Chess960 => f.write_str("Chess960"),
            BookSource::DoubleChess960 => f.write_str("double Chess960"),
        }
    }
}

/// The order in which a book's openings are played.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BookOrder {
    /// Shuffled by the seed, in another order for each pass through the book.
    #[default]
    Random,
    /// In file order; begins again at the end.
    Sequential,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Facts about a book, for journals and manifests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BookFacts {
    /// Openings in the book, each with a position of its own.
    pub openings: u64,
    /// Skipped: broken games, openings that end the game, and repeated ones.
    pub skipped: u64,
    /// Of these, openings that lead to the position of an earlier one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// blake3 of the openings, in hexadecimal.
    pub blake3: String,
}
