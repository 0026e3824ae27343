//! Reads the sound samples of a whole binpack: all cores decode chunks, which are sent in file order.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPool;

use super::recovery::{BrokenChain, ChainLog};
use super::{Chunk, ChunkDecoder, ChunkError, Chunks};
use crate::data::formats::block_queue::{self, BLOCK_SAMPLES, BlockSender};
use crate::data::formats::skipped::{SkippedSample, SkippedSamples};
use crate::data::{DataError, Record};

/// Limits on the chunks decoded at once and on their bytes, which bound the memory.
const CHUNKS_IN_FLIGHT: usize = 8;
const BYTES_IN_FLIGHT: u64 = 64 << 20;
/// Samples of a chunk that are decoded ahead; the rest of larger chunks follows in the chunk's turn.
const SAMPLES_AHEAD: usize = 1 << 19;
/// Samples after which a block is complete. Most chains that begin before still fit into the block.
const WANTED_SAMPLES: usize = BLOCK_SAMPLES - 1024;

/// A chunk that is being decoded.
struct PendingChunk {
    bytes: u64,
    decoded: Receiver<DecodedChunk>,
}

struct DecodedChunk {
    reading: ChunkReader,
    blocks: Vec<Vec<Record>>,
}

/// Sends all sound samples of a binpack; the broken chunks and chains are skipped and counted.
pub fn read(reader: impl Read + Send + 'static, path: &Path, sender: &mut BlockSender) -> Result<(), DataError> {
    let most = sender.decoders.current_num_threads().clamp(1, CHUNKS_IN_FLIGHT) + 1;
    let unpacked = block_queue::unpacked(reader, &sender.state).map_err(DataError::read(path))?;
    let mut chunks = Chunks::new(unpacked.reader);
    let mut pending: VecDeque<PendingChunk> = VecDeque::new();
    loop {
        let next = chunks.next_chunk();
        let fits = |pending: &VecDeque<PendingChunk>| {
            let bytes: u64 = pending.iter().map(|chunk| chunk.bytes).sum();
            let more = next.as_ref().ok().and_then(Option::as_ref).map(|chunk| chunk.bytes.len() as u64);
            more.is_some_and(|more| pending.len() < most && bytes + more <= BYTES_IN_FLIGHT)
        };
        while !fits(&pending)
            && let Some(front) = pending.pop_front()
        {
            if !send_chunk(&front, path, sender)? {
                return Ok(());
            }
        }
        let Some(chunk) = next.map_err(DataError::read(path))? else { return Ok(()) };
        pending.push_back(start_decoding(chunk, sender.decoders));
    }
}

fn start_decoding(chunk: Chunk, decoders: &ThreadPool) -> PendingChunk {
    let bytes = chunk.bytes.len() as u64;
    let (sender, decoded) = sync_channel(1);
    decoders.spawn(move || {
        let mut reading = ChunkReader::new(chunk);
        let blocks = (0..SAMPLES_AHEAD / BLOCK_SAMPLES).map_while(|_| reading.next_block()).collect();
        // The receiver may have been dropped.
        let _ = sender.send(DecodedChunk { reading, blocks });
    });
    PendingChunk { bytes, decoded }
}

/// Sends a chunk's samples; false when the reader was dropped.
fn send_chunk(pending: &PendingChunk, path: &Path, sender: &mut BlockSender) -> Result<bool, DataError> {
    let gone = |_| DataError::Read { path: path.into(), cause: std::io::Error::other("a decoding thread stopped") };
    let DecodedChunk { mut reading, blocks } = pending.decoded.recv().map_err(gone)?;
    let mut blocks = blocks.into_iter();
    while let Some(block) = blocks.next().or_else(|| reading.next_block()) {
        if !sender.send(block)? {
            return Ok(false);
        }
    }
    let mut skipped = SkippedSamples::default();
    count_damage(reading.offset, reading.damage.as_ref(), &reading.log.broken, &mut skipped);
    sender.skip_all(skipped);
    Ok(true)
}

/// Counts the unreadable parts of the chunk at `offset`.
pub fn count_damage(offset: u64, damage: Option<&ChunkError>, broken: &[BrokenChain], skipped: &mut SkippedSamples) {
    let location = format!("chunk at byte {offset}");
    if let Some(problem) = damage {
        skipped
            .add(problem.counted_as(), || SkippedSample { location: location.clone(), message: problem.to_string() });
    }
    // The chain that the end of the file cuts is the same damage.
    let broken = match (damage, broken.split_last()) {
        (Some(ChunkError::CutOff { left, .. }), Some((last, before))) if last.end as u64 == *left => before,
        _ => broken,
    };
    for BrokenChain { at, end, problem } in broken {
        skipped.add(problem.counted_as(), || SkippedSample {
            location: location.clone(),
            message: format!("{problem}; left out {} bytes", end - at),
        });
    }
}

/// Decodes the samples of a chunk block by block.
struct ChunkReader {
    offset: u64,
    damage: Option<ChunkError>,
    decoder: ChunkDecoder,
    log: ChainLog,
    /// Samples that did not fit into the last block.
    rest: Vec<Record>,
}

impl ChunkReader {
    fn new(chunk: Chunk) -> ChunkReader {
        let Chunk { offset, bytes, damage } = chunk;
        ChunkReader { offset, damage, decoder: ChunkDecoder::new(bytes), log: ChainLog::default(), rest: Vec::new() }
    }

    /// The next samples, [`BLOCK_SAMPLES`] at most; `None` at the end.
    fn next_block(&mut self) -> Option<Vec<Record>> {
        let mut block = Vec::with_capacity(BLOCK_SAMPLES);
        block.append(&mut self.rest);
        if block.len() < WANTED_SAMPLES {
            self.decoder.read_sound(WANTED_SAMPLES - block.len(), &mut block, &mut self.log);
        }
        self.rest = block.split_off(block.len().min(BLOCK_SAMPLES));
        (!block.is_empty()).then_some(block)
    }
}
