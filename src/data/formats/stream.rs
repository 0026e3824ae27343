//! Bytes on their way in: counted and hashed as they are stored, then decompressed.

use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::sink::Shared;
use crate::data::input::{Compression, decompressed, head};

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
pub fn text(mut reader: impl Read + Send + 'static) -> io::Result<(Box<dyn BufRead + Send>, &'static str)> {
    let head = head(&mut reader)?;
    let compression = Compression::of(&head);
    Ok((decompressed(Cursor::new(head).chain(reader), compression)?, compression.name()))
}
