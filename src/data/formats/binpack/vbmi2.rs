//! BMI2 with AVX-512's instructions for bytes, which pack a board in a few instructions.
#![allow(unsafe_code, reason = "vector instructions behind a check of the CPU")]

use std::arch::x86_64::*;

use super::bmi2::{BitInstructions, BitTask, Bmi2};
use crate::chess::PackedBoard;

/// BMI2, and AVX-512 with its instructions for bytes.
#[derive(Copy, Clone, Debug)]
pub struct Vbmi2(Bmi2);

impl Vbmi2 {
    pub fn detect(bmi2: Bmi2) -> Option<Vbmi2> {
        use std::arch::is_x86_feature_detected as has;
        let basic = has!("avx512f") && has!("avx512bw") && has!("avx512vl");
        (basic && has!("avx512vbmi2")).then_some(Vbmi2(bmi2))
    }

    pub fn run<T: BitTask>(self, task: T) -> T::Output {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi2")]
        fn compiled<T: BitTask>(task: T, proof: Vbmi2) -> T::Output {
            task.run(proof)
        }
        // SAFETY: `detect` is the only constructor, so the CPU has these instructions.
        unsafe { compiled(task, self) }
    }
}

impl BitInstructions for Vbmi2 {
    #[inline(always)]
    fn nth(self, set: u64, n: u32) -> u32 {
        self.0.nth(set, n)
    }

    #[inline(always)]
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard {
        self.0.board(occupied, planes)
    }

    #[inline(always)]
    fn board_of_codes(self, occupied: u64, squares: &[u8; 64], _: impl FnOnce() -> [u64; 4]) -> PackedBoard {
        // SAFETY: `detect` is the only constructor, so the CPU has these instructions. The load takes the 64 bytes of
        // `squares` and needs no alignment.
        let nibbles: [u64; 2] = unsafe {
            let squares = _mm512_loadu_si512(squares.as_ptr().cast());
            let codes = _mm512_castsi512_si256(_mm512_maskz_compress_epi8(occupied, squares));
            // The sum of an even piece's code and sixteen times the next one's.
            let pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
            let pairs = _mm256_cvtepi16_epi8(pairs);
            [_mm_cvtsi128_si64(pairs).cast_unsigned(), _mm_extract_epi64::<1>(pairs).cast_unsigned()]
        };
        PackedBoard::from_bits(occupied, u128::from(nibbles[0]) | u128::from(nibbles[1]) << 64)
    }

    #[inline(always)]
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]) {
        self.0.planes(board)
    }
}
