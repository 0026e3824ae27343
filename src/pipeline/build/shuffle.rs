//! Shuffling samples on disk.

use rand::seq::SliceRandom;

use super::buckets::{Buckets, buckets_for};
use super::temp_samples::TempSamples;
use crate::data::{DataError, Record};
use crate::units::Seed;

/// Hands all samples to `write` in random order. They are dealt into buckets on disk at random, then each bucket is
/// shuffled in memory: every order is equally likely, and the order depends on the seed and the samples only.
pub fn shuffled(
    mut samples: TempSamples,
    seed: Seed,
    mut write: impl FnMut(&[Record]) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let bucket_count = buckets_for::<Record>(samples.count());
    let draws = seed.draws("shuffle");
    let bucket_of = |number: u64| draws.below(number, bucket_count as u32) as usize;
    let mut sizes = vec![0; bucket_count];
    (0..samples.count()).for_each(|number| sizes[bucket_of(number)] += 1);
    let mut buckets = Buckets::create(samples.output(), &sizes)?;
    samples.for_each_block(|first, records| {
        records.iter().zip(first..).try_for_each(|(record, number)| buckets.push(bucket_of(number), record))
    })?;
    for bucket in 0..bucket_count {
        let mut records = buckets.read(bucket)?;
        records.shuffle(&mut seed.stream("shuffle", bucket as u64));
        write(&records)?;
    }
    Ok(())
}
