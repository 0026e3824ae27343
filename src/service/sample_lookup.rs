//! The sample behind a row of a batch, by the number that batches have in `sample_index`.

use super::all_segments::DecodeBuffers;
use super::batch_source::BatchSource;
use super::{PreparedStream, ServiceError};
use crate::data::Record;

/// A sample as its file has it.
#[derive(Copy, Clone, Debug)]
pub struct DataSample {
    pub record: Record,
    /// The number of its game in the data; `None` in a binpack that is decoded while it is served.
    pub game: Option<u32>,
}

impl PreparedStream {
    /// The samples with these numbers, in this order. A binpack is decoded for them, segment by segment.
    ///
    /// # Errors
    /// When the data have no sample of such a number, or cannot be read.
    pub fn samples(&self, numbers: &[u32]) -> Result<Vec<DataSample>, ServiceError> {
        let missing = |number: u32, samples: u64| {
            ServiceError::Request(format!("the data have {samples} samples, numbered from 0; there is no {number}"))
        };
        match &self.source {
            BatchSource::Mapped { files, .. } => {
                let sample = |number: &u32| match files.sample(*number) {
                    Some((record, game)) => Ok(DataSample { record, game: Some(game) }),
                    None => Err(missing(*number, files.len() as u64)),
                };
                numbers.iter().map(sample).collect()
            }
            BatchSource::Binpack(batches) => {
                let segments = batches.segments();
                let mut buffers = DecodeBuffers::default();
                let mut decoded = None;
                // By number, so that each segment is decoded once.
                let mut order: Vec<usize> = (0..numbers.len()).collect();
                order.sort_unstable_by_key(|place| numbers[*place]);
                let mut samples = Vec::new();
                for place in &order {
                    let number = numbers[*place];
                    let segment = segments.of_sample(number).ok_or_else(|| missing(number, segments.samples()))?;
                    if decoded != Some(segment) {
                        segments.decode_all(segment, &mut buffers)?;
                        decoded = Some(segment);
                    }
                    let at = (number - segments.first_sample(segment)) as usize;
                    let record = buffers.records.get(at).ok_or_else(|| missing(number, segments.samples()))?;
                    samples.push((place, DataSample { record: *record, game: None }));
                }
                samples.sort_unstable_by_key(|(place, _)| *place);
                Ok(samples.into_iter().map(|(_, sample)| sample).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::data::formats::binpack::random_games;
    use crate::data::{DataFiles, Method, Needs};
    use crate::service::{LocalStream, NextBatch, Request, Shard, prepare};

    /// Every row of a stream is the sample that its number names.
    fn check(request: Request, with_games: bool) {
        let stream = prepare(request, &()).expect("prepared");
        let batches = LocalStream::start(&stream, 0, Shard::WHOLE).expect("started");
        let mut rows = 0;
        while let NextBatch::Ready(batch) = batches.next(Duration::from_secs(60)).expect("no failure") {
            let numbers: Vec<u32> = batch.copied("sample_index").expect("there");
            let plies: Vec<u16> = batch.copied("ply").expect("there");
            let pieces: Vec<u8> = batch.copied("piece_count").expect("there");
            let samples = stream.samples(&numbers).expect("there");
            assert_eq!(samples.len(), numbers.len());
            for (number, sample) in samples.iter().enumerate() {
                assert_eq!(sample.record.ply().0, plies[number]);
                let of_positions = number * stream.request().positions_per_sample();
                assert_eq!(sample.record.board().count() as u8, pieces[of_positions]);
                assert_eq!(sample.game.is_some(), with_games);
            }
            rows += numbers.len() as u64;
        }
        assert_eq!(rows, stream.samples_per_epoch());
        let error = stream.samples(&[u32::MAX]).expect_err("there is none").to_string();
        assert!(error.contains("samples, numbered from 0; there is no 4294967295"), "{error}");
    }

    #[test]
    fn rows_are_the_samples_of_their_numbers() {
        let data = crate::pipeline::sample_games().expect("the sample games");
        check(Request::new("piece", data, Method::Eval), true);
        let folder = tempfile::tempdir().expect("a folder");
        let paths = [("a.binpack", 60), ("b.binpack", 20)].map(|(name, games)| {
            let path = folder.path().join(name);
            random_games(&path, games);
            path
        });
        let data = DataFiles::from(paths.to_vec());
        for method in [Method::Eval, Method::Pqr] {
            check(Request { needs: Some(Needs::Any), ..Request::new("piece", data.clone(), method) }, false);
        }
    }
}
