//! The output of a service, as its consumer reads it: the line, the control bytes, the slots. Nothing in it is trusted.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bytemuck::AnyBitPattern;

use super::shared_memory::Mapping;
use super::{Description, Dtype, END, FAILED, Layout, MAX_SLOTS, ServiceError, SlotHeader};
use crate::cpu::run_beside;
use crate::data::Method;
use crate::json;

/// From this number of positions on, two threads copy the two sides at the same time.
const LARGE: u32 = 4096;
/// Limit on the description, which is a few kilobytes long.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Reads batches from a service whose output is `R`. It neither starts nor ends the service, and gives no slot back:
/// [`Client`](super::Client) does.
pub struct BatchReader<R> {
    output: BufReader<R>,
    description: Description,
    memory: Mapping,
    current: BatchMemory,
}

/// Memory for a batch, which [`BatchReader::read`] fills.
#[derive(Default)]
pub struct BatchMemory {
    header: SlotHeader,
    arrays: Arrays,
}

impl BatchMemory {
    /// The batch that was read last.
    #[must_use]
    pub const fn batch(&self) -> ClientBatch<'_> {
        ClientBatch { header: &self.header, arrays: &self.arrays }
    }
}

/// An announcement of the service.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The batch of a slot has been copied, and the slot can be given back.
    Batch { slot: u8 },
    /// The end of the data.
    End,
    /// The service has failed; its stderr says why.
    Failed,
    /// The output ended without either.
    Died,
}

/// A batch, in the client's own memory.
pub struct ClientBatch<'a> {
    header: &'a SlotHeader,
    arrays: &'a Arrays,
}

/// The active features of one side. The features of position i are `indices[offsets[i]..offsets[i + 1]]`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Csr<'a> {
    /// Ascending, from 0 to the number of indices; positions + 1 elements.
    pub offsets: &'a [i32],
    /// All below the set's number of features.
    pub indices: &'a [i32],
}

/// The arrays of a batch; those that the stream lacks are empty.
#[derive(Default)]
struct Arrays {
    /// Offsets and indices, stm then nstm.
    csr: [(Vec<i32>, Vec<i32>); 2],
    bits: [Vec<u64>; 2],
    piece_count: Vec<u8>,
    bucket: Vec<u8>,
    score: Vec<f32>,
    result: Vec<f32>,
    ply: Vec<u16>,
    sample_index: Vec<u32>,
}

