//! Blocks that are one table over pieces, all pieces of a board at once in AVX-512 registers: what training streams,
//! where the CPU can. It needs tables that are a share of the piece's code plus a share of its square; those of most sets
//! are. Equal to [`CompiledBlock::walk_both`] (property-tested).
#![allow(unsafe_code, reason = "vector instructions behind a check of the CPU, and stores through pointers")]

use std::arch::x86_64::*;

use crate::chess::{PackedBoard, Perspective};

use super::CompiledBlock;
use super::pieces::{RowBuffer, exchange};
use super::tables::NONE;

/// A table's shares, as each of the perspectives and mirrored halves sees them (`pieces.rs`, `exchange`).
#[derive(Debug)]
pub struct Shares {
    turned: Box<[Share; 4]>,
    /// Whether all pieces have an entry.
    whole: bool,
}

/// The entry of a piece is the sum of its code's and its square's.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Share {
    squares: [u16; 64],
    codes: [u32; 16],
    /// A bit a code that has entries.
    present: u32,
}

impl Shares {
    /// Of a table by relative code and oriented square; none where it is no such sum.
    pub fn of(table: &[u32; 1024]) -> Option<Shares> {
        let rows = table.as_chunks::<64>().0;
        let present = |code: usize| rows[code].iter().any(|entry| *entry != NONE);
        let first = (0..16).find(|code| present(*code))?;
        // Differences to the first square's entry, which may be the larger one.
        let difference = |code: usize, square: usize| rows[code][square].wrapping_sub(rows[code][0]).cast_signed();
        let least = (0..64).map(|square| difference(first, square)).min()?;
        let mut share = Share { squares: [0; 64], codes: [0; 16], present: 0 };
        for (square, entry) in share.squares.iter_mut().enumerate() {
            *entry = u16::try_from(difference(first, square).wrapping_sub(least)).ok()?;
        }
        for code in (0..16).filter(|code| present(*code)) {
            let same = |square| rows[code][square] != NONE && difference(code, square) == difference(first, square);
            if !(0..64).all(same) {
                return None;
            }
            share.codes[code] = rows[code][0].wrapping_add_signed(least);
            share.present |= 1 << code;
        }
        let turned = |number: usize| {
            let (squares, codes) = (usize::from(exchange(number) & 63), usize::from(exchange(number) >> 6));
            Share {
                squares: std::array::from_fn(|square| share.squares[square ^ squares]),
                codes: std::array::from_fn(|code| share.codes[code ^ codes]),
                present: (0..16).map(|code| (share.present >> (code ^ codes) & 1) << code).sum(),
            }
        };
        Some(Shares { turned: Box::new([0, 1, 2, 3].map(turned)), whole: share.present == 0x3f3f })
    }
}

impl CompiledBlock {
    /// Whether the block is one table over pieces, and that a sum of shares.
    pub fn sums(&self) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.shares.is_some())
    }
}

/// Holding it proves that the CPU has the instructions.
#[derive(Copy, Clone, Debug)]
pub struct Lanes(());

/// The pieces of a board, two halves of sixteen, in the order of their squares.
#[derive(Copy, Clone)]
struct Pieces {
    /// Words.
    squares: __m512i,
    codes: [__m512i; 2],
    count: usize,
    /// White's king and Black's.
    kings: [u32; 2],
}

impl Lanes {
    pub fn detect() -> Option<Lanes> {
        use std::arch::is_x86_feature_detected as has;
        let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        let plain = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        (bits && plain && has!("avx512vbmi") && has!("avx512vbmi2")).then_some(Lanes(()))
    }

