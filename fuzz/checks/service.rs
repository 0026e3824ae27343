//! The output of a service, as its consumer reads it: the JSON line, the control bytes, and a slot's header and arrays.

use std::io::{BufReader, Cursor};

use fsbench::data::Method;
use fsbench::service::{Announcement, BatchReader, ClientBatch, Description, Layout};

use super::{file, split_at_zero};

/// The shared memory has at least this many bytes; bytes that the input lacks are zero.
const MEMORY: usize = 16 << 10;

/// The most batches that are read.
const BATCHES: usize = 300;

/// The input: the JSON line up to a zero byte, in which `@` stands for the path of the shared memory; the number of
/// control bytes and the bytes; the shared memory.
pub fn service_client(bytes: &[u8]) {
    let (line, rest) = split_at_zero(bytes);
    let (count, rest) = rest.split_first().map_or((0, rest), |(count, rest)| (usize::from(*count), rest));
    let (control, slots) = rest.split_at(count.min(rest.len()));
    let mut line = String::from_utf8_lossy(line).into_owned();
    // A line that is refused needs no memory.
    if serde_json::from_str::<serde_json::Value>(&line).is_ok() {
        let mut memory = slots.to_vec();
        memory.resize(memory.len().max(MEMORY), 0);
        line = line.replace('@', &file("memory", &memory).display().to_string());
    }
    let output = Cursor::new([line.as_bytes(), b"\n", control].concat());
    let Ok(Some(mut reader)) = BatchReader::open(BufReader::new(output)) else { return };
    let Description { num_features: features, layout, method, words_per_position, .. } = *reader.description();
    for _ in 0..BATCHES {
        let Ok(Announcement::Batch { .. }) = reader.next() else { return };
        let batch = reader.batch();
        for side in [batch.stm(), batch.nstm()] {
            if layout == Layout::Csr {
                assert_eq!(side.offsets.len(), batch.positions() + 1);
                let rows = side.offsets.windows(2).map(|pair| &side.indices[pair[0] as usize..pair[1] as usize]);
                assert!(rows.flatten().all(|index| (*index as u32) < features));
            }
        }
        if layout == Layout::Bitset {
            let words = batch.positions() * words_per_position;
            assert_eq!([batch.stm_bits().len(), batch.nstm_bits().len()], [words; 2]);
        }
        if method == Method::Eval {
            assert_eq!([batch.scores().len(), batch.results().len()], [batch.samples(); 2]);
        }
        assert_eq!(batch.piece_counts().len(), batch.positions());
        assert_eq!([batch.plies().len(), batch.sample_indices().len()], [batch.samples(); 2]);
        read_all(&batch);
    }
}

/// Reads every element, which must be the client's own memory.
fn read_all(batch: &ClientBatch<'_>) {
    let bits = batch.stm_bits().iter().chain(batch.nstm_bits()).fold(0, |all, word| all | word);
    let targets: f32 = batch.scores().iter().chain(batch.results()).sum();
    let plies = batch.plies().iter().map(|ply| u64::from(*ply)).sum::<u64>();
    let counts = batch.piece_counts().iter().map(|count| u64::from(*count)).sum::<u64>();
    let indices = batch.sample_indices().iter().map(|index| u64::from(*index)).sum::<u64>();
    std::hint::black_box((bits, targets, plies, counts, indices, batch.epoch(), batch.number()));
}
