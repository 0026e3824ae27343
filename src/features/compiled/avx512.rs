//! Piece tables in AVX-512 registers, all pieces of a board at once. See [`super::vector_encoder`].
#![allow(unsafe_code, reason = "vector instructions behind a check of the CPU, and stores through pointers")]

use std::arch::x86_64::*;

use crate::chess::{PackedBoard, Perspective};

use super::CompiledBlock;
use super::piece_table::{OwnKings, RowBuffer};
use super::sum_tables::SumTable;
use super::tables::NONE;

/// Holding it proves that the CPU has the instructions.
#[derive(Copy, Clone, Debug)]
pub struct Avx512Encoder(());

/// The pieces of a board in the order of their squares.
#[derive(Copy, Clone)]
struct PieceVectors {
    /// 32 words.
    squares: __m512i,
    /// Two halves of 16 double words.
    codes: [__m512i; 2],
    count: usize,
    /// Squares of White's king and of Black's.
    kings: [u32; 2],
}

impl Avx512Encoder {
    pub fn detect() -> Option<Avx512Encoder> {
        use std::arch::is_x86_feature_detected as has;
        let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        let basic = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        (bits && basic && has!("avx512vbmi") && has!("avx512vbmi2")).then_some(Avx512Encoder(()))
    }

    /// Appends the active features of boards for the given side to move and for the other side, and marks their ends.
    /// `blocks`: blocks with [`SumTables`], each with the offset of its indices.
    pub fn append<'a, 'b>(
        self,
        blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
    ) {
        let mut all = blocks.clone();
        let only = all.next().filter(|_| all.next().is_none());
        match only.and_then(|(block, offset)| NarrowBlock::of(block, offset)) {
            // SAFETY: `detect` is the only constructor, so the CPU has these instructions.
            Some(only) => unsafe { append_narrow(&only, boards, sides) },
            // SAFETY: as above.
            None => unsafe { append(blocks, boards, sides) },
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn append<'a, 'b>(
    blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
    boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
    sides: &mut [RowBuffer; 2],
) {
    for (board, stm) in boards {
        if let Some(pieces) = load_pieces(board) {
            for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                for (block, offset) in blocks.clone() {
                    append_block(&pieces, block, offset, pov, side);
                }
            }
        }
        sides.iter_mut().for_each(RowBuffer::end);
    }
}

/// A block whose rows are less than 2^16, all pieces have an entry, and of the kings only the own one matters.
struct NarrowBlock<'b> {
    tables: &'b [SumTable; 4],
    own_kings: &'b OwnKings,
    offset: u32,
}

impl<'b> NarrowBlock<'b> {
    fn of(block: &'b CompiledBlock, offset: u32) -> Option<NarrowBlock<'b>> {
        let table = block.piece_table.as_ref()?;
        let sums = table.sums.as_ref()?;
        let own_kings = table.own_kings.as_deref()?;
        let is_narrow = u64::from(offset) + u64::from(block.spec.product.size) <= 1 << 16;
        (is_narrow && sums.complete).then_some(NarrowBlock { tables: &sums.oriented, own_kings, offset })
    }
}

/// [`append`] for one narrow block: rows are added up in words, 32 at once.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn append_narrow<'a>(
    block: &NarrowBlock<'_>,
    boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
    sides: &mut [RowBuffer; 2],
) {
    let all_squares = load(&SQUARES);
    for (board, stm) in boards {
        let occupied = board.occupancy();
        let count = occupied.count_ones().min(32);
        let codes = code_bytes(board);
        if let Some(kings) = king_squares(codes, occupied, count) {
            let squares = _mm512_castsi512_si256(_mm512_maskz_compress_epi8(occupied, all_squares));
            let squares = _mm512_cvtepu8_epi16(squares);
            let codes = _mm512_cvtepu8_epi16(codes);
            for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                let (base, number) = block.own_kings[pov.index() & 1][kings[pov.index() & 1] as usize & 63];
                if base == NONE {
                    continue;
                }
                let table = &block.tables[usize::from(number & 3)];
                let [low, high] = table.squares.as_chunks::<32>().0 else { continue };
                let square_parts = _mm512_permutex2var_epi16(load(low), squares, load(high));
                let code_parts = _mm512_permutexvar_epi16(codes, load(&table.code_words));
                let base = _mm512_set1_epi16((base.wrapping_add(block.offset) as u16).cast_signed());
                let rows = _mm512_add_epi16(_mm512_add_epi16(square_parts, code_parts), base);
                let low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(rows));
                let high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(rows));
                store(side, low, high, 16, count as usize);
            }
        }
        sides.iter_mut().for_each(RowBuffer::end);
    }
}

