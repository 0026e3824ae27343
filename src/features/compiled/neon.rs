//! Piece tables in NEON registers, sixteen pieces at once. See [`super::vector_encoder`].
#![allow(unsafe_code, reason = "vector instructions, and loads and stores through pointers")]

use std::arch::aarch64::*;

use crate::chess::{PackedBoard, Perspective};
use crate::cpu::Neon;

use super::CompiledBlock;
use super::piece_table::RowBuffer;
use super::sum_tables::SumTable;

/// Most pieces on a board.
const MAX_PIECES: usize = 32;

/// Holding it proves that the CPU has the instructions.
#[derive(Copy, Clone, Debug)]
pub struct NeonEncoder(Neon);

/// The pieces of a board in the order of their squares.
struct PieceBytes {
    /// Some squares follow those of the pieces.
    squares: [u8; 64],
    /// Any codes follow those of the pieces.
    codes: [u8; MAX_PIECES],
    count: usize,
    /// Squares of White's king and of Black's.
    kings: [u32; 2],
}

impl NeonEncoder {
    pub fn detect() -> Option<NeonEncoder> {
        Neon::detect().map(NeonEncoder)
    }

    /// See [`super::vector_encoder::VectorEncoder::append`].
    pub fn append<'a, 'b>(
        self,
        blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
    ) {
        for (board, stm) in boards {
            if let Some(pieces) = self.load_pieces(board) {
                for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                    for (block, offset) in blocks.clone() {
                        self.append_block(&pieces, block, offset, pov, side);
                    }
                }
            }
            sides.iter_mut().for_each(RowBuffer::end);
        }
    }

    /// `None` where a king is missing.
    #[inline]
    fn load_pieces(self, board: &PackedBoard) -> Option<PieceBytes> {
        let occupied = board.occupancy();
        let count = (occupied.count_ones() as usize).min(MAX_PIECES);
        let squares = squares(occupied);
        let king = |code| last_with(board.codes(), count, code).map(|piece| u32::from(squares[piece]));
        let kings = [king(5)?, king(13)?];
        Some(PieceBytes { squares, codes: self.code_bytes(board.codes()), count, kings })
    }

    /// The piece codes in the order of the squares.
    #[inline]
    fn code_bytes(self, codes: u128) -> [u8; MAX_PIECES] {
        let mut bytes = [0; MAX_PIECES];
        let pairs = codes.to_le_bytes();
        // SAFETY: the CPU has NEON; sixteen bytes are readable, and twice sixteen writable.
        unsafe {
            let pairs = vld1q_u8(pairs.as_ptr());
            let low = vandq_u8(pairs, vdupq_n_u8(15));
            let high = vshrq_n_u8::<4>(pairs);
            vst1q_u8(bytes.as_mut_ptr(), vzip1q_u8(low, high));
            vst1q_u8(bytes.as_mut_ptr().add(16), vzip2q_u8(low, high));
        }
        bytes
    }

    /// Appends a block's active features for one perspective.
    #[inline]
    fn append_block(
        self,
        pieces: &PieceBytes,
        block: &CompiledBlock,
        offset: u32,
        pov: Perspective,
        side: &mut RowBuffer,
    ) {
        let Some(sums) = block.piece_table.as_ref().and_then(|table| table.sums.as_ref()) else { return };
        let own = pieces.kings[pov.index() & 1];
        let enemy = pieces.kings[pov.index() & 1 ^ 1];
        let Some((base, number)) = block.base_and_table(own, enemy, pov) else { return };
        let table = &sums.oriented[number];
        let base = base.wrapping_add(offset);
        let spare = side.spare();
        if sums.complete {
            self.write_rows(pieces, table, base, spare);
            side.commit(pieces.count);
            return;
        }
        let mut rows = [0; MAX_PIECES];
        self.write_rows(pieces, table, base, &mut rows);
        let mut count = 0;
        for (row, code) in rows.iter().zip(pieces.codes).take(pieces.count) {
            spare[count & (MAX_PIECES - 1)] = *row;
            count += (table.present >> (code & 15) & 1) as usize;
        }
        side.commit(count);
    }

    /// Writes `base` + the entry of each piece.
    #[inline]
    fn write_rows(self, pieces: &PieceBytes, table: &SumTable, base: u32, rows: &mut [u32; MAX_PIECES]) {
        // SAFETY: the CPU has NEON. Each load reads as many bytes as an array has that it begins in or, by 32s and 16s,
        // runs through: 128 of `table.squares`, 64 of `table.codes`, and half of `squares` and of `codes`, which have
        // 64 and 32. Each store writes an eighth of `rows`.
        unsafe {
            // Words apart by bytes, so that bytes look them up.
            let squares = table.squares.as_ptr().cast::<u8>();
            let parts =
                [vld2q_u8(squares), vld2q_u8(squares.add(32)), vld2q_u8(squares.add(64)), vld2q_u8(squares.add(96))];
            let low = uint8x16x4_t(parts[0].0, parts[1].0, parts[2].0, parts[3].0);
            let high = uint8x16x4_t(parts[0].1, parts[1].1, parts[2].1, parts[3].1);
            let uint8x16x4_t(code0, code1, code2, code3) = vld4q_u8(table.codes.as_ptr().cast());
            let base = vdupq_n_u32(base);
            for half in 0..2 {
                let squares = vld1q_u8(pieces.squares.as_ptr().add(16 * half));
                let codes = vld1q_u8(pieces.codes.as_ptr().add(16 * half));
                let (low, high) = (vqtbl4q_u8(low, squares), vqtbl4q_u8(high, squares));
                let squares = [vreinterpretq_u16_u8(vzip1q_u8(low, high)), vreinterpretq_u16_u8(vzip2q_u8(low, high))];
                let (a, b) = (vqtbl1q_u8(code0, codes), vqtbl1q_u8(code1, codes));
                let (c, d) = (vqtbl1q_u8(code2, codes), vqtbl1q_u8(code3, codes));
                let lower = [vreinterpretq_u16_u8(vzip1q_u8(a, b)), vreinterpretq_u16_u8(vzip2q_u8(a, b))];
                let upper = [vreinterpretq_u16_u8(vzip1q_u8(c, d)), vreinterpretq_u16_u8(vzip2q_u8(c, d))];
                for eight in 0..2 {
                    let entries = [
                        vreinterpretq_u32_u16(vzip1q_u16(lower[eight], upper[eight])),
                        vreinterpretq_u32_u16(vzip2q_u16(lower[eight], upper[eight])),
                    ];
                    let first = vaddw_u16(vaddq_u32(entries[0], base), vget_low_u16(squares[eight]));
                    let second = vaddw_high_u16(vaddq_u32(entries[1], base), squares[eight]);
                    let to = rows.as_mut_ptr().add(16 * half + 8 * eight);
                    vst1q_u32(to, first);
                    vst1q_u32(to.add(4), second);
                }
            }
        }
    }
}

