//! Bytes on their way in: counted and hashed as they are stored, then decompressed.

use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::sink::Shared;
use crate::data::input::{self, Unpacked};

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
            *self.shared.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        }
        Ok(count)
    }
}

/// What stands behind a compression; [`Shared`] is told which.
///
/// # Errors
/// When nothing can be read.
pub fn unpacked(reader: impl Read + Send + 'static, shared: &Shared) -> io::Result<Unpacked> {
    let unpacked = input::unpacked(reader)?;
    *shared.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(unpacked.compression.name());
    Ok(unpacked)
}
