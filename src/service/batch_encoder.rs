//! Encodes packed records into the arrays of a slot.
//!
//! A worker encodes a chunk of samples into its own buffers, which stay in the L1 cache, and copies them to the slot.
//! Nothing is allocated once the buffers have grown.

use super::batch_source::{BatchSampleReader, BatchSamples, ReadSamples};
use super::protocol::{Layout, SlotHeader, SlotLayout};
use super::shared_memory::SlotWriter;
use super::{PreparedStream, ServiceError};
use crate::chess::{ByPerspective, PackedBoard, Perspective};
use crate::data::formats::binpack::{Triplet, TripletError};
use crate::data::{GameResult, Method, Record};
use crate::features::{EncodeScratch, RowBuffer, RowList};
use crate::units::Draws;

/// Samples encoded between two copies to the slot: few enough for their arrays to stay in the L1 cache.
const CHUNK: usize = 64;

/// A worker's buffers.
pub(super) struct BatchEncoder<'a> {
    stream: &'a PreparedStream,
    /// Choose the other move of a pqr triplet.
    draws: Draws,
    chunk: EncodedSamples,
    /// The chunk's samples.
    records: Vec<Record>,
    /// The positions of the chunk's triplets, each with its side to move.
    boards: Vec<(PackedBoard, Perspective)>,
    /// Active features of one position, for the bitset layout.
    active: ByPerspective<RowList>,
    scratch: EncodeScratch,
    header: SlotHeader,
    offsets: ArrayOffsets,
}

/// Byte offset in a slot of each array; 0 for arrays that the layout lacks, which are never written.
struct ArrayOffsets {
    /// stm, then nstm.
    sides: [SideOffsets; 2],
    piece_count: usize,
    bucket: usize,
    score: usize,
    result: usize,
    ply: usize,
    sample_index: usize,
}

struct SideOffsets {
    offsets: usize,
    indices: usize,
    bits: usize,
}

impl ArrayOffsets {
    fn new(layout: &SlotLayout) -> ArrayOffsets {
        let offset_of = |name: &str| layout.offset(name).unwrap_or(0);
        let side = |side: &str| SideOffsets {
            offsets: offset_of(&format!("{side}_offsets")),
            indices: offset_of(&format!("{side}_indices")),
            bits: offset_of(&format!("{side}_bits")),
        };
        ArrayOffsets {
            sides: [side("stm"), side("nstm")],
            piece_count: offset_of("piece_count"),
            bucket: offset_of("bucket"),
            score: offset_of("score"),
            result: offset_of("result"),
            ply: offset_of("ply"),
            sample_index: offset_of("sample_index"),
        }
    }
}

/// The arrays of the samples encoded since the last copy to the slot.
#[derive(Default)]
struct EncodedSamples {
    /// stm, then nstm.
    indices: [RowBuffer; 2],
    /// End of each position's indices, counted from the batch's start.
    ends: Vec<i32>,
    bits: [Vec<u64>; 2],
    piece_count: Vec<u8>,
    /// Empty without a bucket rule.
    bucket: Vec<u8>,
    score: Vec<f32>,
    result: Vec<f32>,
    ply: Vec<u16>,
    sample_index: Vec<u32>,
}

impl EncodedSamples {
    fn clear(&mut self) {
        self.indices.iter_mut().for_each(RowBuffer::clear);
        self.bits.iter_mut().for_each(Vec::clear);
        self.piece_count.clear();
        self.bucket.clear();
        self.score.clear();
        self.result.clear();
        self.ply.clear();
        self.sample_index.clear();
    }
}

