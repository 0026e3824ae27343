//! Finding repeated samples without holding them in memory: keys are dealt into buckets on disk, and each bucket is
//! sorted.

use super::buckets::{Buckets, buckets_for};
use super::drop_reason::{BuildCounts, DropReason};
use super::options::Dedup;
use super::temp_samples::TempSamples;
use crate::data::{DataError, Record};

/// A sample's hash and its number.
#[derive(Copy, Clone, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct NumberedKey {
    key: u64,
    number: u64,
}

/// Keeps the first of equal samples.
pub fn dedup(mut samples: TempSamples, dedup: Dedup, counts: &mut BuildCounts) -> Result<TempSamples, DataError> {
    let bucket_count = buckets_for::<NumberedKey>(samples.count());
    let bucket_of = |key: u64| ((u128::from(key) * bucket_count as u128) >> 64) as usize;
    let key_of = |record: &Record| record.key(dedup == Dedup::Move);
    let mut sizes = vec![0; bucket_count];
    samples.for_each(|_, record| sizes[bucket_of(key_of(record))] += 1)?;
    let mut buckets = Buckets::create(samples.output(), &sizes)?;
    samples.for_each_block(|first, records| {
        records.iter().zip(first..).try_for_each(|(record, number)| {
            let key = key_of(record);
            buckets.push(bucket_of(key), &NumberedKey { key, number })
        })
    })?;
    // One bit per sample.
    let mut repeated = vec![0u64; samples.count().div_ceil(64) as usize];
    for bucket in 0..bucket_count {
        let mut keys = buckets.read(bucket)?;
        keys.sort_unstable_by_key(|numbered| (numbered.key, numbered.number));
        for pair in keys.windows(2).filter(|pair| pair[0].key == pair[1].key) {
            repeated[(pair[1].number / 64) as usize] |= 1 << (pair[1].number % 64);
        }
    }
    let is_first = |number: u64, _: &Record| repeated[(number / 64) as usize] >> (number % 64) & 1 == 0;
    samples.retain(DropReason::Duplicate, counts, is_first)
}
