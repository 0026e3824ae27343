//! Buckets on disk, each small enough to be sorted or shuffled in memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::temp_samples::unnamed_file;
use crate::data::DataError;

/// Bytes per bucket, on average.
const BUCKET_BYTES: u64 = 16 << 20;
const MAX_BUCKETS: u64 = 4096;
/// Bytes of a bucket buffered in memory before they are written.
const BUFFER_BYTES: usize = 1 << 13;

/// Items of type `T` in numbered buckets, all in one temporary file.
pub struct Buckets<T> {
    output: PathBuf,
    file: File,
    buckets: Vec<SampleBucket>,
    item: PhantomData<T>,
}

struct SampleBucket {
    /// Byte at which the bucket begins in the file.
    start: u64,
    /// Bytes written to the file.
    written: u64,
    buffer: Vec<u8>,
}

/// The number of buckets for `count` items; it depends on nothing else.
pub fn buckets_for<T>(count: u64) -> usize {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    bytes.div_ceil(BUCKET_BYTES).clamp(1, MAX_BUCKETS) as usize
}

impl<T: Pod> Buckets<T> {
    /// `counts` holds the number of items of each bucket. `output` is the file that the items will finally be written
    /// to.
    pub fn create(output: &Path, counts: &[u64]) -> Result<Buckets<T>, DataError> {
        let mut start = 0;
        let bucket = |count: &u64| {
            let bucket = SampleBucket { start, written: 0, buffer: Vec::new() };
            start += count * size_of::<T>() as u64;
            bucket
        };
        let buckets = counts.iter().map(bucket).collect();
        Ok(Buckets { output: output.into(), file: unnamed_file(output)?, buckets, item: PhantomData })
    }

    pub fn push(&mut self, bucket: usize, item: &T) -> Result<(), DataError> {
        let bucket = &mut self.buckets[bucket];
        bucket.buffer.extend_from_slice(bytemuck::bytes_of(item));
        if bucket.buffer.len() >= BUFFER_BYTES {
            bucket.flush(&mut self.file).map_err(DataError::write(&self.output))?;
        }
        Ok(())
    }

    /// The items of a bucket, in the order in which they were pushed.
    pub fn read(&mut self, bucket: usize) -> Result<Vec<T>, DataError> {
        let Buckets { output, file, buckets, .. } = self;
        let bucket = &mut buckets[bucket];
        bucket.flush(file).map_err(DataError::write(output))?;
        let mut items = vec![T::zeroed(); bucket.written as usize / size_of::<T>()];
        let mut read = || {
            file.seek(SeekFrom::Start(bucket.start))?;
            file.read_exact(bytemuck::cast_slice_mut(&mut items))
        };
        read().map_err(DataError::read(output))?;
        Ok(items)
    }
}

impl SampleBucket {
    fn flush(&mut self, file: &mut File) -> std::io::Result<()> {
        if !self.buffer.is_empty() {
            file.seek(SeekFrom::Start(self.start + self.written))?;
            file.write_all(&self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}
