//! The sample formats beside PGN: `.fsd`, Stockfish's `.binpack`, bulletformat and lines of text. One way to read them
//! all ([`SampleReader`]), one to write them ([`SampleWriter`]).

pub mod binpack;
mod bullet;
mod decoders;
mod detect;
mod losses;
mod numbers;
mod pgn;
mod reader;
mod sink;
mod skipped;
mod stream;
mod text;
mod units;
mod writer;

pub(crate) use decoders::decoders;
pub(crate) use detect::by_name;
pub(crate) use pgn::all_positions;
pub(crate) use units::{file_unit, rescale};

pub use detect::{detect, is_compressed};
pub use losses::{Account, LeftOut, Lost};
pub use numbers::GameNumbers;
pub use reader::SampleReader;
pub use skipped::{SkippedSample, SkippedSamples};
pub use units::{FileUnit, Rescale, SaidBy, convert_score, score_unit};
pub use writer::{SampleWriter, Written};

use serde::{Deserialize, Serialize};

/// How samples are stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Games; plain, .zst, .gz or .bz2. Only read.
    Pgn,
    /// fsbench's own.
    Fsd,
    /// Stockfish's compressed training data.
    Binpack,
    /// bulletformat's ChessBoard: 32 bytes a position.
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

    /// Whether a sample tells how many plies were played before it. Where it does not, nothing tells which samples come
    /// from one game, either: each counts as a game of its own.
    #[must_use]
    pub const fn has_ply(self) -> bool {
        !matches!(self, Format::Bullet)
    }
}
