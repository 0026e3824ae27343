//! From packed records to the arrays of a slot.
//!
//! A worker encodes a chunk of positions into its own scratch, which stays in cache, and copies it to the slot. Nothing
//! is allocated once the scratch has grown.

use super::batch_source::Chosen;
use super::protocol::{Header, Layout, SlotLayout};
use super::shared_memory::SlotWriter;
use super::{Request, ServiceError};
use crate::chess::{ByPerspective, PackedBoard, Perspective};
use crate::data::formats::binpack::{NoTriplet, Triplet};
use crate::data::{GameResult, Method, Record, ScoreUnit};
use crate::features::{EncodeScratch, FeatureSet, RowBuffer};
use crate::units::{Draws, Seed};

/// Samples encoded before their arrays are copied to the slot, and between two looks at whether to stop: their arrays
/// stay in the first cache.
const CHUNK: usize = 64;

/// Everything an encoder reads; shared by all workers.
pub(super) struct EncoderSettings<'a> {
    pub(super) set: &'a FeatureSet,
    pub(super) method: Method,
    pub(super) layout: Layout,
    pub(super) plan: &'a SlotLayout,
    /// Of the data's scores.
    pub(super) unit: ScoreUnit,
    /// Picks the other move of a triplet.
    pub(super) draws: Draws,
}

impl<'a> EncoderSettings<'a> {
    pub(super) fn new(
        request: &Request,
        set: &'a FeatureSet,
        plan: &'a SlotLayout,
        unit: ScoreUnit,
    ) -> EncoderSettings<'a> {
        let draws = other_moves(request.seed);
        EncoderSettings { set, method: request.method, layout: request.layout, plan, unit, draws }
    }
}

/// The draws behind every triplet's random move.
fn other_moves(seed: Seed) -> Draws {
    seed.draws("pqr: the other move")
}

/// A worker's scratch.
pub(super) struct BatchEncoder<'a> {
    source: &'a EncoderSettings<'a>,
    chunk: Chunk,
    /// The samples of a chunk: copied one after the other, so that the memory they come from is waited for but once.
    records: Vec<Record>,
    /// The positions of a chunk's triplets, each with its side to move.
    boards: Vec<(PackedBoard, Perspective)>,
    /// One position's active features.
    active: ByPerspective<Vec<u32>>,
    scratch: EncodeScratch,
    header: Header,
    offsets: Offsets,
}

/// Where the arrays of the layout begin in a slot; those it lacks are never written.
struct Offsets {
    sides: [Side; 2],
    piece_count: usize,
    score: usize,
    result: usize,
    ply: usize,
    sample_index: usize,
}

#[derive(Default)]
struct Side {
    offsets: usize,
    indices: usize,
    bits: usize,
}

impl Offsets {
    fn of(plan: &SlotLayout) -> Offsets {
        let at = |name: &str| plan.offset(name).unwrap_or(0);
        let side = |side: &str| Side {
            offsets: at(&format!("{side}_offsets")),
            indices: at(&format!("{side}_indices")),
            bits: at(&format!("{side}_bits")),
        };
        Offsets {
            sides: [side("stm"), side("nstm")],
            piece_count: at("piece_count"),
            score: at("score"),
            result: at("result"),
            ply: at("ply"),
            sample_index: at("sample_index"),
        }
    }
}

/// What was encoded since the last copy to the slot.
#[derive(Default)]
struct Chunk {
    indices: [RowBuffer; 2],
    /// Ends of the positions' indices, counted from the batch's start.
    ends: Vec<i32>,
    bits: [Vec<u64>; 2],
    piece_count: Vec<u8>,
    score: Vec<f32>,
    result: Vec<f32>,
    ply: Vec<u16>,
    sample_index: Vec<u32>,
}

impl Chunk {
    fn clear(&mut self) {
        self.indices.iter_mut().for_each(RowBuffer::clear);
        self.bits.iter_mut().for_each(Vec::clear);
        self.piece_count.clear();
        self.score.clear();
        self.result.clear();
        self.ply.clear();
        self.sample_index.clear();
    }
}