impl<'a> BatchEncoder<'a> {
    pub(super) fn new(stream: &'a PreparedStream) -> BatchEncoder<'a> {
        BatchEncoder {
            stream,
            draws: stream.request.seed.draws("pqr: the other move"),
            chunk: EncodedSamples::default(),
            records: Vec::new(),
            boards: Vec::new(),
            active: ByPerspective::default(),
            scratch: EncodeScratch::default(),
            header: SlotHeader::default(),
            offsets: ArrayOffsets::new(&stream.layout),
        }
    }

    /// Fills a slot with a batch; `None` if `should_stop` returned true meanwhile.
    pub(super) fn fill(
        &mut self,
        batch: u64,
        samples: &BatchSamples<'_>,
        slot: &mut SlotWriter<'_>,
        should_stop: impl Fn() -> bool,
    ) -> Result<Option<SlotHeader>, ServiceError> {
        self.header = SlotHeader { epoch: samples.epoch, batch, ..SlotHeader::default() };
        let fill = FillSlot { samples: samples.len(), encoder: self, slot, should_stop };
        if !samples.read(fill)? {
            return Ok(None);
        }
        if self.stream.request.layout == Layout::Csr {
            self.header.offsets = self.header.positions + 1;
            for side in &self.offsets.sides {
                slot.write(side.offsets, &[0i32]);
            }
        }
        slot.write(0, &[self.header]);
        Ok(Some(self.header))
    }

    /// `upcoming` is called once per sample, between those that take time.
    fn encode_positions(&mut self, records: &[Record], mut upcoming: impl FnMut()) {
        let chunk = &mut self.chunk;
        let unit = self.stream.score_unit;
        chunk.score.extend(records.iter().map(|record| record.score().map_or(f32::NAN, |s| unit.in_centipawns(s))));
        chunk.result.extend(records.iter().map(|record| record.result().map_or(f32::NAN, GameResult::points)));
        chunk.piece_count.extend(records.iter().map(|record| record.board().count() as u8));
        let boards = records.iter().map(|record| (record.board(), Perspective::of(record.turn())));
        if let Some(rule) = &self.stream.bucket_rule {
            chunk.bucket.extend(boards.clone().map(|(board, stm)| rule.of_packed(board, stm) as u8));
        }
        self.encode_boards(boards.inspect(|_| upcoming()));
    }

    /// Encodes P, Q and R of each sample. `record.game()` is the sample's number in the data. `upcoming` is called once
    /// per sample.
    fn encode_triplets(&mut self, records: &[Record], mut upcoming: impl FnMut()) -> Result<(), ServiceError> {
        let mut boards = std::mem::take(&mut self.boards);
        boards.clear();
        for record in records {
            upcoming();
            let index = record.game();
            let draw = u64::from(self.header.epoch) << 32 | u64::from(index);
            let triplet = Triplet::draw(record, self.draws, draw).map_err(|problem| match problem {
                TripletError::NoPlayedMove => ServiceError::Record { index, source: record.no_such_move() },
                TripletError::NoOtherMove => ServiceError::NoOtherMove { index },
            })?;
            let stm = Perspective::of(record.turn());
            boards.extend([(*record.board(), stm), (triplet.played, stm.other()), (triplet.other, stm.other())]);
        }
        self.chunk.piece_count.extend(boards.iter().map(|(board, _)| board.count() as u8));
        if let Some(rule) = &self.stream.bucket_rule {
            self.chunk.bucket.extend(boards.iter().map(|(board, stm)| rule.of_packed(board, *stm) as u8));
        }
        self.encode_boards(boards.iter().map(|(board, stm)| (board, *stm)));
        self.boards = boards;
        Ok(())
    }

    fn encode_boards<'b>(&mut self, boards: impl Iterator<Item = (&'b PackedBoard, Perspective)>) {
        let chunk = &mut self.chunk;
        let encoder = self.stream.set.encoder();
        match self.stream.request.layout {
            Layout::Csr => encoder.append_batch(boards, &mut chunk.indices, &mut self.scratch),
            Layout::Bitset => {
                for (board, stm) in boards {
                    encoder.encode_packed(board, &mut self.active);
                    for (bits, pov) in chunk.bits.iter_mut().zip([stm, stm.other()]) {
                        let start = bits.len();
                        bits.resize(start + self.stream.layout.words_per_position, 0);
                        for &index in &self.active[pov][..] {
                            bits[start + index as usize / 64] |= 1 << (index % 64);
                        }
                    }
                }
            }
        }
    }

    /// Appends the chunk to the slot and counts it in the header.
    fn copy_chunk(&mut self, slot: &mut SlotWriter<'_>) -> Result<(), ServiceError> {
        let header = &mut self.header;
        let chunk = &mut self.chunk;
        let offsets = &self.offsets;
        let samples = header.samples as usize;
        let positions = header.positions as usize;
        let words = header.words as usize;
        let written_indices = [header.stm_indices, header.nstm_indices];
        for (side, offsets) in offsets.sides.iter().enumerate() {
            let written = written_indices[side];
            let bits = &chunk.bits[side];
            match self.stream.request.layout {
                Layout::Csr => {
                    let indices = written as usize + chunk.indices[side].len();
                    let capacity = self.stream.layout.indices_per_side;
                    if indices > capacity {
                        return Err(ServiceError::SlotFull { batch: header.batch, indices, capacity });
                    }
                    chunk.ends.clear();
                    chunk.ends.extend(chunk.indices[side].ends().iter().map(|end| (written + end) as i32));
                    slot.write(offsets.offsets + 4 * (positions + 1), &chunk.ends);
                    slot.write(offsets.indices + 4 * written as usize, chunk.indices[side].rows());
                }
                Layout::Bitset => slot.write(offsets.bits + 8 * words, bits),
            }
        }
        slot.write(offsets.piece_count + positions, &chunk.piece_count);
        if self.stream.bucket_rule.is_some() {
            slot.write(offsets.bucket + positions, &chunk.bucket);
        }
        slot.write(offsets.ply + 2 * samples, &chunk.ply);
        slot.write(offsets.sample_index + 4 * samples, &chunk.sample_index);
        if self.stream.request.method == Method::Eval {
            slot.write(offsets.score + 4 * samples, &chunk.score);
            slot.write(offsets.result + 4 * samples, &chunk.result);
        }
        header.samples += chunk.sample_index.len() as u32;
        header.positions += chunk.piece_count.len() as u32;
        header.stm_indices += chunk.indices[0].len() as u32;
        header.nstm_indices += chunk.indices[1].len() as u32;
        header.words += chunk.bits[0].len() as u32;
        Ok(())
    }
}