impl<R: Read> BatchReader<R> {
    /// Reads the description, checks it and maps the memory.
    ///
    /// # Errors
    /// When the first line is no description, or describes memory that cannot be mapped; `None` when there is no line.
    pub fn open(mut output: BufReader<R>) -> Result<Option<BatchReader<R>>, ServiceError> {
        let mut line = String::new();
        match output.by_ref().take(MAX_LINE_BYTES).read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => {}
            Ok(bytes) if bytes as u64 == MAX_LINE_BYTES => {
                return Err(ServiceError::Protocol(format!("its first line is longer than {MAX_LINE_BYTES} bytes")));
            }
            Ok(_) => return Ok(None),
            Err(error) => return Err(ServiceError::Protocol(format!("its first line cannot be read: {error}"))),
        }
        let description: Description = json::from_text(&line)
            .map_err(|error| ServiceError::Protocol(format!("its first line is not a description: {error}")))?;
        validate(&description)?;
        let memory = Mapping::open(Path::new(&description.shm), description.slots, description.slot_bytes)?;
        Ok(Some(BatchReader { output, description, memory, current: BatchMemory::default() }))
    }

    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    pub(super) const fn output(&self) -> &BufReader<R> {
        &self.output
    }

    /// Waits for the service's next announcement and copies its batch, which is then [`BatchReader::batch`].
    ///
    /// # Errors
    /// When the service broke the protocol or cannot be read from.
    #[allow(clippy::should_implement_trait, reason = "a batch borrows the reader, which Iterator cannot say")]
    pub fn next(&mut self) -> Result<Announcement, ServiceError> {
        let mut current = std::mem::take(&mut self.current);
        let announced = self.read(&mut current);
        self.current = current;
        announced
    }

    /// As [`BatchReader::next`], into memory of the caller's.
    ///
    /// # Errors
    /// As [`BatchReader::next`].
    pub fn read(&mut self, into: &mut BatchMemory) -> Result<Announcement, ServiceError> {
        let mut byte = [0u8];
        match self.output.read_exact(&mut byte) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Announcement::Died),
            Err(error) => return Err(ServiceError::Protocol(format!("it cannot be read from: {error}"))),
        }
        let slot = match byte[0] {
            END => return Ok(Announcement::End),
            FAILED => return Ok(Announcement::Failed),
            slot if usize::from(slot) < self.description.slots => slot,
            slot => return Err(ServiceError::Protocol(format!("it announced slot {slot}, which does not exist"))),
        };
        self.copy_slot(slot, into).map_err(|error| ServiceError::Protocol(format!("slot {slot} {error}")))?;
        Ok(Announcement::Batch { slot })
    }

    /// The batch that [`BatchReader::next`] copied last.
    #[must_use]
    pub const fn batch(&self) -> ClientBatch<'_> {
        self.current.batch()
    }

    /// Copies a slot and checks its numbers. The error completes "slot N …".
    fn copy_slot(&self, slot: u8, into: &mut BatchMemory) -> Result<(), String> {
        let BatchReader { description, memory, .. } = self;
        let BatchMemory { header, arrays } = into;
        let mut headers: Vec<SlotHeader> = Vec::with_capacity(1);
        memory.copy(slot, 0, 1, &mut headers).ok_or("lies outside its memory")?;
        *header = headers.first().copied().unwrap_or_default();
        check_header(header, description)?;
        let copy = SlotCopy { memory, description, slot, header };
        let [stm, nstm] = &mut arrays.csr;
        if description.layout == Layout::Csr {
            copy.sides(stm, nstm)?;
        }
        let [stm_bits, nstm_bits] = &mut arrays.bits;
        copy.array("stm_bits", stm_bits)?;
        copy.array("nstm_bits", nstm_bits)?;
        copy.array("piece_count", &mut arrays.piece_count)?;
        copy.array("bucket", &mut arrays.bucket)?;
        copy.array("score", &mut arrays.score)?;
        copy.array("result", &mut arrays.result)?;
        copy.array("ply", &mut arrays.ply)?;
        copy.array("sample_index", &mut arrays.sample_index)
    }
}

/// A slot whose arrays are copied.
struct SlotCopy<'a> {
    memory: &'a Mapping,
    description: &'a Description,
    slot: u8,
    header: &'a SlotHeader,
}

impl SlotCopy<'_> {
    /// Copies the array of this name; one that the stream lacks becomes empty. The error completes "slot N …".
    fn array<T: AnyBitPattern>(&self, name: &str, into: &mut Vec<T>) -> Result<(), String> {
        into.clear();
        let Some(array) = self.description.array(name) else { return Ok(()) };
        let Some(count) = self.header.count(&array.count) else {
            return Err(format!("has an array {name} whose count this program does not know"));
        };
        let count = count as usize;
        if count > array.len {
            return Err(format!("claims {count} elements of {name}, which has {} at most", array.len));
        }
        let copied = self.memory.copy(self.slot, array.offset, count, into);
        copied.ok_or_else(|| format!("does not hold its {name}"))
    }

    /// Copies and checks the features of both sides; of a large batch, on two threads.
    fn sides(&self, stm: &mut (Vec<i32>, Vec<i32>), nstm: &mut (Vec<i32>, Vec<i32>)) -> Result<(), String> {
        let mut copied = [Ok(()), Ok(())];
        let [stm_copied, nstm_copied] = &mut copied;
        let mut copy_stm = || *stm_copied = self.side("stm", stm);
        let mut copy_nstm = || *nstm_copied = self.side("nstm", nstm);
        if self.header.positions < LARGE {
            copy_stm();
            copy_nstm();
        } else {
            run_beside(&mut copy_nstm, &mut copy_stm);
        }
        copied.into_iter().collect()
    }

    /// Copies and checks the features of one side.
    fn side(&self, side: &str, (offsets, indices): &mut (Vec<i32>, Vec<i32>)) -> Result<(), String> {
        self.array(&format!("{side}_offsets"), offsets)?;
        self.array(&format!("{side}_indices"), indices)?;
        let features = self.description.num_features;
        check_csr(offsets, indices, features).map_err(|error| format!("has {side}_{error}"))
    }
}

