//! Finds the chunks of a binpack. A chunk whose header is damaged is left out; one whose header claims a wrong size
//! ends where the next header stands, so that damage to a chunk costs that chunk alone.

use std::fs::File;
use std::io::{self, Read};

use memchr::memmem::Finder;

use super::error::ChunkError;
use super::{HEADER_BYTES, MAGIC, MAX_CHUNK_BYTES};
use crate::system;

/// Bytes searched for a header at once, at first and at most.
const FIRST_SEARCH_BYTES: usize = 1 << 12;
const SEARCH_BYTES: usize = 1 << 20;

/// A chunk's offset in the file, and its bytes after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    /// Empty if the header is damaged.
    pub bytes: Vec<u8>,
    /// Why the file does not match the header's claims.
    pub damage: Option<ChunkError>,
}

/// A chunk's place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkSpan {
    /// Offset of its header.
    pub offset: u64,
    /// Length of its contents after the header.
    pub bytes: u64,
    /// Offset of the next header.
    pub next: u64,
    pub damage: Option<ChunkError>,
}

/// The bytes of a file.
pub trait FileBytes {
    /// `count` bytes from offset `from` on, fewer at the end of the file. `from` must not lie before the bytes that
    /// were released.
    fn bytes(&mut self, from: u64, count: usize) -> io::Result<&[u8]>;
    /// Tells that no bytes before `until` are needed any more.
    fn release(&mut self, until: u64);
}

/// The chunk whose header should stand at offset `at`; `None` at the end of the file.
///
/// # Errors
/// When the file cannot be read.
pub fn chunk_at(file: &mut impl FileBytes, at: u64) -> io::Result<Option<ChunkSpan>> {
    let header = file.bytes(at, HEADER_BYTES)?;
    if header.is_empty() {
        return Ok(None);
    }
    let size = match chunk_size(header) {
        Ok(size) => size,
        Err(damage) => {
            let next = skip_to_header(file, at + 1)?;
            return Ok(Some(ChunkSpan { offset: at, bytes: 0, next, damage: Some(damage) }));
        }
    };
    let start = at + HEADER_BYTES as u64;
    let end = start + size;
    // From the byte before the end, which shows whether the file reaches that far.
    let tail = file.bytes(end - 1, 1 + HEADER_BYTES)?;
    let is_followed = tail.len() == 1 || tail.get(1..).is_some_and(|next| chunk_size(next).is_ok());
    let is_whole = !tail.is_empty();
    if is_whole && is_followed {
        return Ok(Some(ChunkSpan { offset: at, bytes: size, next: end, damage: None }));
    }
    if let Some(next) = find_header(file, start, end)? {
        let found = next - start;
        return Ok(Some(ChunkSpan {
            offset: at,
            bytes: found,
            next,
            damage: Some(ChunkError::WrongSize { size, found }),
        }));
    }
    if is_whole {
        return Ok(Some(ChunkSpan { offset: at, bytes: size, next: end, damage: None }));
    }
    let left = file.bytes(start, size as usize)?.len() as u64;
    Ok(Some(ChunkSpan { offset: at, bytes: left, next: start + left, damage: Some(ChunkError::CutOff { size, left }) }))
}

/// The size of a chunk by its header.
fn chunk_size(header: &[u8]) -> Result<u64, ChunkError> {
    let magic = &header[..header.len().min(MAGIC.len())];
    if magic != &MAGIC[..magic.len()] {
        return Err(ChunkError::Magic { found: magic.escape_ascii().to_string() });
    }
    let Some(size) = header.last_chunk::<4>().filter(|_| header.len() == HEADER_BYTES) else {
        return Err(ChunkError::Header { bytes: header.len() });
    };
    let size = u64::from(u32::from_le_bytes(*size));
    if size > MAX_CHUNK_BYTES {
        return Err(ChunkError::TooLarge { size, most: MAX_CHUNK_BYTES });
    }
    Ok(size)
}

/// The offset of the first sound header in a stretch of the file.
fn find_header(file: &mut impl FileBytes, from: u64, until: u64) -> io::Result<Option<u64>> {
    let mut from = from;
    let mut window = FIRST_SEARCH_BYTES;
    while from < until {
        let bytes = file.bytes(from, window)?;
        if let Some(found) = header_in(bytes) {
            let found = from + found as u64;
            return Ok((found < until).then_some(found));
        }
        if bytes.len() < window {
            break;
        }
        from += next_search(window);
        window = SEARCH_BYTES.min(2 * window);
    }
    Ok(None)
}

