//! The samples of a whole file: chunks are decoded by all cores and delivered in file order.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPool;

use super::read::{Broken, Chunk, Chunks, Decoder};
use crate::data::formats::sink::{BLOCK, Sink};
use crate::data::formats::stream;
use crate::data::{DataError, Record};

/// Chunks decoded at once, and their bytes: what bounds the memory.
const IN_FLIGHT: usize = 8;
const BYTES_IN_FLIGHT: u64 = 64 << 20;
/// Samples of a chunk that are decoded ahead; those of larger chunks follow when it is their turn.
const AHEAD: usize = 1 << 19;

/// A chunk whose samples are (being) decoded.
struct Ahead {
    bytes: u64,
    decoded: Receiver<Decoded>,
}

struct Decoded {
    offset: u64,
    decoder: Decoder,
    blocks: Vec<Vec<Record>>,
    problem: Option<super::ChunkError>,
}

/// Delivers all samples of a binpack. What stands before a break is delivered before the break is told.
pub fn run(reader: impl Read + Send + 'static, path: &Path, sink: &mut Sink) -> Result<(), DataError> {
    let broken = |(chunk, problem): Broken| DataError::Chunk { path: path.into(), chunk, problem };
    let most = sink.decoders.current_num_threads().clamp(1, IN_FLIGHT) + 1;
    let unpacked = stream::unpacked(reader, &sink.shared).map_err(DataError::read(path))?;
    let mut chunks = Chunks::new(unpacked.reader);
    let mut flight: VecDeque<Ahead> = VecDeque::new();
    loop {
        let next = chunks.peek().map_err(DataError::read(path))?;
        let bytes = |flight: &VecDeque<Ahead>| flight.iter().map(|ahead| ahead.bytes).sum::<u64>();
        let fits = |flight: &VecDeque<Ahead>| matches!(next, Ok(Some(size)) if flight.len() < most && bytes(flight) + size <= BYTES_IN_FLIGHT);
        while !fits(&flight)
            && let Some(front) = flight.pop_front()
        {
            if !deliver(&front, path, sink)? {
                return Ok(());
            }
        }
        if next.map_err(broken)?.is_none() {
            return Ok(());
        }
        let chunk = chunks.next_chunk().map_err(DataError::read(path))?;
        if chunk.is_err() {
            for front in std::mem::take(&mut flight) {
                if !deliver(&front, path, sink)? {
                    return Ok(());
                }
            }
        }
        flight.extend(chunk.map_err(broken)?.map(|chunk| start(chunk, sink.decoders)));
    }
}

fn start(chunk: Chunk, decoders: &ThreadPool) -> Ahead {
    let bytes = chunk.bytes.len() as u64;
    let (sender, decoded) = sync_channel(1);
    decoders.spawn(move || {
        // Whoever waits for it may be gone.
        let _ = sender.send(decode(chunk));
    });
    Ahead { bytes, decoded }
}

fn decode(chunk: Chunk) -> Decoded {
    let mut decoder = Decoder::new(chunk.bytes);
    let (mut blocks, mut problem) = (Vec::new(), None);
    while problem.is_none() && blocks.len() < AHEAD / BLOCK {
        let mut block = Vec::with_capacity(BLOCK);
        match decoder.read(BLOCK, &mut block) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => problem = Some(error),
        }
        blocks.push(block);
    }
    Decoded { offset: chunk.offset, decoder, blocks, problem }
}

/// Delivers a chunk's samples; false when nobody wants more.
fn deliver(ahead: &Ahead, path: &Path, sink: &mut Sink) -> Result<bool, DataError> {
    let gone = |_| DataError::Read { path: path.into(), cause: std::io::Error::other("a decoding thread stopped") };
    let Decoded { offset, mut decoder, blocks, problem } = ahead.decoded.recv().map_err(gone)?;
    for block in blocks {
        if !sink.deliver(block)? {
            return Ok(false);
        }
    }
    let broken = |problem| DataError::Chunk { path: path.into(), chunk: offset, problem };
    if let Some(problem) = problem {
        return Err(broken(problem));
    }
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        let read = decoder.read(BLOCK, &mut block);
        let count = block.len();
        if count > 0 && !sink.deliver(block)? {
            return Ok(false);
        }
        read.map_err(broken)?;
        if count == 0 {
            return Ok(true);
        }
    }
}
