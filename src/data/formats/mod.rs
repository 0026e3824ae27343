//! Sample formats: `.fsd`, PGN, and those of other programs, binary and text. [`SampleReader`] reads all of them,
//! [`SampleWriter`] writes most. What sets a format apart stands in its file, as a `FormatTable`.

pub mod binpack;
mod block_queue;
mod bullet;
mod bullet_text;
mod c_chess_cli;
mod detect;
mod entries;
mod epd;
mod foreign;
mod format_table;
mod game_numbers;
mod lines;
mod marlinformat;
mod omissions;
mod packed_position;
mod pgn;
mod plain;
mod reader;
mod score_unit;
mod skipped;
mod text;
mod text_kind;
mod viriformat;
mod writer;

pub(crate) use block_queue::decoders;
pub(crate) use detect::SHARD_MAGIC;
#[cfg(feature = "report")]
pub(crate) use detect::has_compressed_name;
pub(crate) use pgn::all_positions;
pub(crate) use score_unit::{rescale_scores, resolve_unit};

pub use detect::{detect, format_by_name, is_compressed};
pub use foreign::ForeignFormat;
pub use game_numbers::GameNumbers;
pub use omissions::{Omissions, OmittedField, OmittedSample};
pub use reader::SampleReader;
pub use score_unit::{FileUnit, ScoreUnit, UnitConversion, UnitOrigin, convert_score, score_unit};
pub use skipped::{SkippedSample, SkippedSamples};
pub use writer::{SampleWriter, WriteSummary};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use format_table::{FormatTable, GameRule, holds_all};

/// A format of samples.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Games; plain, .zst, .gz or .bz2. Read only.
    Pgn,
    /// fsbench's own format.
    Fsd,
    /// Stockfish's compressed training data.
    Binpack,
    /// Games of viriformat: a board, then moves with their scores.
    Viriformat,
    /// bulletformat's ChessBoard: 32 bytes per position.
    Bullet,
    /// marlinformat: 32 bytes per position. Read only.
    Marlinformat,
    /// Lines FEN,score,move; plain, .zst, .gz or .bz2.
    Text,
    /// Lines FEN | score | result of bullet, White's view; plain, .zst, .gz or .bz2.
    BulletText,
    /// Stockfish's text of some lines per sample; plain, .zst, .gz or .bz2.
    Plain,
    /// EPD or FENs with results; plain, .zst, .gz or .bz2. Read only.
    Epd,
    /// Lines FEN,score,result of c-chess-cli; plain, .zst, .gz or .bz2. Read only.
    CChessCli,
}

impl Format {
    const fn table(self) -> &'static FormatTable {
        match self {
            Format::Pgn => &PGN,
            Format::Fsd => &FSD,
            Format::Binpack => &binpack::FORMAT,
            Format::Viriformat => &viriformat::FORMAT,
            Format::Bullet => &bullet::FORMAT,
            Format::Marlinformat => &marlinformat::FORMAT,
            Format::Text => &text::FORMAT,
            Format::BulletText => &bullet_text::FORMAT,
            Format::Plain => &plain::FORMAT,
            Format::Epd => &epd::FORMAT,
            Format::CChessCli => &c_chess_cli::FORMAT,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        self.table().name
    }

    /// Whether samples have a ply. Without plies games cannot be told apart either, and each sample counts as a game.
    #[must_use]
    pub const fn has_ply(self) -> bool {
        !matches!(self.table().games, GameRule::Unknown)
    }

    /// Whether samples can be written in the format.
    #[must_use]
    pub fn is_written(self) -> bool {
        self == Format::Fsd || self.table().encoder.is_some()
    }

    const fn why_not_written(self) -> &'static str {
        match self {
            Format::Pgn => "PGN holds games, not single samples",
            _ => "the format is read only",
        }
    }

    /// The endings of the files that are written: `.fsd, .binpack, …`.
    pub(crate) fn written_endings() -> String {
        let mut endings = Vec::new();
        for format in Format::value_variants() {
            if let Some(ending) = format.table().endings.first().filter(|_| format.is_written()) {
                endings.push(format!(".{ending}"));
            }
        }
        endings.join(", ")
    }

    /// The names of the formats that are read as streams.
    pub(crate) fn streamed_names() -> String {
        let mut names = Vec::new();
        for format in Format::value_variants() {
            if format.table().read.is_some() {
                names.push(format.name());
            }
        }
        names.join(", ")
    }
}

const PGN: FormatTable = FormatTable {
    name: "pgn",
    endings: &["pgn"],
    // Whatever is no other text is taken for games.
    recognises: |_| false,
    is_text: true,
    default_unit: ScoreUnit::Centipawns,
    games: GameRule::Recorded,
    needs_result: false,
    read: None,
    adapt: holds_all,
    encoder: None,
};

const FSD: FormatTable = FormatTable {
    name: "fsd",
    endings: &["fsd"],
    recognises: |beginning| beginning.starts_with(crate::data::fsd::MAGIC),
    is_text: false,
    ..PGN
};
