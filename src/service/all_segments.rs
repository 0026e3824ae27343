//! The segments of several binpacks in a row.

use super::ServiceError;
use crate::data::Record;
use crate::data::formats::binpack::{Segment, Segments};

/// The bytes of a segment, and its records.
#[derive(Default)]
pub(super) struct DecodeBuffers {
    pub(super) bytes: Vec<u8>,
    pub(super) records: Vec<Record>,
}

/// The segments of all files, numbered one file after another.
pub(super) struct AllSegments {
    pub(super) files: Vec<Segments>,
    /// Number of each file's first segment.
    first: Vec<usize>,
    pub(super) count: usize,
}

impl AllSegments {
    pub(super) fn new(files: Vec<Segments>) -> AllSegments {
        let mut count = 0;
        let mut add = |segments: &Segments| {
            count += segments.segments().len();
            count - segments.segments().len()
        };
        let first = files.iter().map(&mut add).collect();
        AllSegments { files, first, count }
    }

    /// The file of a segment, and the segment's number in it.
    pub(super) fn locate(&self, segment: usize) -> (&Segments, usize) {
        let file = self.first.partition_point(|first| *first <= segment) - 1;
        (&self.files[file], segment - self.first[file])
    }

    pub(super) fn get(&self, segment: usize) -> &Segment {
        let (file, segment) = self.locate(segment);
        &file.segments()[segment]
    }

    /// The number of a segment's first sample in the data.
    pub(super) fn first_sample(&self, segment: usize) -> u32 {
        let (file, segment) = self.locate(segment);
        file.first_sample(segment)
    }

    /// The segment of the sample with this number, if there is one.
    pub(super) fn of_sample(&self, number: u32) -> Option<usize> {
        if u64::from(number) >= self.samples() {
            return None;
        }
        let mut segment = None;
        for (first, file) in self.first.iter().zip(&self.files) {
            segment = file.of_sample(number).map(|in_file| first + in_file).or(segment);
        }
        segment
    }

    /// Samples of all files, including those that the method cannot use.
    pub(super) fn samples(&self) -> u64 {
        self.files.iter().map(Segments::samples).sum()
    }

    pub(super) fn decode(&self, segment: usize, buffers: &mut DecodeBuffers) -> Result<(), ServiceError> {
        let (file, segment) = self.locate(segment);
        Ok(file.decode(segment, &mut buffers.bytes, &mut buffers.records)?)
    }

    /// As [`AllSegments::decode`] with all samples, including those that the method cannot use.
    pub(super) fn decode_all(&self, segment: usize, buffers: &mut DecodeBuffers) -> Result<(), ServiceError> {
        let (file, segment) = self.locate(segment);
        buffers.records.clear();
        Ok(file.decode_all(segment, &mut buffers.bytes, &mut buffers.records)?)
    }
}
