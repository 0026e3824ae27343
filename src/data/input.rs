//! Opening what holds games or samples: a file or standard input, plain or compressed. What counts is how the content
//! begins, not its name. The bytes that go through are counted and hashed, so that nothing is read twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DataError;

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File(PathBuf),
    Stdin,
}

impl Origin {
    /// `-` is standard input.
    #[must_use]
    pub fn of(path: &Path) -> Origin {
        if path == Path::new("-") { Origin::Stdin } else { Origin::File(path.into()) }
    }

    /// What messages and manifests call it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self {
            Origin::File(path) => path.clone(),
            Origin::Stdin => PathBuf::from("standard input"),
        }
    }

    /// Bytes as stored; none where nobody knows before the end.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            Origin::File(path) => path.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| found.len()),
            Origin::Stdin => None,
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Origin::File(path) if path.is_dir() => {
                return Err(io::Error::other("it is a folder: name the files in it, as in 'FOLDER/*.pgn.zst'"));
            }
            Origin::File(path) => Box::new(File::open(path)?),
            Origin::Stdin => Box::new(io::stdin()),
        })
    }
}

/// How a file of games is stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Gzip,
    Bzip2,
}

impl Compression {
    /// Told by the first four bytes.
    #[must_use]
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [b'B', b'Z', b'h', ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }

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
    let mut file = Origin::of(path).open().map_err(DataError::read(path))?;
    Ok(kind_of(&head(&mut file).map_err(DataError::read(path))?))
}

/// The first bytes, fewer only at the end.
pub fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(8).read_to_end(&mut head)?;
    Ok(head)
}

fn kind_of(head: &[u8]) -> Kind {
    match head {
        bytes if bytes == super::writer::MAGIC => Kind::Fsd,
        [b'B', b'I', b'N', b'P', ..] => Kind::Other("a Stockfish binpack"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Kind::Other("xz-compressed"),
        [b'P', b'K', 3, 4, ..] => Kind::Other("a zip archive"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Kind::Other("a 7z archive"),
        _ => Kind::Text(Compression::of(head)),
    }
}

/// The decompressed bytes of a file of games.
pub struct Input {
    reader: Box<dyn BufRead + Send>,
    pub compression: Compression,
    pub origin: Origin,
    pub meter: Meter,
}

impl Input {
    /// # Errors
    /// When the file cannot be read or is of a kind that holds no games.
    pub fn open(origin: &Origin) -> Result<Input, DataError> {
        let path = origin.path();
        let raw = origin.open().map_err(DataError::read(&path))?;
        let meter = Meter::default();
        let mut raw = Metered { raw, meter: meter.clone() };
        let head = head(&mut raw).map_err(DataError::read(&path))?;
        let compression = match kind_of(&head) {
            Kind::Text(compression) => compression,
            Kind::Fsd => return Err(DataError::Unsupported { path, what: "a .fsd file (it holds no games)" }),
            Kind::Other(what) => return Err(DataError::Unsupported { path, what }),
        };
        let stored = Cursor::new(head).chain(raw);
        let reader = decompressed(stored, compression).map_err(DataError::read(&path))?;
        Ok(Input { reader, compression, origin: origin.clone(), meter })
    }

    /// Input from memory, for tests.
    #[cfg(test)]
    pub fn from_bytes(bytes: Vec<u8>) -> Input {
        let (reader, compression) = (Box::new(Cursor::new(bytes)), Compression::None);
        Input { reader, compression, origin: Origin::Stdin, meter: Meter::default() }
    }

    /// Appends `limit` bytes, fewer only at the end; the number appended. Before an error, what came is appended.
    pub fn read(&mut self, limit: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        into.reserve(limit);
        self.reader.by_ref().take(limit as u64).read_to_end(into)
    }

    /// Appends bytes up to and with the next line feed, at most `limit`; the number appended, 0 at the end.
    pub fn line(&mut self, limit: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        self.reader.by_ref().take(limit as u64).read_until(b'\n', into)
    }
}

const BUFFER: usize = 1 << 16;

/// What stands behind a compression.
///
/// # Errors
/// When the decoder cannot be set up.
pub fn decompressed(
    stored: impl Read + Send + 'static,
    compression: Compression,
) -> io::Result<Box<dyn BufRead + Send>> {
    let stored = BufReader::with_capacity(BUFFER, stored);
    Ok(match compression {
        Compression::None => Box::new(stored),
        Compression::Zstd => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::with_buffer(stored)?)),
        Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(stored))),
        Compression::Bzip2 => Box::new(BufReader::with_capacity(BUFFER, bzip2::bufread::MultiBzDecoder::new(stored))),
    })
}

/// Length and blake3 of a file as it is stored.
pub fn hash_file(path: &Path) -> Result<(u64, blake3::Hash), DataError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).map_err(DataError::read(path))?).map_err(DataError::read(path))?;
    Ok((hasher.count(), hasher.finalize()))
}

/// Counts and hashes what was read of a source, as it is stored.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<blake3::Hasher>>);

impl Meter {
    fn hasher(&self) -> MutexGuard<'_, blake3::Hasher> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.hasher().count()
    }

    /// blake3 of the bytes so far.
    #[must_use]
    pub fn hash(&self) -> blake3::Hash {
        self.hasher().finalize()
    }
}

/// A reader under a [`Meter`].
pub struct Metered<R> {
    raw: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.meter.hasher().update(&buffer[..read]);
        Ok(read)
    }
}