    /// Appends the active features of boards, each as the side given and as the other sees it, and marks their ends.
    /// `blocks`: blocks that have [`Shares`], and what their indices are shifted by.
    pub fn append<'a, 'b>(
        self,
        blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
        boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
        sides: &mut [RowBuffer; 2],
    ) {
        // SAFETY: `detect` is the only constructor, so the CPU has these instructions.
        unsafe { append(blocks, boards, sides) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn append<'a, 'b>(
    blocks: &(impl Iterator<Item = (&'b CompiledBlock, u32)> + Clone),
    boards: impl Iterator<Item = (&'a PackedBoard, Perspective)>,
    sides: &mut [RowBuffer; 2],
) {
    for (board, stm) in boards {
        if let Some(pieces) = read(board) {
            for (side, pov) in sides.iter_mut().zip([stm, stm.other()]) {
                for (block, offset) in blocks.clone() {
                    write(&pieces, block, offset, pov, side);
                }
            }
        }
        sides.iter_mut().for_each(RowBuffer::end);
    }
}

/// None where a king is missing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn read(board: &PackedBoard) -> Option<Pieces> {
    let occupied = board.occupancy();
    let count = occupied.count_ones().min(32);
    let all = load(&SQUARES);
    let squares = _mm512_castsi512_si256(_mm512_maskz_compress_epi8(occupied, all));
    let nibbles = board.codes();
    let nibbles = _mm_set_epi64x((nibbles >> 64) as i64, nibbles as i64);
    let pairs = _mm256_cvtepu8_epi16(nibbles);
    let codes = _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs)), _mm256_set1_epi8(15));
    let there = (1u64 << count).wrapping_sub(1) as u32;
    let king = |code: i8| {
        let found = _mm256_cmpeq_epi8_mask(codes, _mm256_set1_epi8(code)) & there;
        (found != 0).then(|| _pdep_u64(1 << found.ilog2(), occupied).trailing_zeros() & 63)
    };
    Some(Pieces {
        squares: _mm512_cvtepu8_epi16(squares),
        codes: [
            _mm512_cvtepu8_epi32(_mm256_castsi256_si128(codes)),
            _mm512_cvtepu8_epi32(_mm256_extracti128_si256::<1>(codes)),
        ],
        count: count as usize,
        kings: [king(5)?, king(13)?],
    })
}

/// Appends a block's active features as one side sees them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn write(pieces: &Pieces, block: &CompiledBlock, offset: u32, pov: Perspective, side: &mut RowBuffer) {
    let Some(shares) = block.walk.as_ref().and_then(|walk| walk.shares.as_ref()) else { return };
    let (own, enemy) = (pieces.kings[pov.index() & 1], pieces.kings[pov.index() & 1 ^ 1]);
    let Some((base, number)) = block.turned(own, enemy, pov) else { return };
    let share = &shares.turned[number];
    let [low, high] = share.squares.as_chunks::<32>().0 else { return };
    let (low, high) = (load(low), load(high));
    let squares = _mm512_permutex2var_epi16(low, pieces.squares, high);
    let halves = [_mm512_castsi512_si256(squares), _mm512_extracti64x4_epi64::<1>(squares)];
    let first = _mm512_set1_epi32(base.wrapping_add(offset).cast_signed());
    let codes = load(&share.codes);
    let present = _mm512_set1_epi32(share.present.cast_signed());
    let rows = |half: __m256i, of: __m512i| {
        let shares = _mm512_add_epi32(_mm512_cvtepu16_epi32(half), _mm512_permutexvar_epi32(of, codes));
        _mm512_add_epi32(shares, first)
    };
    let [low, high] = [rows(halves[0], pieces.codes[0]), rows(halves[1], pieces.codes[1])];
    if shares.whole {
        store(side, low, high, 16, pieces.count);
        return;
    }
    let there = (1u64 << pieces.count).wrapping_sub(1) as u32;
    let kept = |of: __m512i, there: u32| {
        there as u16 & _mm512_test_epi32_mask(_mm512_srlv_epi32(present, of), _mm512_set1_epi32(1))
    };
    let [kept_low, kept_high] = [kept(pieces.codes[0], there), kept(pieces.codes[1], there >> 16)];
    let (low, high) = (_mm512_maskz_compress_epi32(kept_low, low), _mm512_maskz_compress_epi32(kept_high, high));
    let count = kept_low.count_ones() as usize;
    store(side, low, high, count, count + kept_high.count_ones() as usize);
}

/// Appends `count` rows, the first `split` of them in `low`; what `low` has beyond them is overwritten.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(side: &mut RowBuffer, low: __m512i, high: __m512i, split: usize, count: usize) {
    let room = side.room();
    if let Some(first) = room.first_chunk_mut() {
        put(first, low);
    }
    if let Some(second) = room[split..].first_chunk_mut() {
        put(second, high);
    }
    side.take(count);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn put(to: &mut [u32; 16], rows: __m512i) {
    // SAFETY: 64 bytes, and any address will do.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), rows) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<T: bytemuck::Pod, const N: usize>(from: &[T; N]) -> __m512i {
    const { assert!(size_of::<T>() * N == 64) };
    // SAFETY: 64 bytes, and any address will do.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Board;
    use crate::features::FeatureSet;
    use crate::features::compiled::PieceList;
    use crate::units::Seed;
    use rand::RngExt;

    /// Boards with one king a side and up to 30 other pieces anywhere.
    fn boards() -> Vec<PackedBoard> {
        let mut rng = Seed(6).stream("lanes", 0);
        let board = |_| {
            let mut squares: Vec<u32> = (0..64).collect();
            let mut board = Board::empty();
            for place in 0..rng.random_range(2..=32) {
                let square = squares.swap_remove(rng.random_range(0..squares.len()));
                let code =
                    [5, 13].get(place).copied().unwrap_or_else(|| rng.random_range(0..5) + 8 * rng.random_range(0..2));
                let color = shakmaty::Color::from_black(code > 7);
                let role = shakmaty::Role::ALL[code & 7];
                board.set_piece_at(shakmaty::Square::new(square), shakmaty::Piece { color, role });
            }
            PackedBoard::pack(&board).expect("32 pieces at most")
        };
        (0..300).map(board).collect()
    }

    /// Whether the blocks of a set are such sums; if so, their rows are those of the walk, in its order.
    fn check(definition: &str, expected: bool) {
        let set = FeatureSet::resolve(definition).or_else(|_| FeatureSet::from_definition(definition)).expect("a set");
        for block in set.blocks() {
            assert_eq!(block.compiled.sums(), expected, "{definition}");
        }
        let Some(lanes) = Lanes::detect().filter(|_| expected) else { return };
        let boards = boards();
        for stm in Perspective::ALL {
            let (mut walked, mut found) = (<[RowBuffer; 2]>::default(), <[RowBuffer; 2]>::default());
            let blocks = || set.blocks().iter().map(|block| (&block.compiled, block.offset));
            for board in &boards {
                let mut list = PieceList::default();
                list.fill(board);
                blocks().for_each(|(block, offset)| block.walk_both(&list, stm, offset, &mut walked));
                walked.iter_mut().for_each(RowBuffer::end);
            }
            lanes.append(&blocks(), boards.iter().map(|board| (board, stm)), &mut found);
            for (walked, found) in walked.iter().zip(&found) {
                assert!(walked.rows() == found.rows() && walked.ends() == found.ends(), "{definition}");
            }
        }
    }

    #[test]
    fn rows_are_those_of_the_walk() {
        for set in ["piece", "king-piece", "half-kp", "half-ka", "half-ka-v2", "half-ka-v2-hm", "relative-king-hv"] {
            check(set, true);
        }
        check("compact", false);
        check("king-piece + relative-king-h", true);
        let turned = "square(K) * square(P) * role(P) for P in pieces";
        check(&format!("features = \"{turned}\"\nblack = \"rotate\"\nmirror = \"king-left\""), true);
        check("rank(P) * role(P) * color(P) * square(P) for P in pieces if rank(P) < 3", false);
    }
}
