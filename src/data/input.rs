//! Opens files and standard input, plain or compressed, by their content rather than their name. All bytes read are
//! counted and hashed, so that no file is read twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DataError;

/// A file or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPath {
    File(PathBuf),
    Stdin,
}

impl InputPath {
    /// `-` is standard input.
    #[must_use]
    pub fn of(path: &Path) -> InputPath {
        if path == Path::new("-") { InputPath::Stdin } else { InputPath::File(path.into()) }
    }

    /// The name in messages and manifests.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self {
            InputPath::File(path) => path.clone(),
            InputPath::Stdin => PathBuf::from("standard input"),
        }
    }

    /// Length as stored; `None` if it is unknown before the end.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match self {
            InputPath::File(path) => path.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| found.len()),
            InputPath::Stdin => None,
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            InputPath::File(path) if path.is_dir() => {
                return Err(io::Error::other("it is a folder: name the files in it, as in 'FOLDER/*.pgn.zst'"));
            }
            InputPath::File(path) => Box::new(File::open(path)?),
            InputPath::Stdin => Box::new(io::stdin()),
        })
    }
}

/// The compression of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Gzip,
    Bzip2,
}

impl Compression {
    /// Detected by the first four bytes.
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

    /// The ending of its files' names; empty for plain files.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Zstd => ".zst",
            Compression::Gzip => ".gz",
            Compression::Bzip2 => ".bz2",
        }
    }
}

/// The first eight bytes; fewer only if there are no more.
pub fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(8).read_to_end(&mut head)?;
    Ok(head)
}

/// Decompressed bytes that are inspected to detect the kind of a file.
pub const LOOK_BYTES: usize = 4096;

/// A decompressed stream.
pub struct Unpacked {
    /// The whole stream, including `beginning`.
    pub reader: Box<dyn BufRead + Send>,
    pub compression: Compression,
    /// The first bytes, at most 4,096.
    pub beginning: Vec<u8>,
}

/// Decompresses a stream if it is compressed, and inspects its beginning. If the stream is cut off there, reading it
/// fails.
///
/// # Errors
/// When the stream cannot be read, or the decoder cannot be set up.
pub fn unpacked(mut stored: impl Read + Send + 'static) -> io::Result<Unpacked> {
    let head = head(&mut stored)?;
    let compression = Compression::of(&head);
    let mut reader = decompressed(Cursor::new(head).chain(stored), compression)?;
    let mut beginning = Vec::new();
    let rest: Box<dyn BufRead + Send> = match reader.by_ref().take(LOOK_BYTES as u64).read_to_end(&mut beginning) {
        Ok(_) => reader,
        Err(error) => Box::new(BufReader::new(Failed(Some(error)))),
    };
    let reader = Box::new(Cursor::new(beginning.clone()).chain(rest));
    Ok(Unpacked { reader, compression, beginning })
}

/// A reader that fails once.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The kind of a file whose beginning shows that it is not text, and so neither games nor lines of samples.
#[must_use]
pub fn not_text(beginning: &[u8]) -> Option<&'static str> {
    let control = |byte: &&u8| byte.is_ascii_control() && !b"\t\n\x0b\x0c\r\x1a".contains(byte);
    let controls = beginning.iter().filter(control).count();
    other_file(beginning).or(match beginning {
        [_, 0x2f, 0xf3, 0x7a, ..] => Some("a network (.nnue)"),
        [_, _, _, _, 0, 0, 0, 0, b'{', ..] => Some("a safetensors file (a network or a checkpoint)"),
        bytes if bytes.contains(&0) || 20 * controls > bytes.len() => Some("binary data of no known format"),
        _ => None,
    })
}

/// The kind of a file that holds neither text nor a network, by its beginning; `None` if that does not show it.
#[must_use]
pub fn other_file(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz-compressed"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("a 7z archive"),
        bytes if bytes.starts_with(super::fsd::MAGIC) => Some("a .fsd file"),
        bytes if bytes.starts_with(b"BINP") => Some("a Stockfish binpack"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("text in UTF-16, not UTF-8"),
        bytes if bytes.starts_with(b"version https://git-lfs") => {
            Some("a Git LFS pointer instead of the file (fetch that with `git lfs pull`)")
        }
        bytes if is_html(bytes) => Some("an HTML page instead of the file (look at it to see what the server said)"),
        _ => None,
    }
}

fn is_html(beginning: &[u8]) -> bool {
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let begins = |tag: &str| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()));
    ["<!doctype html", "<html", "<head"].into_iter().any(begins)
}

/// Refuses a file whose beginning shows that it is not text; errors name `path`.
///
/// # Errors
/// When it is not text.
pub fn check_text(beginning: &[u8], path: &Path) -> Result<(), DataError> {
    not_text(beginning).map_or(Ok(()), |what| Err(DataError::Unsupported { path: path.into(), what }))
}

/// The decompressed bytes of a file of games.
pub struct Input {
    reader: Box<dyn BufRead + Send>,
    pub compression: Compression,
    pub origin: InputPath,
    pub meter: ContentMeter,
}

impl Input {
    /// Opens a file of games or lines of samples.
    ///
    /// # Errors
    /// When the file cannot be read or is not text.
    pub fn open(origin: &InputPath) -> Result<Input, DataError> {
        let path = origin.path();
        let raw = origin.open().map_err(DataError::read(&path))?;
        let meter = ContentMeter::default();
        let opened = unpacked(MeteredReader { raw, meter: meter.clone() }).map_err(DataError::read(&path))?;
        check_text(&opened.beginning, &path)?;
        let Unpacked { reader, compression, .. } = opened;
        Ok(Input { reader, compression, origin: origin.clone(), meter })
    }

    /// Input from memory, for tests.
    #[cfg(test)]
    pub fn from_bytes(bytes: Vec<u8>) -> Input {
        let reader = Box::new(Cursor::new(bytes));
        let compression = Compression::None;
        Input { reader, compression, origin: InputPath::Stdin, meter: ContentMeter::default() }
    }

    /// Appends `limit` bytes and returns their number, which is smaller only at the end. Before an error, the bytes
    /// read are appended.
    pub fn read(&mut self, limit: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        into.reserve(limit);
        self.reader.by_ref().take(limit as u64).read_to_end(into)
    }

    /// Appends bytes up to and including the next line feed, at most `limit`; returns their number, 0 at the end.
    #[cfg(feature = "report")]
    pub fn line(&mut self, limit: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        self.reader.by_ref().take(limit as u64).read_until(b'\n', into)
    }
}

const BUFFER: usize = 1 << 16;

/// Wraps a stream in the decoder of its compression.
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

/// Length and blake3 of a file as stored.
pub fn hash_file(path: &Path) -> Result<(u64, blake3::Hash), DataError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).map_err(DataError::read(path))?).map_err(DataError::read(path))?;
    Ok((hasher.count(), hasher.finalize()))
}

/// Counts and hashes the bytes read from a source, as stored.
#[derive(Clone, Default)]
pub struct ContentMeter(Arc<Mutex<blake3::Hasher>>);

impl ContentMeter {
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

/// A reader that feeds a [`ContentMeter`].
pub struct MeteredReader<R> {
    raw: R,
    meter: ContentMeter,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.meter.hasher().update(&buffer[..read]);
        Ok(read)
    }
}
