//! Sample formats: `.fsd`, PGN, Stockfish's `.binpack`, bulletformat and text. [`SampleReader`] reads all of them,
//! [`SampleWriter`] writes all but PGN.

pub mod binpack;
mod block_queue;
mod bullet;
mod detect;
mod foreign;
mod game_numbers;
mod omissions;
mod pgn;
mod reader;
mod score_unit;
mod skipped;
mod text;
mod writer;

pub(crate) use block_queue::decoders;
pub(crate) use detect::{SHARD_MAGIC, format_by_name};
pub(crate) use pgn::all_positions;
pub(crate) use score_unit::{rescale_scores, resolve_unit};

pub use detect::{detect, is_compressed};
pub use foreign::ForeignFormat;
pub use game_numbers::GameNumbers;
pub use omissions::{Omissions, OmittedField, OmittedSample};
pub use reader::SampleReader;
pub use score_unit::{FileUnit, ScoreUnit, UnitConversion, UnitOrigin, convert_score, score_unit};
pub use skipped::{SkippedSample, SkippedSamples};
pub use writer::{SampleWriter, WriteSummary};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A format of samples.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Games; plain, .zst, .gz or .bz2. Read only.
    Pgn,
    /// fsbench's own format.
    Fsd,
    /// Stockfish's compressed training data.
    Binpack,
    /// bulletformat's ChessBoard: 32 bytes per position.
    Bullet,
    /// Lines FEN,score,move; plain, .zst, .gz or .bz2.
    Text,
}

impl Format {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pgn => "pgn",
            Format::Fsd => "fsd",
            Format::Binpack => "binpack",
            Format::Bullet => "bullet",
            Format::Text => "text",
        }
    }

    /// Whether samples have a ply. Without plies games cannot be told apart either, and each sample counts as a game.
    #[must_use]
    pub const fn has_ply(self) -> bool {
        !matches!(self, Format::Bullet)
    }
}