/// The set bits of a bitboard, ascending, then any squares.
#[inline]
fn squares(occupied: u64) -> [u8; 64] {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    // By rank, the number of bits in it and those before.
    let pairs = occupied - (occupied >> 1 & (0x55 * BYTES));
    let fours = (pairs & (0x33 * BYTES)) + (pairs >> 2 & (0x33 * BYTES));
    let ends = ((fours + (fours >> 4)) & (0x0f * BYTES)).wrapping_mul(BYTES);
    let starts = (ends << 8).to_le_bytes();
    let mut squares = [0; 64];
    for (rank, (files, start)) in (0..).zip(occupied.to_le_bytes().into_iter().zip(starts)) {
        // At most eight squares per rank before this one.
        if let Some(to) = squares.get_mut(usize::from(start)..).and_then(<[u8]>::first_chunk_mut) {
            *to = (FILES[usize::from(files)] + 8 * rank * BYTES).to_le_bytes();
        }
    }
    squares
}

/// The indices of the set bits of each byte, ascending, a byte each.
static FILES: [u64; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 8;
        while bit > 0 {
            bit -= 1;
            if byte >> bit & 1 == 1 {
                all[byte] = all[byte] << 8 | bit as u64;
            }
        }
        byte += 1;
    }
    all
};

/// The last of the first `count` nibbles with a value.
#[inline]
fn last_with(nibbles: u128, count: usize, value: u8) -> Option<usize> {
    const LOW: u128 = u128::MAX / 15;
    let differences = nibbles ^ (LOW * u128::from(value));
    // The highest bit of each nibble: whether the nibble differs. No sum carries into the next nibble.
    let differs = ((differences & (7 * LOW)) + 7 * LOW) | differences;
    let in_use = u128::MAX.checked_shr(128 - 4 * count.min(MAX_PIECES) as u32).unwrap_or(0);
    let equal = !differs & (8 * LOW) & in_use;
    equal.checked_ilog2().map(|bit| bit as usize / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_ascend_and_kings_are_found() {
        let occupied = 0x8100_0000_0000_42ff;
        let expected = [0, 1, 2, 3, 4, 5, 6, 7, 9, 14, 56, 63];
        assert_eq!(squares(occupied)[..expected.len()], expected);
        assert_eq!(squares(u64::MAX), std::array::from_fn(|n| n as u8));
        assert_eq!(last_with(0x5d05, 4, 5), Some(3));
        assert_eq!(last_with(0x5d05, 3, 5), Some(0));
        assert_eq!(last_with(0x5d05, 3, 13), Some(2));
        assert_eq!((last_with(0x5d05, 0, 5), last_with(0x5d05, 32, 6)), (None, None));
        assert_eq!(last_with(u128::MAX / 15 * 5, 32, 5), Some(31));
    }
}
