//! Opening a file of games, plain or compressed. What counts is how the file begins, not its name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::DataError;

/// How a file of games is stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Gzip,
    Bzip2,
}

impl Compression {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Compression::None => "plain",
            Compression::Zstd => "zstd",
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
        }
    }
}

/// What the first bytes of a file say it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Fsd,
    /// Games, or what a reader of games will complain about.
    Text(Compression),
    /// Recognised, but not read here.
    Other(&'static str),
}

/// # Errors
/// When the file cannot be read.
pub fn kind(path: &Path) -> Result<Kind, DataError> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(DataError::read(path))?;
    file.take(8).read_to_end(&mut head).map_err(DataError::read(path))?;
    Ok(match head.as_slice() {
        bytes if bytes == super::writer::MAGIC => Kind::Fsd,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Kind::Text(Compression::Zstd),
        [0x1f, 0x8b, ..] => Kind::Text(Compression::Gzip),
        [b'B', b'Z', b'h', ..] => Kind::Text(Compression::Bzip2),
        [b'B', b'I', b'N', b'P', ..] => Kind::Other("a Stockfish binpack"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Kind::Other("xz-compressed"),
        [b'P', b'K', 3, 4, ..] => Kind::Other("a zip archive"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Kind::Other("a 7z archive"),
        _ => Kind::Text(Compression::None),
    })
}

/// The decompressed bytes of a file of games.
pub struct Input {
    reader: Box<dyn BufRead + Send>,
    pub compression: Compression,
}

impl Input {
    /// # Errors
    /// When the file cannot be read or is of a kind that holds no games.
    pub fn open(path: &Path) -> Result<Input, DataError> {
        let compression = match kind(path)? {
            Kind::Text(compression) => compression,
            Kind::Fsd => {
                return Err(DataError::Unsupported { path: path.into(), what: "a .fsd file (it holds no games)" });
            }
            Kind::Other(what) => return Err(DataError::Unsupported { path: path.into(), what }),
        };
        let file = File::open(path).map_err(DataError::read(path))?;
        let reader: Box<dyn BufRead + Send> = match compression {
            Compression::None => Box::new(BufReader::with_capacity(BUFFER, file)),
            Compression::Zstd => {
                let decoder = zstd::Decoder::new(file).map_err(DataError::read(path))?;
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
            Compression::Gzip => {
                Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(BufReader::new(file))))
            }
            Compression::Bzip2 => {
                Box::new(BufReader::with_capacity(BUFFER, bzip2::bufread::MultiBzDecoder::new(BufReader::new(file))))
            }
        };
        Ok(Input { reader, compression })
    }

    /// Input from memory, for tests.
    #[cfg(test)]
    pub fn from_bytes(bytes: Vec<u8>) -> Input {
        Input { reader: Box::new(io::Cursor::new(bytes)), compression: Compression::None }
    }

    /// Appends bytes up to and with the next line feed, at most `limit`; the number appended, 0 at the end.
    pub fn line(&mut self, limit: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        self.reader.by_ref().take(limit as u64).read_until(b'\n', into)
    }
}

const BUFFER: usize = 1 << 16;
