//! Piece tables whose entries are sums of a part for the code and a part for the square, as in most sets. Vector
//! instructions look both up for many pieces at once.

use super::CompiledBlock;
use super::piece_table::orientation_xor;
use super::tables::NONE;

/// A piece table as a sum of parts, for each perspective and mirrored half (see [`orientation_xor`]).
#[derive(Debug)]
pub struct SumTables {
    pub oriented: Box<[SumTable; 4]>,
    /// Whether all pieces have an entry.
    pub complete: bool,
}

/// The entry of a piece is `squares[square] + codes[code]`.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct SumTable {
    pub squares: [u16; 64],
    pub codes: [u32; 16],
    /// The lower halves of `codes`, then zeros.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for vectors of 64 bytes"))]
    pub code_words: [u16; 32],
    /// One bit per code that has entries.
    pub present: u32,
}

impl SumTables {
    /// From entries by relative code and oriented square; `None` where they are no such sums.
    pub fn of(entries: &[u32; 1024]) -> Option<SumTables> {
        let by_code = entries.as_chunks::<64>().0;
        let present = |code: usize| by_code[code].iter().any(|entry| *entry != NONE);
        let first = (0..16).find(|code| present(*code))?;
        // The first square's entry may be the larger one.
        let difference =
            |code: usize, square: usize| by_code[code][square].wrapping_sub(by_code[code][0]).cast_signed();
        let least = (0..64).map(|square| difference(first, square)).min()?;
        let mut table = SumTable { squares: [0; 64], codes: [0; 16], code_words: [0; 32], present: 0 };
        for (square, part) in table.squares.iter_mut().enumerate() {
            *part = u16::try_from(difference(first, square).wrapping_sub(least)).ok()?;
        }
        for code in (0..16).filter(|code| present(*code)) {
            let same = |square| by_code[code][square] != NONE && difference(code, square) == difference(first, square);
            if !(0..64).all(same) {
                return None;
            }
            table.codes[code] = by_code[code][0].wrapping_add_signed(least);
            table.present |= 1 << code;
        }
        let orient = |number: usize| {
            let square_xor = usize::from(orientation_xor(number) & 63);
            let code_xor = usize::from(orientation_xor(number) >> 6);
            SumTable {
                squares: std::array::from_fn(|square| table.squares[square ^ square_xor]),
                codes: std::array::from_fn(|code| table.codes[code ^ code_xor]),
                code_words: std::array::from_fn(|code| match code {
                    0..16 => table.codes[code ^ code_xor] as u16,
                    _ => 0,
                }),
                present: (0..16).map(|code| (table.present >> (code ^ code_xor) & 1) << code).sum(),
            }
        };
        Some(SumTables { oriented: Box::new([0, 1, 2, 3].map(orient)), complete: table.present == 0x3f3f })
    }
}

impl CompiledBlock {
    /// Whether the block is a piece table of sums.
    pub fn has_sum_tables(&self) -> bool {
        self.piece_table.as_ref().is_some_and(|table| table.sums.is_some())
    }
}
