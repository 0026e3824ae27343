//! Bytes on their way in: counted and hashed as they are stored, then decompressed.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::sink::Shared;

const BUFFER: usize = 1 << 18;

/// Counts and hashes what is read through it, and leaves both in [`Shared`] when the end was seen.
pub struct Tee<R> {
    reader: R,
    hasher: blake3::Hasher,
    shared: Arc<Shared>,
}

impl<R: Read> Tee<R> {
    pub fn new(reader: R, shared: Arc<Shared>) -> Tee<R> {
        Tee { reader, hasher: blake3::Hasher::new(), shared }
    }
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.shared.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        if count == 0 && !buffer.is_empty() {
            let told = (self.hasher.count(), self.hasher.finalize());
            *self.shared.source.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(told);
        }
        Ok(count)
    }
}

/// The text behind zstd, gzip or bzip2, told by its first bytes, and the compression's name.
pub fn decompressed(mut reader: impl Read + Send + 'static) -> io::Result<(Box<dyn BufRead + Send>, &'static str)> {
    let mut head = Vec::new();
    reader.by_ref().take(4).read_to_end(&mut head)?;
    let kind = match head.as_slice() {
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0x1f, 0x8b, ..] => "gzip",
        [b'B', b'Z', b'h', ..] => "bzip2",
        _ => "plain",
    };
    let whole = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(reader));
    let text: Box<dyn BufRead + Send> = match kind {
        "zstd" => Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::with_buffer(whole)?)),
        "gzip" => Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(whole))),
        "bzip2" => Box::new(BufReader::with_capacity(BUFFER, bzip2::bufread::MultiBzDecoder::new(whole))),
        _ => Box::new(whole),
    };
    Ok((text, kind))
}
