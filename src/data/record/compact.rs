//! A record in 32 bytes, half a cache line: the fields that the batches of its method show.
//!
//! Decoded records are read in random order, which costs as much as the cache lines that they touch; a record of 40
//! bytes often lies in two.

use super::{NO_FILE, NO_RESULT, NO_SCORE, Record};
use crate::chess::PackedBoard;
use crate::data::Method;

/// The parts of a [`Record`] that a method needs. Its `game` is a number counted from some first record's. There is no
/// room for castling rights of Chess960: decoded binpacks have none.
#[derive(Copy, Clone, Debug)]
pub struct CompactRecord {
    board: PackedBoard,
    /// From the lowest bit. For eval: 16 bits score, 16 ply, 18 number, 8 result, 1 side to move. For pqr: 16 bits
    /// move, 16 ply, 18 number, 5 flags, 8 file of en passant.
    rest: u64,
}

const _: () = assert!(size_of::<CompactRecord>() == 32);

const NUMBER_MASK: u64 = (1 << CompactRecord::NUMBER_BITS) - 1;

impl CompactRecord {
    /// Numbers stay below this power of two.
    pub const NUMBER_BITS: u32 = 18;

    /// A record whose game is less than 2^[`NUMBER_BITS`](Self::NUMBER_BITS) from `first`.
    #[inline(always)]
    #[must_use]
    pub fn of(record: &Record, first: u32, method: Method) -> CompactRecord {
        let [.., place, values]: [u64; 5] = bytemuck::cast(*record);
        let [place, values] = [u64::from_le(place), u64::from_le(values)];
        let number = u64::from((place as u32).wrapping_sub(first)) & NUMBER_MASK;
        let shared = (place >> 32 & 0xffff) << 16 | number << 32;
        let own = match method {
            Method::Eval => values & 0xffff | (values >> 16 & 0xff) << 50 | (values >> 32 & 1) << 58,
            Method::Pqr => place >> 48 | (values >> 32 & 0x1f) << 50 | (values >> 40 & 0xff) << 55,
        };
        CompactRecord { board: record.board, rest: shared | own }
    }

    #[inline(always)]
    #[must_use]
    pub fn words(self) -> [u64; 4] {
        let [occupied, low, high]: [u64; 3] = bytemuck::cast(self.board);
        [occupied, low, high, self.rest]
    }

    #[inline(always)]
    #[must_use]
    pub fn from_words([occupied, low, high, rest]: [u64; 4]) -> CompactRecord {
        CompactRecord { board: bytemuck::cast([occupied, low, high]), rest }
    }

    /// The record, without the fields that the method does not need.
    #[inline(always)]
    #[must_use]
    pub fn record(&self, first: u32, method: Method) -> Record {
        let rest = self.rest;
        let number = first.wrapping_add((rest >> 32 & NUMBER_MASK) as u32);
        let shared = u64::from(number) | (rest >> 16 & 0xffff) << 32;
        let (place, values) = match method {
            Method::Eval => {
                (shared, rest & 0xffff | (rest >> 50 & 0xff) << 16 | (rest >> 58) << 32 | u64::from(NO_FILE) << 40)
            }
            Method::Pqr => (
                shared | rest << 48,
                u64::from(NO_SCORE.cast_unsigned())
                    | u64::from(NO_RESULT) << 16
                    | (rest >> 50 & 0x1f) << 32
                    | (rest >> 55) << 40,
            ),
        };
        let [occupied, low, high]: [u64; 3] = bytemuck::cast(self.board);
        bytemuck::cast([occupied, low, high, place.to_le(), values.to_le()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Chess, random_move};
    use crate::data::GameResult;
    use crate::units::{Ply, Seed};
    use rand::RngExt;
    use shakmaty::Position;

    #[test]
    fn a_compact_record_has_what_its_method_needs() {
        for game in 0..100 {
            let mut rng = Seed(9).stream("compact", game);
            let mut position = Chess::default();
            for _ in 0..100 {
                let Some(mv) = random_move(&position, &mut rng) else { break };
                let result = [None, Some(GameResult::Loss), Some(GameResult::Draw), Some(GameResult::Win)];
                let score = rng.random::<i16>();
                let ply = Ply(rng.random());
                let result = result[rng.random_range(0..4)];
                let first = rng.random::<u32>();
                let number = first.wrapping_add(rng.random_range(0..1 << CompactRecord::NUMBER_BITS));
                let record = Record::of(&position, number, ply, Some(mv), Some(score), result).expect("32 pieces");
                let restored = |method| CompactRecord::of(&record, first, method).record(first, method);
                let parts = |record: &Record| (*record.board(), record.turn(), record.ply(), record.game());
                let [eval, pqr] = [Method::Eval, Method::Pqr].map(restored);
                assert_eq!(parts(&eval), parts(&record));
                assert_eq!((eval.score(), eval.result()), (record.score(), record.result()));
                assert_eq!((eval.castling(), eval.ep_file(), eval.has_move()), (0, None, false));
                assert_eq!(parts(&pqr), parts(&record));
                assert_eq!(
                    (pqr.castling(), pqr.ep_file(), pqr.packed_move()),
                    (record.castling(), record.ep_file(), record.packed_move())
                );
                assert_eq!((pqr.score(), pqr.result(), pqr.rule50()), (None, None, 0));
                position.play_unchecked(mv);
            }
        }
    }
}
