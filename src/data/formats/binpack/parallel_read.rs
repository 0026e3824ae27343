//! Reads the samples of a whole binpack: all cores decode chunks, which are sent in file order.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPool;

use super::decoder::{BrokenChunk, Chunk, Chunks, Decoder};
use crate::data::formats::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use crate::data::{DataError, Record};

/// Limits on the chunks decoded at once and on their bytes, which bound the memory.
const CHUNKS_IN_FLIGHT: usize = 8;
const BYTES_IN_FLIGHT: u64 = 64 << 20;
/// Samples of a chunk that are decoded ahead; the rest of larger chunks follows in the chunk's turn.
const SAMPLES_AHEAD: usize = 1 << 19;

/// A chunk that is being decoded.
struct PendingChunk {
    bytes: u64,
    decoded: Receiver<DecodedChunk>,
}

struct DecodedChunk {
    offset: u64,
    decoder: Decoder,
    blocks: Vec<Vec<Record>>,
    problem: Option<super::ChunkError>,
}

/// Sends all samples of a binpack. Before an error come the samples before it.
pub fn read(reader: impl Read + Send + 'static, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    let broken = |BrokenChunk { offset, problem }| DataError::Chunk { path: path.into(), chunk: offset, problem };
    let most = sender.decoders.current_num_threads().clamp(1, CHUNKS_IN_FLIGHT) + 1;
    let unpacked = block_queue::unpacked(reader, &sender.state).map_err(DataError::read(path))?;
    let mut chunks = Chunks::new(unpacked.reader);
    let mut pending: VecDeque<PendingChunk> = VecDeque::new();
    loop {
        let next = chunks.peek().map_err(DataError::read(path))?;
        let fits = |pending: &VecDeque<PendingChunk>| {
            let bytes: u64 = pending.iter().map(|chunk| chunk.bytes).sum();
            matches!(next, Ok(Some(size)) if pending.len() < most && bytes + size <= BYTES_IN_FLIGHT)
        };
        while !fits(&pending)
            && let Some(front) = pending.pop_front()
        {
            if !send_chunk(&front, path, sender)? {
                return Ok(());
            }
        }
        if next.map_err(broken)?.is_none() {
            return Ok(());
        }
        let chunk = chunks.next_chunk().map_err(DataError::read(path))?;
        if chunk.is_err() {
            for front in std::mem::take(&mut pending) {
                if !send_chunk(&front, path, sender)? {
                    return Ok(());
                }
            }
        }
        pending.extend(chunk.map_err(broken)?.map(|chunk| start_decoding(chunk, sender.decoders)));
    }
}

fn start_decoding(chunk: Chunk, decoders: &ThreadPool) -> PendingChunk {
    let bytes = chunk.bytes.len() as u64;
    let (sender, decoded) = sync_channel(1);
    decoders.spawn(move || {
        // The receiver may have been dropped.
        let _ = sender.send(decode(chunk));
    });
    PendingChunk { bytes, decoded }
}

fn decode(chunk: Chunk) -> DecodedChunk {
    let mut decoder = Decoder::new(chunk.bytes);
    let (mut blocks, mut problem) = (Vec::new(), None);
    while problem.is_none() && blocks.len() < SAMPLES_AHEAD / BLOCK_SAMPLES {
        let mut block = Vec::with_capacity(BLOCK_SAMPLES);
        match decoder.read(BLOCK_SAMPLES, &mut block) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => problem = Some(error),
        }
        blocks.push(block);
    }
    DecodedChunk { offset: chunk.offset, decoder, blocks, problem }
}

/// Sends a chunk's samples; false when the reader was dropped.
fn send_chunk(pending: &PendingChunk, path: &Path, sender: &mut BlockSender) -> Result<bool, DataError> {
    let gone = |_| DataError::Read { path: path.into(), cause: std::io::Error::other("a decoding thread stopped") };
    let DecodedChunk { offset, mut decoder, blocks, problem } = pending.decoded.recv().map_err(gone)?;
    for block in blocks {
        if !sender.send(block)? {
            return Ok(false);
        }
    }
    let broken = |problem| DataError::Chunk { path: path.into(), chunk: offset, problem };
    if let Some(problem) = problem {
        return Err(broken(problem));
    }
    loop {
        let mut block = Vec::with_capacity(BLOCK_SAMPLES);
        let read = decoder.read(BLOCK_SAMPLES, &mut block);
        let count = block.len();
        if count > 0 && !sender.send(block)? {
            return Ok(false);
        }
        read.map_err(broken)?;
        if count == 0 {
            return Ok(true);
        }
    }
}
