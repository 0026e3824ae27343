//! From packed records to the arrays of a slot.
//!
//! A worker encodes a chunk of positions into its own scratch, which stays in cache, and copies it to the slot. Nothing
//! is allocated once the scratch has grown.

use shakmaty::Color;

use super::protocol::{Header, Layout, Plan};
use super::samples::Chosen;
use super::shm::SlotWriter;
use super::{Request, ServiceError};
use crate::chess::{ByPerspective, PackedBoard, Perspective};
use crate::data::formats::binpack::Position;
use crate::data::{GameResult, Method, Record};
use crate::features::{FeatureSet, RowBuffer, Scratch};
use crate::units::{Draws, Seed};

/// Samples encoded before their arrays are copied to the slot, and between two looks at whether to stop.
const CHUNK: usize = 256;

/// Everything an encoder reads; shared by all workers.
pub(super) struct Source<'a> {
    pub(super) set: &'a FeatureSet,
    pub(super) method: Method,
    pub(super) layout: Layout,
    pub(super) plan: &'a Plan,
    /// Centipawns a unit of the file's scores.
    pub(super) centipawns: f32,
    /// Picks the other move of a triplet.
    pub(super) draws: Draws,
}

impl<'a> Source<'a> {
    pub(super) fn new(request: &Request, set: &'a FeatureSet, plan: &'a Plan, centipawns: f32) -> Source<'a> {
        let draws = other_moves(request.seed);
        Source { set, method: request.method, layout: request.layout, plan, centipawns, draws }
    }
}

/// The draws behind every triplet's random move.
fn other_moves(seed: Seed) -> Draws {
    seed.draws("pqr: the other move")
}

/// A worker's scratch.
pub(super) struct Encoder<'a> {
    source: &'a Source<'a>,
    chunk: Chunk,
    /// The samples of a chunk: copied one after the other, so that the memory they come from is waited for but once.
    records: Vec<Record>,
    /// One position's active features.
    active: ByPerspective<Vec<u32>>,
    scratch: Scratch,
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
    fn of(plan: &Plan) -> Offsets {
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
    /// Counted from the batch's start, one a position (its end).
    ends: [Vec<i32>; 2],
    indices: [RowBuffer; 2],
    bits: [Vec<u64>; 2],
    piece_count: Vec<u8>,
    score: Vec<f32>,
    result: Vec<f32>,
    ply: Vec<u16>,
    sample_index: Vec<u32>,
}

impl Chunk {
    fn clear(&mut self) {
        self.ends.iter_mut().for_each(Vec::clear);
        self.indices.iter_mut().for_each(RowBuffer::clear);
        self.bits.iter_mut().for_each(Vec::clear);
        self.piece_count.clear();
        self.score.clear();
        self.result.clear();
        self.ply.clear();
        self.sample_index.clear();
    }
}

impl<'a> Encoder<'a> {
    pub(super) fn new(source: &'a Source<'a>) -> Encoder<'a> {
        let offsets = Offsets::of(source.plan);
        Encoder {
            source,
            chunk: Chunk::default(),
            records: Vec::new(),
            active: ByPerspective::default(),
            scratch: Scratch::default(),
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
        for from in (0..chosen.len()).step_by(CHUNK) {
            if stop() {
                return Ok(None);
            }
            self.chunk.clear();
            chosen.copy(from..(from + CHUNK).min(chosen.len()), &mut records);
            for record in &records {
                self.sample(record)?;
            }
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

    /// `record.game()` is the sample's place in the data.
    fn sample(&mut self, record: &Record) -> Result<(), ServiceError> {
        let (source, index) = (self.source, record.game());
        match source.method {
            Method::Eval => {
                self.packed(record.board(), record.turn());
                self.chunk.score.push(record.score().map_or(f32::NAN, |score| f32::from(score) * source.centipawns));
                self.chunk.result.push(record.result().map_or(f32::NAN, GameResult::points));
            }
            Method::Pqr => {
                let (turn, position) = (record.turn(), Position::of_record(record));
                let played = record.packed_move().filter(|mv| position.can(*mv));
                let mut after = position.clone();
                let played = played
                    .filter(|mv| after.play(*mv))
                    .ok_or_else(|| ServiceError::Record { index, source: record.no_such_move() })?;
                let draw = u64::from(self.header.epoch) << 32 | u64::from(index);
                let other = position.after_another(played, source.draws, draw);
                let other = other.ok_or(ServiceError::NoOtherMove { index })?;
                self.packed(record.board(), turn);
                self.packed(&after.board(), turn.other());
                self.packed(&other.board(), turn.other());
            }
        }
        self.chunk.ply.push(record.ply().0);
        self.chunk.sample_index.push(index);
        Ok(())
    }

    fn packed(&mut self, board: &PackedBoard, turn: Color) {
        if self.source.layout == Layout::Bitset {
            self.source.set.active_packed(board, &mut self.active);
            return self.append(turn, board.count());
        }
        self.source.set.append_packed(board, Perspective::of(turn), &mut self.chunk.indices, &mut self.scratch);
        let before = [self.header.stm_indices, self.header.nstm_indices];
        for ((ends, indices), before) in self.chunk.ends.iter_mut().zip(&self.chunk.indices).zip(before) {
            ends.push((before as usize + indices.len()) as i32);
        }
        self.chunk.piece_count.push(board.count() as u8);
    }

    /// Appends the position whose active features were just found.
    fn append(&mut self, turn: Color, pieces: u32) {
        let stm = Perspective::of(turn);
        let before = [self.header.stm_indices, self.header.nstm_indices];
        for (side, pov) in [stm, stm.other()].into_iter().enumerate() {
            let active = &self.active[pov];
            match self.source.layout {
                Layout::Csr => {
                    let indices = &mut self.chunk.indices[side];
                    indices.extend(active);
                    self.chunk.ends[side].push((before[side] as usize + indices.len()) as i32);
                }
                Layout::Bitset => {
                    let bits = &mut self.chunk.bits[side];
                    let start = bits.len();
                    bits.resize(start + self.source.plan.words_per_position, 0);
                    for &index in active {
                        bits[start + index as usize / 64] |= 1 << (index % 64);
                    }
                }
            }
        }
        self.chunk.piece_count.push(pieces as u8);
    }

    /// Copies the chunk behind what the slot holds already.
    fn copy(&mut self, slot: &mut SlotWriter<'_>) -> Result<(), ServiceError> {
        let (header, chunk, offsets) = (&mut self.header, &self.chunk, &self.offsets);
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
                    slot.write(at.offsets + 4 * (positions + 1), &chunk.ends[side]);
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
