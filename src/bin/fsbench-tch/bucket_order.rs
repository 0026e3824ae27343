//! A batch's positions by output bucket.

use fsbench::net::OutputBuckets;
use fsbench::train::trainer::Batch;
use tch::{TchError, Tensor};

/// A batch's positions, sorted by bucket.
pub struct BucketOrder {
    /// Indices in the batch.
    pub positions: Vec<u32>,
    /// The bucket of each position.
    pub buckets: Vec<u8>,
    /// Number of positions in each bucket.
    pub counts: Vec<usize>,
    /// The index of each position in the sorted order; `None` if the order is unchanged.
    sorted_indices: Option<Vec<i64>>,
}

impl BucketOrder {
    #[must_use]
    pub fn new(batch: &Batch<'_>, buckets: &OutputBuckets) -> BucketOrder {
        let mut positions: Vec<u32> = (0..batch.positions() as u32).collect();
        if buckets.count == 1 {
            let count = positions.len();
            return BucketOrder { positions, buckets: vec![0; count], counts: vec![count], sorted_indices: None };
        }
        let bucket = |position: &u32| buckets.of(usize::from(batch.bucket_inputs[*position as usize])) as u8;
        positions.sort_by_key(bucket);
        let mut counts = vec![0; buckets.count];
        let mut sorted_indices = vec![0; positions.len()];
        let sorted: Vec<u8> = positions.iter().map(bucket).collect();
        for (index, (position, bucket)) in positions.iter().zip(&sorted).enumerate() {
            counts[*bucket as usize] += 1;
            sorted_indices[*position as usize] = index as i64;
        }
        BucketOrder { positions, buckets: sorted, counts, sorted_indices: Some(sorted_indices) }
    }

    /// Brings outputs from the sorted order into the batch's.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn restore(&self, out: Tensor) -> Result<Tensor, TchError> {
        match &self.sorted_indices {
            None => Ok(out),
            Some(indices) => out.f_index_select(0, &Tensor::f_from_slice(indices)?.f_to_device(out.device())?),
        }
    }
}
