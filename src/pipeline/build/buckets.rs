//! Items dealt into buckets on disk, each small enough to be worked on in memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::temp_samples::unnamed;
use crate::data::DataError;

/// Bytes that a bucket should hold, on average.
const BUCKET_BYTES: u64 = 16 << 20;
const MOST_BUCKETS: u64 = 4096;
/// Bytes of a bucket that wait in memory.
const WAITING_BYTES: usize = 1 << 13;

pub struct Buckets<T> {
    output: PathBuf,
    file: File,
    buckets: Vec<Bucket>,
    item: PhantomData<T>,
}

struct Bucket {
    /// Where it begins in the file.
    start: u64,
    /// Bytes written.
    written: u64,
    waiting: Vec<u8>,
}

/// How many buckets `count` items take; depends on nothing else.
pub fn buckets_for<T>(count: u64) -> usize {
    let bytes = count.saturating_mul(size_of::<T>() as u64);
    bytes.div_ceil(BUCKET_BYTES).clamp(1, MOST_BUCKETS) as usize
}

impl<T: Pod> Buckets<T> {
    /// `counts`: how many items each bucket will get. `output` is what they are for.
    pub fn create(output: &Path, counts: &[u64]) -> Result<Buckets<T>, DataError> {
        let mut start = 0;
        let bucket = |count: &u64| {
            let bucket = Bucket { start, written: 0, waiting: Vec::new() };
            start += count * size_of::<T>() as u64;
            bucket
        };
        let buckets = counts.iter().map(bucket).collect();
        Ok(Buckets { output: output.into(), file: unnamed(output)?, buckets, item: PhantomData })
    }

    pub fn push(&mut self, bucket: usize, item: &T) -> Result<(), DataError> {
        let bucket = &mut self.buckets[bucket];
        bucket.waiting.extend_from_slice(bytemuck::bytes_of(item));
        if bucket.waiting.len() >= WAITING_BYTES {
            bucket.flush(&mut self.file).map_err(DataError::write(&self.output))?;
        }
        Ok(())
    }

    /// The items of a bucket, in the order they came.
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

impl Bucket {
    fn flush(&mut self, file: &mut File) -> std::io::Result<()> {
        if !self.waiting.is_empty() {
            file.seek(SeekFrom::Start(self.start + self.written))?;
            file.write_all(&self.waiting)?;
            self.written += self.waiting.len() as u64;
            self.waiting.clear();
        }
        Ok(())
    }
}
