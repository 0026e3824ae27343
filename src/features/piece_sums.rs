//! Blocks of single pieces whose indices are sums of two numbers: the sets that most engines have, and a form in which
//! people read them.

use super::compiled::NONE;
use super::set::Block;
use super::spec::DROPPED;

/// A block's index = `starts[own king] + parts[(colour · 6 + role) · 64 + square]`, squares as the perspective sees
/// them, own pieces first.
#[derive(Debug)]
pub(crate) struct PieceSums {
    /// `None`: no features with the king there, or no such square.
    pub(crate) starts: Vec<Option<u32>>,
    pub(crate) parts: Vec<Option<u32>>,
    /// Whether the king can stand somewhere without features.
    pub(crate) has_gaps: bool,
}

impl PieceSums {
    /// `None` if the block has another form.
    pub(crate) fn of(block: &Block) -> Option<PieceSums> {
        let (kings, entries) = block.compiled.king_and_piece_rows().filter(|_| !block.merges)?;
        let renumbering = block.compiled.spec().renumbering.as_deref();
        let index = |row: u32| match renumbering {
            None => Some(row + block.offset),
            Some(renumbering) => match renumbering[row as usize] {
                DROPPED => None,
                index => Some(index + block.spec().offset),
            },
        };
        let mut sums = PieceSums { starts: vec![None; 64], parts: Vec::new(), has_gaps: false };
        for (king, base) in kings {
            let row = |state: usize| match entries[((state / 384) << 9) | (state % 384)] {
                NONE => None,
                entry => index(base? + entry),
            };
            let rows: Vec<Option<u32>> = (0..768).map(row).collect();
            let Some(least) = rows.iter().flatten().min().copied() else {
                sums.has_gaps = true;
                continue;
            };
            let parts: Vec<Option<u32>> = rows.iter().map(|row| row.map(|row| row - least)).collect();
            if sums.parts.is_empty() {
                sums.parts = parts;
            } else if sums.parts != parts {
                return None;
            }
            sums.starts[king] = Some(least);
        }
        (!sums.parts.is_empty()).then_some(sums)
    }

    /// Whether no two states of pieces share an index.
    pub(crate) fn is_distinct(&self) -> bool {
        let mut rows: Vec<u32> = self.parts.iter().flatten().copied().collect();
        rows.sort_unstable();
        rows.windows(2).all(|pair| pair[0] != pair[1])
    }
}