/// Name, header field of the count, and element type of each array that a stream must have.
fn required_arrays(description: &Description) -> Vec<(&'static str, &'static str, Dtype)> {
    let mut arrays = match description.layout {
        Layout::Csr => vec![
            ("stm_offsets", "offsets", Dtype::I32),
            ("stm_indices", "stm_indices", Dtype::I32),
            ("nstm_offsets", "offsets", Dtype::I32),
            ("nstm_indices", "nstm_indices", Dtype::I32),
        ],
        Layout::Bitset => vec![("stm_bits", "words", Dtype::U64), ("nstm_bits", "words", Dtype::U64)],
    };
    if description.method == Method::Eval {
        arrays.extend([("score", "samples", Dtype::F32), ("result", "samples", Dtype::F32)]);
    }
    arrays.extend([
        ("piece_count", "positions", Dtype::U8),
        ("ply", "samples", Dtype::U16),
        ("sample_index", "samples", Dtype::U32),
    ]);
    arrays
}

/// Checks that every described array lies inside its slot, and that none is missing.
fn validate(description: &Description) -> Result<(), ServiceError> {
    let broken = |text: String| Err(ServiceError::Protocol(text));
    if description.version != Description::VERSION {
        let theirs = description.version;
        let ours = Description::VERSION;
        return broken(format!("it speaks version {theirs} and this program version {ours}; use one build for both"));
    }
    if description.slots == 0 || description.slots > MAX_SLOTS {
        return broken(format!("it describes {} slots", description.slots));
    }
    let bytes = description.slots.checked_mul(description.slot_bytes).filter(|bytes| *bytes <= isize::MAX as usize);
    if bytes.is_none() || description.slot_bytes == 0 || !description.slot_bytes.is_multiple_of(64) {
        return broken(format!("it describes slots of {} bytes", description.slot_bytes));
    }
    let per_sample = if description.method == Method::Pqr { 3 } else { 1 };
    if description.positions_per_sample != per_sample {
        return broken(format!("it describes {} positions per sample", description.positions_per_sample));
    }
    for array in &description.arrays {
        let end = array.len.checked_mul(array.dtype.bytes()).and_then(|bytes| bytes.checked_add(array.offset));
        if end.is_none_or(|end| end > description.slot_bytes) || array.offset % 64 != 0 {
            return broken(format!("its array {} does not lie in a slot", array.name));
        }
    }
    for (at, array) in description.arrays.iter().enumerate() {
        // The second would replace the first, which alone is checked below.
        if description.arrays[..at].iter().any(|earlier| earlier.name == array.name) {
            return broken(format!("it describes two arrays {}", array.name));
        }
    }
    for (name, count, dtype) in required_arrays(description) {
        match description.array(name) {
            Some(array) if array.count == count && array.dtype == dtype => {}
            Some(_) => return broken(format!("its array {name} has another type or count than this program expects")),
            None => return broken(format!("it describes no array {name}")),
        }
    }
    Ok(())
}

