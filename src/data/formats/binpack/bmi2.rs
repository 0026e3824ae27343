//! Bit operations that BMI2 does in one instruction. Code generic over [`BitInstructions`] is inlined into a function
//! compiled for either kind of CPU, and [`dispatch`] selects one. Both give the same results (property-tested).
#![allow(unsafe_code, reason = "calls functions compiled for BMI2, after a check of the CPU")]

use super::bits::BitSelect;
#[cfg(target_arch = "x86_64")]
use super::vbmi2::Vbmi2;
use crate::chess::PackedBoard;

/// The bit operations of a kind of CPU; a value proves that this CPU has them.
pub trait BitInstructions: Copy {
    /// The `n`-th lowest member of a set, counted from 0; the set must have more than `n`.
    fn nth(self, set: u64, n: u32) -> u32;
    /// The board with these occupied squares, 32 at most; plane `i` holds bit `i` of each square's piece code.
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard;
    /// The same from the piece code of each occupied square, where that is faster. Codes stored just before make the
    /// CPU wait.
    #[inline(always)]
    fn board_of_codes(self, occupied: u64, _: &[u8; 64], planes: impl FnOnce() -> [u64; 4]) -> PackedBoard {
        self.board(occupied, planes())
    }
    /// The inverse of [`BitInstructions::board`], and the piece code of each occupied square.
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]);
}

/// A computation over [`BitInstructions`]. Its `run` and everything that it calls must be inlined; a closure, as of an
/// array's `map`, may not be.
pub trait BitTask {
    type Output;
    /// Whether the task packs boards from piece codes. Only that code gains by AVX-512; other code, compiled for it,
    /// loads values as vectors that were stored in parts just before, which makes the CPU wait.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other CPUs have one form of it"))]
    const PACKS_CODES: bool = false;
    fn run(self, bits: impl BitInstructions) -> Self::Output;
}

/// Runs the task with the best instructions of this CPU.
pub fn dispatch<T: BitTask>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(bits) = Bmi2::detect() {
        return match Vbmi2::detect(bits).filter(|_| T::PACKS_CODES) {
            Some(bits) => bits.run(task),
            None => bits.run(task),
        };
    }
    task.run(Portable)
}

/// Instructions that every CPU has.
#[derive(Copy, Clone, Debug)]
pub struct Portable;

impl BitInstructions for Portable {
    #[inline(always)]
    fn nth(self, set: u64, n: u32) -> u32 {
        BitSelect::new(set).nth(n)
    }

    #[inline(always)]
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard {
        PackedBoard::of_planes(occupied, planes)
    }

    #[inline(always)]
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]) {
        let mut planes = [0; 4];
        let mut squares = [0; 64];
        for (square, code) in board.pieces() {
            squares[square as usize] = code.index() as u8;
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= (code.index() as u64 >> bit & 1) << square as u32;
            }
        }
        (planes, squares)
    }
}

/// BMI2, only where it is fast: AMD's CPUs before Zen 3 take a hundred cycles per instruction.
#[cfg(target_arch = "x86_64")]
#[derive(Copy, Clone, Debug)]
pub struct Bmi2(());

#[cfg(target_arch = "x86_64")]
impl Bmi2 {
    pub fn detect() -> Option<Bmi2> {
        use std::arch::is_x86_feature_detected as has;
        let supported = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        // Zen 3 is AMD's first with vector AES, and no AMD CPU before it has AVX-512.
        (supported && (has!("vaes") || has!("avx512f") || !is_amd())).then_some(Bmi2(()))
    }

    pub fn run<T: BitTask>(self, task: T) -> T::Output {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn compiled<T: BitTask>(task: T, proof: Bmi2) -> T::Output {
            task.run(proof)
        }
        // SAFETY: `detect` is the only constructor, so the CPU has these instructions.
        unsafe { compiled(task, self) }
    }
}

#[cfg(target_arch = "x86_64")]
fn is_amd() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes) == [*b"Auth", *b"enti", *b"cAMD"]
}

/// The lowest bit of each nibble.
#[cfg(target_arch = "x86_64")]
const NIBBLES: u64 = 0x1111_1111_1111_1111;

