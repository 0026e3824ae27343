//! The kinds of encoders, which differ in speed only.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a set's features are found. A set's cost depends on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum EncoderKind {
    /// Loops over the definition's axes and tables.
    #[serde(rename = "interpreter")]
    Interpreter,
    /// Code of the CPU, made for the definition.
    #[serde(rename = "machine code")]
    MachineCode,
    /// Tables of pieces, read for all pieces of a board at once.
    #[serde(rename = "AVX-512")]
    Avx512,
}

impl EncoderKind {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EncoderKind::Interpreter => "interpreter",
            EncoderKind::MachineCode => "machine code",
            EncoderKind::Avx512 => "AVX-512",
        }
    }
}

impl fmt::Display for EncoderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