/// A call of [`BatchEncoder::fill`].
struct FillSlot<'f, 'a, 's, S> {
    encoder: &'f mut BatchEncoder<'a>,
    samples: usize,
    slot: &'f mut SlotWriter<'s>,
    should_stop: S,
}

impl<S: Fn() -> bool> ReadSamples for FillSlot<'_, '_, '_, S> {
    /// Whether the slot was filled.
    type Output = Result<bool, ServiceError>;

    fn run<R: BatchSampleReader>(self, reader: &R) -> Self::Output {
        let FillSlot { encoder, samples, slot, should_stop } = self;
        let mut records = std::mem::take(&mut encoder.records);
        let mut next = Vec::with_capacity(CHUNK);
        reader.locate(0..CHUNK.min(samples), &mut next);
        next.iter().for_each(|place| reader.prefetch(*place));
        for start in (0..samples).step_by(CHUNK) {
            if should_stop() {
                return Ok(false);
            }
            encoder.chunk.clear();
            records.clear();
            records.extend(next.iter().map(|place| reader.record(*place)));
            let [end, next_end] = [start + CHUNK, start + 2 * CHUNK].map(|end| end.min(samples));
            reader.locate(end..next_end, &mut next);
            if R::IN_BURSTS {
                next.iter().for_each(|place| reader.prefetch(*place));
            }
            // Otherwise one prefetch per encoded sample.
            let mut places = if R::IN_BURSTS { [].iter() } else { next.iter() };
            let upcoming = || {
                if let Some(place) = places.next() {
                    reader.prefetch(*place);
                }
            };
            match encoder.stream.request.method {
                Method::Eval => encoder.encode_positions(&records, upcoming),
                Method::Pqr => encoder.encode_triplets(&records, upcoming)?,
            }
            encoder.chunk.ply.extend(records.iter().map(|record| record.ply().0));
            encoder.chunk.sample_index.extend(records.iter().map(Record::game));
            encoder.copy_chunk(slot)?;
        }
        encoder.records = records;
        Ok(true)
    }
}