/// Checks that the counts in a header agree with each other.
fn check_header(header: &SlotHeader, description: &Description) -> Result<(), String> {
    let SlotHeader { samples, positions, offsets, words, .. } = *header;
    let per_sample = description.positions_per_sample as u64;
    if u64::from(samples) * per_sample != u64::from(positions) {
        return Err(format!("claims {positions} positions for {samples} samples"));
    }
    let agrees = match description.layout {
        Layout::Csr => u64::from(offsets) == u64::from(positions) + 1,
        Layout::Bitset => u64::from(positions).checked_mul(description.words_per_position as u64) == Some(words.into()),
    };
    if agrees { Ok(()) } else { Err(format!("claims {offsets} offsets and {words} words for {positions} positions")) }
}

/// Checks that offsets and indices are in range. The error begins with "offsets" or "indices".
fn check_csr(offsets: &[i32], indices: &[i32], features: u32) -> Result<(), String> {
    let covers_indices = offsets.first() == Some(&0) && offsets.last().map(|&end| end as usize) == Some(indices.len());
    if !covers_indices || !offsets.is_sorted() {
        return Err(format!("offsets that do not ascend from 0 to {}", indices.len()));
    }
    // A sign bit is set if an index is negative or too large. Compilers vectorise this for any x86-64; a maximum needs
    // SSE4.1.
    let last = features.wrapping_sub(1) as i32;
    let signs = indices.iter().fold(0, |signs, &index| signs | index | last.wrapping_sub(index));
    if signs >= 0 {
        return Ok(());
    }
    // A negative index becomes a large u32.
    match indices.iter().map(|&index| index as u32).max() {
        Some(largest) if largest >= features => Err(format!("indices up to {largest}, and the set has {features}")),
        _ => Ok(()),
    }
}

impl<'a> ClientBatch<'a> {
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.header.samples as usize
    }

    /// samples × positions_per_sample.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.header.positions as usize
    }

    /// From 0.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.header.epoch
    }

    /// From 0, counted over all epochs.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.header.batch
    }

    /// The side to move's perspective; empty in the bitset layout.
    #[must_use]
    pub fn stm(&self) -> Csr<'a> {
        let (offsets, indices) = &self.arrays.csr[0];
        Csr { offsets, indices }
    }

    /// The other perspective; empty in the bitset layout.
    #[must_use]
    pub fn nstm(&self) -> Csr<'a> {
        let (offsets, indices) = &self.arrays.csr[1];
        Csr { offsets, indices }
    }

    /// `words_per_position` words per position; feature i is bit i % 64 of word i / 64. Empty in the csr layout.
    #[must_use]
    pub fn stm_bits(&self) -> &'a [u64] {
        &self.arrays.bits[0]
    }

    /// As [`ClientBatch::stm_bits`].
    #[must_use]
    pub fn nstm_bits(&self) -> &'a [u64] {
        &self.arrays.bits[1]
    }

    /// Centipawns from the side to move's view, one per sample; NaN = no score. Empty for pqr.
    #[must_use]
    pub fn scores(&self) -> &'a [f32] {
        &self.arrays.score
    }

    /// 0, 0.5 or 1 from the side to move's view, one per sample; NaN = unknown. Empty for pqr.
    #[must_use]
    pub fn results(&self) -> &'a [f32] {
        &self.arrays.result
    }

    /// Number of pieces on the board, one per position.
    #[must_use]
    pub fn piece_counts(&self) -> &'a [u8] {
        &self.arrays.piece_count
    }

    /// The value of the request's bucket rule, one per position; empty without a rule.
    #[must_use]
    pub fn buckets(&self) -> &'a [u8] {
        &self.arrays.bucket
    }

    /// One per sample.
    #[must_use]
    pub fn plies(&self) -> &'a [u16] {
        &self.arrays.ply
    }

    /// Each sample's number in the data, from 0.
    #[must_use]
    pub fn sample_indices(&self) -> &'a [u32] {
        &self.arrays.sample_index
    }
}
