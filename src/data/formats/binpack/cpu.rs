//! What a CPU can do at once with sets of squares. Code that is generic over [`Cpu`] and inlined into a function compiled
//! for the instructions of one runs on it; [`dispatch`] chooses. Both give the same (property-tested).
#![allow(unsafe_code, reason = "calls of functions compiled for instructions, behind a check of the CPU")]

use super::bits::Counted;
use crate::chess::PackedBoard;

/// Holding one proves that the CPU can run it.
pub trait Cpu: Copy {
    /// The `n`-th lowest member of a set, from 0; there must be more than `n`.
    fn nth(self, set: u64, n: u32) -> u32;
    /// The board whose occupied squares have these bits of their piece codes, lowest first; 32 at most.
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard;
    /// The reverse of [`Cpu::board`], and the code on each occupied square.
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]);
}

/// Work over a CPU's instructions. Its `run` and all that it calls must be inlined.
pub trait Work {
    type Output;
    fn run(self, cpu: impl Cpu) -> Self::Output;
}

/// Does the work with the best instructions there are.
pub fn dispatch<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(bits) = Deposit::detect() {
        return bits.run(work);
    }
    work.run(Portable)
}

/// Any CPU.
#[derive(Copy, Clone, Debug)]
pub struct Portable;

impl Cpu for Portable {
    #[inline(always)]
    fn nth(self, set: u64, n: u32) -> u32 {
        Counted::new(set).nth(n)
    }

    #[inline(always)]
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard {
        PackedBoard::of_planes(occupied, planes)
    }

    #[inline(always)]
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]) {
        let (mut planes, mut squares) = ([0; 4], [0; 64]);
        for (square, code) in board.pieces() {
            squares[square as usize] = code.index() as u8;
            for (bit, plane) in planes.iter_mut().enumerate() {
                *plane |= (code.index() as u64 >> bit & 1) << square as u32;
            }
        }
        (planes, squares)
    }
}

/// BMI2: bits deposited and extracted. Only where that is fast; AMD's before Zen 3 take a hundred cycles.
#[cfg(target_arch = "x86_64")]
#[derive(Copy, Clone, Debug)]
pub struct Deposit(());

#[cfg(target_arch = "x86_64")]
impl Deposit {
    pub fn detect() -> Option<Deposit> {
        use std::arch::is_x86_feature_detected as has;
        let there = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        // Zen 3 brought the first vector AES of AMD, and none of its CPUs before has AVX-512.
        (there && (has!("vaes") || has!("avx512f") || !is_amd())).then_some(Deposit(()))
    }

    fn run<W: Work>(self, work: W) -> W::Output {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn compiled<W: Work>(work: W, proof: Deposit) -> W::Output {
            work.run(proof)
        }
        // SAFETY: `detect` is the only constructor, so the CPU has these instructions.
        unsafe { compiled(work, self) }
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
impl Cpu for Deposit {
    #[inline(always)]
    fn nth(self, set: u64, n: u32) -> u32 {
        use std::arch::x86_64::_pdep_u64;
        // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
        unsafe { _pdep_u64(1 << n, set) }.trailing_zeros() & 63
    }

    #[inline(always)]
    fn board(self, occupied: u64, planes: [u64; 4]) -> PackedBoard {
        use std::arch::x86_64::{_pdep_u64, _pext_u64};
        // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
        let [low, high] = planes.iter().enumerate().fold([0, 0], |[low, high], (bit, plane)| unsafe {
            let bits = _pext_u64(*plane, occupied);
            [low | _pdep_u64(bits, NIBBLES) << bit, high | _pdep_u64(bits >> 16, NIBBLES) << bit]
        });
        PackedBoard::from_bits(occupied, u128::from(low) | u128::from(high) << 64)
    }

    #[inline(always)]
    fn planes(self, board: &PackedBoard) -> ([u64; 4], [u8; 64]) {
        use std::arch::x86_64::{_pdep_u64, _pext_u64};
        const BYTES: u64 = 0x0101_0101_0101_0101;
        let (occupied, mut codes) = (board.occupancy(), board.codes());
        let halves = [codes as u64, (codes >> 64) as u64];
        // SAFETY: `detect` is the only constructor, so the CPU has BMI2.
        let planes = [0, 1, 2, 3].map(|bit| unsafe {
            let [low, high] = halves.map(|half| _pext_u64(half, NIBBLES << bit));
            _pdep_u64(low | high << 16, occupied)
        });
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

    impl Work for Both {
        type Output = (u32, PackedBoard, ([u64; 4], [u8; 64]));

        #[inline(always)]
        fn run(self, cpu: impl Cpu) -> Self::Output {
            let board = cpu.board(self.set, self.planes);
            (cpu.nth(self.set, self.n), board, cpu.planes(&board))
        }
    }

    #[test]
    fn every_cpu_gives_the_same() {
        let mut rng = Seed(4).stream("cpu", 0);
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
            let place = (0..64).filter(|at| set >> at & 1 == 1).nth(n as usize);
            assert_eq!(place, Some(expected.0));
            for (square, code) in expected.1.pieces() {
                let bits = planes.map(|plane| (plane >> square as u32 & 1) as usize);
                assert_eq!(code.index(), bits[0] | bits[1] << 1 | bits[2] << 2 | bits[3] << 3);
            }
            assert_eq!(expected.2.0, planes);
            assert_eq!(dispatch(Both { set, n, planes }), expected);
        }
    }
}