#[cfg(target_arch = "x86_64")]
impl BitInstructions for Bmi2 {
    #[inline(always)]
    fn nth(self, set: u64, n: u32) -> u32 {
        use std::arch::x86_64::_pdep_u64;
        // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
        unsafe { _pdep_u64(1 << n, set) }.trailing_zeros() & 63
    }

    #[inline(always)]
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard {
        use std::arch::x86_64::{_pdep_u64, _pext_u64};
        let [mut low, mut high] = [0, 0];
        for (bit, plane) in planes.into_iter().enumerate() {
            // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
            unsafe {
                let bits = _pext_u64(plane, occupied);
                low |= _pdep_u64(bits, NIBBLES) << bit;
                high |= _pdep_u64(bits >> 16, NIBBLES) << bit;
            }
        }
        PackedBoard::from_bits(occupied, u128::from(low) | u128::from(high) << 64)
    }

    #[inline(always)]
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]) {
        use std::arch::x86_64::{_pdep_u64, _pext_u64};
        const BYTES: u64 = 0x0101_0101_0101_0101;
        let occupied = board.occupancy();
        let mut codes = board.codes();
        let [low, high] = [codes as u64, (codes >> 64) as u64];
        let mut planes = [0; 4];
        for (bit, plane) in planes.iter_mut().enumerate() {
            let bits = NIBBLES << bit;
            // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
            *plane = unsafe { _pdep_u64(_pext_u64(low, bits) | _pext_u64(high, bits) << 16, occupied) };
        }
        let mut squares = [0; 64];
        for (rank, squares) in occupied.to_le_bytes().into_iter().zip(squares.as_chunks_mut::<8>().0) {
            // SAFETY: as above.
            *squares = unsafe { _pdep_u64(codes as u64, 15 * _pdep_u64(u64::from(rank), BYTES)) }.to_le_bytes();
            codes >>= 4 * rank.count_ones();
        }
        (planes, squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    struct Both {
        set: u64,
        n: u32,
        planes: [u64; 4],
    }

    impl BitTask for Both {
        type Output = (u32, [PackedBoard; 2], ([u64; 4], [u8; 64]));
        const PACKS_CODES: bool = true;

        #[inline(always)]
        fn run(self, bits: impl BitInstructions) -> Self::Output {
            let codes =
                |square| self.planes.iter().rev().fold(0, |code, plane| code << 1 | (plane >> square & 1) as u8);
            let board = bits.board(self.set, self.planes);
            let from_codes = bits.board_of_codes(self.set, &std::array::from_fn(codes), || self.planes);
            (bits.nth(self.set, self.n), [board, from_codes], bits.planes(&board))
        }
    }

    #[test]
    fn bmi2_and_portable_agree() {
        let mut rng = Seed(4).stream("bits", 0);
        for round in 0..20_000 {
            let mut set: u64 = rng.random();
            while set.count_ones() > 32 || round % 3 == 0 && set.count_ones() > 3 {
                set &= rng.random::<u64>();
            }
            if set == 0 {
                continue;
            }
            let n = rng.random_range(0..set.count_ones());
            let planes = rng.random::<[u64; 4]>().map(|plane| plane & set);
            let expected = Both { set, n, planes }.run(Portable);
            let expected_nth = (0..64).filter(|at| set >> at & 1 == 1).nth(n as usize);
            assert_eq!(expected_nth, Some(expected.0));
            assert_eq!(expected.1[0], expected.1[1]);
            for (square, code) in expected.1[0].pieces() {
                let bits = planes.map(|plane| (plane >> square as u32 & 1) as usize);
                assert_eq!(code.index(), bits[0] | bits[1] << 1 | bits[2] << 2 | bits[3] << 3);
            }
            assert_eq!(expected.2.0, planes);
            assert_eq!(dispatch(Both { set, n, planes }), expected);
            #[cfg(target_arch = "x86_64")]
            if let Some(bits) = Bmi2::detect() {
                assert_eq!(bits.run(Both { set, n, planes }), expected);
            }
        }
    }
}