impl<'a> BatchEncoder<'a> {
    pub(super) fn new(source: &'a EncoderSettings<'a>) -> BatchEncoder<'a> {
        let offsets = Offsets::of(source.plan);
        BatchEncoder {
            source,
            chunk: Chunk::default(),
            records: Vec::new(),
            boards: Vec::new(),
            active: ByPerspective::default(),
            scratch: EncodeScratch::default(),
            header: Header::default(),
            offsets,
        }
    }

    /// Fills a slot; none when `stop` said so on the way.
    pub(super) fn fill(
        &mut self,
        batch: u64,
        chosen: &Chosen<'_>,
        slot: &mut SlotWriter<'_>,
        stop: impl Fn() -> bool,
    ) -> Result<Option<Header>, ServiceError> {
        self.header = Header { epoch: chosen.epoch, batch, ..Header::default() };
        let mut records = std::mem::take(&mut self.records);
        chosen.prefetch(0..CHUNK.min(chosen.len()));
        for from in (0..chosen.len()).step_by(CHUNK) {
            if stop() {
                return Ok(None);
            }
            self.chunk.clear();
            let until = |end: usize| end.min(chosen.len());
            chosen.copy(from..until(from + CHUNK), &mut records);
            chosen.prefetch(until(from + CHUNK)..until(from + 2 * CHUNK));
            match self.source.method {
                Method::Eval => self.positions(&records),
                Method::Pqr => self.triplets(&records)?,
            }
            self.chunk.ply.extend(records.iter().map(|record| record.ply().0));
            self.chunk.sample_index.extend(records.iter().map(Record::game));
            self.copy(slot)?;
        }
        self.records = records;
        if self.source.layout == Layout::Csr {
            self.header.offsets = self.header.positions + 1;
            for side in &self.offsets.sides {
                slot.write(side.offsets, &[0i32]);
            }
        }
        slot.write(0, &[self.header]);
        Ok(Some(self.header))
    }

    fn positions(&mut self, records: &[Record]) {
        let (chunk, source) = (&mut self.chunk, self.source);
        let score = |record: &Record| record.score().map_or(f32::NAN, |score| source.unit.in_centipawns(score));
        chunk.score.extend(records.iter().map(score));
        chunk.result.extend(records.iter().map(|record| record.result().map_or(f32::NAN, GameResult::points)));
        self.boards(records.iter().map(|record| (record.board(), Perspective::of(record.turn()))));
    }

    /// `record.game()` is the sample's place in the data.
    fn triplets(&mut self, records: &[Record]) -> Result<(), ServiceError> {
        let mut boards = std::mem::take(&mut self.boards);
        boards.clear();
        for record in records {
            let index = record.game();
            let draw = u64::from(self.header.epoch) << 32 | u64::from(index);
            let triplet = Triplet::draw(record, self.source.draws, draw).map_err(|problem| match problem {
                NoTriplet::Played => ServiceError::Record { index, source: record.no_such_move() },
                NoTriplet::Other => ServiceError::NoOtherMove { index },
            })?;
            let stm = Perspective::of(record.turn());
            boards.extend([(*record.board(), stm), (triplet.played, stm.other()), (triplet.other, stm.other())]);
        }
        self.boards(boards.iter().map(|(board, stm)| (board, *stm)));
        self.boards = boards;
        Ok(())
    }

    fn boards<'b>(&mut self, boards: impl Iterator<Item = (&'b PackedBoard, Perspective)> + Clone) {
        let (chunk, set) = (&mut self.chunk, self.source.set);
        chunk.piece_count.extend(boards.clone().map(|(board, _)| board.count() as u8));
        match self.source.layout {
            Layout::Csr => set.encoder().append_batch(boards, &mut chunk.indices, &mut self.scratch),
            Layout::Bitset => {
                for (board, stm) in boards {
                    set.encoder().encode_packed(board, &mut self.active);
                    for (bits, pov) in chunk.bits.iter_mut().zip([stm, stm.other()]) {
                        let start = bits.len();
                        bits.resize(start + self.source.plan.words_per_position, 0);
                        for &index in &self.active[pov] {
                            bits[start + index as usize / 64] |= 1 << (index % 64);
                        }
                    }
                }
            }
        }
    }

    /// Copies the chunk behind what the slot holds already.
    fn copy(&mut self, slot: &mut SlotWriter<'_>) -> Result<(), ServiceError> {
        let (header, chunk, offsets) = (&mut self.header, &mut self.chunk, &self.offsets);
        let (samples, positions, words) = (header.samples as usize, header.positions as usize, header.words as usize);
        let filled = [header.stm_indices as usize, header.nstm_indices as usize];
        for (side, at) in offsets.sides.iter().enumerate() {
            match self.source.layout {
                Layout::Csr => {
                    let indices = filled[side] + chunk.indices[side].len();
                    let room = self.source.plan.indices;
                    if indices > room {
                        return Err(ServiceError::SlotFull { batch: header.batch, indices, room });
                    }
                    chunk.ends.clear();
                    chunk.ends.extend(chunk.indices[side].ends().iter().map(|end| (filled[side] as u32 + end) as i32));
                    slot.write(at.offsets + 4 * (positions + 1), &chunk.ends);
                    slot.write(at.indices + 4 * filled[side], chunk.indices[side].rows());
                }
                Layout::Bitset => slot.write(at.bits + 8 * words, &chunk.bits[side]),
            }
        }
        slot.write(offsets.piece_count + positions, &chunk.piece_count);
        slot.write(offsets.ply + 2 * samples, &chunk.ply);
        slot.write(offsets.sample_index + 4 * samples, &chunk.sample_index);
        if self.source.method == Method::Eval {
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