/// The offset of the first sound header from `from` on, or the end of the file. Releases the bytes before.
fn skip_to_header(file: &mut impl FileBytes, mut from: u64) -> io::Result<u64> {
    loop {
        file.release(from);
        let bytes = file.bytes(from, SEARCH_BYTES)?;
        if let Some(found) = header_in(bytes) {
            return Ok(from + found as u64);
        }
        if bytes.len() < SEARCH_BYTES {
            return Ok(from + bytes.len() as u64);
        }
        from += next_search(SEARCH_BYTES);
    }
}

/// Where the first sound header stands in `bytes`.
fn header_in(bytes: &[u8]) -> Option<usize> {
    let is_header = |at: &usize| bytes.get(*at..*at + HEADER_BYTES).is_some_and(|header| chunk_size(header).is_ok());
    Finder::new(MAGIC).find_iter(bytes).find(is_header)
}

/// How far the next window lies behind a searched one. A header may lie across the end.
const fn next_search(window: usize) -> u64 {
    (window + 1 - HEADER_BYTES) as u64
}

/// Reads the chunks of a stream in order.
pub struct Chunks<R> {
    stream: StreamBytes<R>,
    next: u64,
}

impl<R: Read> Chunks<R> {
    pub const fn new(reader: R) -> Chunks<R> {
        Chunks { stream: StreamBytes { reader, bytes: Vec::new(), start: 0, offset: 0, ended: false }, next: 0 }
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// When the stream cannot be read. Damage is no error: the chunk names it.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let Some(ChunkSpan { offset, bytes, next, damage }) = chunk_at(&mut self.stream, self.next)? else {
            return Ok(None);
        };
        let bytes = match bytes {
            0 => Vec::new(),
            count => self.stream.bytes(offset + HEADER_BYTES as u64, count as usize)?.to_vec(),
        };
        self.stream.release(next);
        self.next = next;
        Ok(Some(Chunk { offset, bytes, damage }))
    }
}

/// The bytes of a stream from the released ones on.
struct StreamBytes<R> {
    reader: R,
    bytes: Vec<u8>,
    /// The bytes before this index are released.
    start: usize,
    /// Offset in the stream of `bytes[start]`.
    offset: u64,
    ended: bool,
}

impl<R: Read> FileBytes for StreamBytes<R> {
    fn bytes(&mut self, from: u64, count: usize) -> io::Result<&[u8]> {
        let first = self.start + (from - self.offset) as usize;
        let missing = (first + count).saturating_sub(self.bytes.len()) as u64;
        if missing > 0 && !self.ended {
            // A size in a header is not trusted: memory grows with the bytes read.
            let read = self.reader.by_ref().take(missing).read_to_end(&mut self.bytes)?;
            self.ended = (read as u64) < missing;
        }
        let end = (first + count).min(self.bytes.len());
        Ok(&self.bytes[first.min(end)..end])
    }

    fn release(&mut self, until: u64) {
        self.start += (until - self.offset) as usize;
        self.offset = until;
        if self.start * 2 > self.bytes.len() {
            let released = self.start.min(self.bytes.len());
            self.bytes.drain(..released);
            self.start -= released;
        }
    }
}

/// A file that is read at any offset, up to its length.
pub struct StoredBytes<'a> {
    file: &'a File,
    length: u64,
    buffer: Vec<u8>,
}

impl StoredBytes<'_> {
    pub const fn new(file: &File, length: u64) -> StoredBytes<'_> {
        StoredBytes { file, length, buffer: Vec::new() }
    }
}

impl FileBytes for StoredBytes<'_> {
    fn bytes(&mut self, from: u64, count: usize) -> io::Result<&[u8]> {
        let count = self.length.saturating_sub(from).min(count as u64) as usize;
        self.buffer.resize(count, 0);
        system::read_exact_at(self.file, &mut self.buffer, from)?;
        Ok(&self.buffer)
    }

    fn release(&mut self, _: u64) {}
}
