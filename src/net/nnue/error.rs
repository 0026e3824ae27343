//! Errors of `.nnue` files.

use thiserror::Error;

use super::Architecture;

#[derive(Clone, Debug, Error, PartialEq)]
pub enum NnueError {
    #[error("the file has {size} bytes; .nnue files of up to {limit} are supported")]
    TooLarge { size: u64, limit: u64 },
    #[error("the file ends at byte {size}, but {what} needs {needed} bytes from byte {at}; was it only partly copied?")]
    Truncated { what: &'static str, at: usize, needed: u64, size: usize },
    #[error("byte 0: version {0:08x} is not of a .nnue file (7af32f16, 7af32f20 or 6a448afa)")]
    Version(u32),
    #[error(
        "byte 4: version {version:08x} with hash {hash:08x} is no Stockfish network that fsbench knows{description}; \
         known are {known}"
    )]
    Unknown { version: u32, hash: u32, description: String, known: String },
    #[error(
        "byte 4: this is a network of {network}, when Stockfish's development version had it; fsbench reads the \
         networks of the releases 12 to 19: take one of a release"
    )]
    Unread { network: String },
    #[error("byte 4: the file is of architecture {found}, not {wanted}")]
    Other { found: String, wanted: Architecture },
    #[error("byte {at}: the hash of {what} is {found:08x}, not {expected:08x}; the file is damaged")]
    Hash { what: &'static str, at: usize, found: u32, expected: u32 },
    #[error("byte {at}: {what} should begin with COMPRESSED_LEB128; the file is damaged")]
    NotCompressed { what: &'static str, at: usize },
    #[error("byte {at}: a number of {what} does not end or does not fit {bits} bits; the file is damaged")]
    Number { what: &'static str, at: usize, bits: u32 },
    #[error(
        "byte {at}: {what} should have {stated} compressed bytes, but the numbers take {used}; the file is damaged"
    )]
    CompressedLength { what: &'static str, at: usize, stated: usize, used: usize },
    #[error("byte {at}: {count} bytes follow the network; the file is damaged or of another architecture")]
    LeftOver { at: usize, count: usize },
    #[error("{0}")]
    Bias(String),
}