/// The piece codes in the order of the squares.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn code_bytes(board: &PackedBoard) -> __m256i {
    let nibbles = board.codes();
    let nibbles = _mm_set_epi64x((nibbles >> 64) as i64, nibbles as i64);
    let pairs = _mm256_cvtepu8_epi16(nibbles);
    _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs)), _mm256_set1_epi8(15))
}

/// The squares of White's king and of Black's; `None` where one is missing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,lzcnt")]
fn king_squares(codes: __m256i, occupied: u64, count: u32) -> Option<[u32; 2]> {
    let in_use = (1u64 << count).wrapping_sub(1) as u32;
    let king = |code: i8| {
        let found = _mm256_cmpeq_epi8_mask(codes, _mm256_set1_epi8(code)) & in_use;
        (found != 0).then(|| _pdep_u64(1 << found.ilog2(), occupied).trailing_zeros() & 63)
    };
    Some([king(5)?, king(13)?])
}

/// `None` where a king is missing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn load_pieces(board: &PackedBoard) -> Option<PieceVectors> {
    let occupied = board.occupancy();
    let count = occupied.count_ones().min(32);
    let all = load(&SQUARES);
    let squares = _mm512_castsi512_si256(_mm512_maskz_compress_epi8(occupied, all));
    let codes = code_bytes(board);
    Some(PieceVectors {
        squares: _mm512_cvtepu8_epi16(squares),
        codes: [
            _mm512_cvtepu8_epi32(_mm256_castsi256_si128(codes)),
            _mm512_cvtepu8_epi32(_mm256_extracti128_si256::<1>(codes)),
        ],
        count: count as usize,
        kings: king_squares(codes, occupied, count)?,
    })
}

/// Appends a block's active features for one perspective.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn append_block(pieces: &PieceVectors, block: &CompiledBlock, offset: u32, pov: Perspective, side: &mut RowBuffer) {
    let Some(sums) = block.piece_table.as_ref().and_then(|table| table.sums.as_ref()) else { return };
    let own = pieces.kings[pov.index() & 1];
    let enemy = pieces.kings[pov.index() & 1 ^ 1];
    let Some((base, number)) = block.base_and_table(own, enemy, pov) else { return };
    let table = &sums.oriented[number];
    let [low, high] = table.squares.as_chunks::<32>().0 else { return };
    let low = load(low);
    let high = load(high);
    let squares = _mm512_permutex2var_epi16(low, pieces.squares, high);
    let square_parts = [_mm512_castsi512_si256(squares), _mm512_extracti64x4_epi64::<1>(squares)];
    let base = _mm512_set1_epi32(base.wrapping_add(offset).cast_signed());
    let codes = load(&table.codes);
    let present = _mm512_set1_epi32(table.present.cast_signed());
    let rows = |square_parts: __m256i, piece_codes: __m512i| {
        let entries =
            _mm512_add_epi32(_mm512_cvtepu16_epi32(square_parts), _mm512_permutexvar_epi32(piece_codes, codes));
        _mm512_add_epi32(entries, base)
    };
    let [low, high] = [rows(square_parts[0], pieces.codes[0]), rows(square_parts[1], pieces.codes[1])];
    if sums.complete {
        store(side, low, high, 16, pieces.count);
        return;
    }
    let in_use = (1u64 << pieces.count).wrapping_sub(1) as u32;
    let keep = |piece_codes: __m512i, in_use: u32| {
        in_use as u16 & _mm512_test_epi32_mask(_mm512_srlv_epi32(present, piece_codes), _mm512_set1_epi32(1))
    };
    let [keep_low, keep_high] = [keep(pieces.codes[0], in_use), keep(pieces.codes[1], in_use >> 16)];
    let low = _mm512_maskz_compress_epi32(keep_low, low);
    let high = _mm512_maskz_compress_epi32(keep_high, high);
    let count = keep_low.count_ones() as usize;
    store(side, low, high, count, count + keep_high.count_ones() as usize);
}

/// Appends `count` rows, the first `split` of them from `low`; `high` overwrites the rest of `low`.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(side: &mut RowBuffer, low: __m512i, high: __m512i, split: usize, count: usize) {
    let spare = side.spare();
    if let Some(first) = spare.first_chunk_mut() {
        store_vector(first, low);
    }
    if let Some(second) = spare[split..].first_chunk_mut() {
        store_vector(second, high);
    }
    side.commit(count);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_vector(to: &mut [u32; 16], rows: __m512i) {
    // SAFETY: `to` has 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), rows) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: bytemuck::Pod, const N: usize>(from: &[T; N]) -> __m512i {
    const { assert!(size_of::<T>() * N == 64) };
    // SAFETY: `from` has 64 bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// The squares, a1 to h8.
static SQUARES: [u8; 64] = {
    let mut squares = [0; 64];
    let mut square = 0;
    while square < 64 {
        squares[square] = square as u8;
        square += 1;
    }
    squares
};
