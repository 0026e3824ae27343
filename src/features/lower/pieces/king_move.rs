//! A perspective's changes of such blocks when a king moves: all rows of both boards but for those that stay.

use super::{Others, PieceBlock, PieceTerm, for_pieces};
use crate::features::code::{Binary, BoardTime, Builder, Memory, Operand, Program, Register};
use crate::features::compiled::NONE;
use crate::features::lower::context::Context;

/// Writes the changes of such blocks for one perspective when a king moves, given their contexts before and after; says
/// whether a row may be listed as removed and as added.
pub fn king_move(builder: &mut Builder, contexts: [&[Context<'_>]; 2], pov: usize) -> bool {
    let povs = [pov == 0, pov == 1];
    // Pieces of one board are compared; between the boards, [`Inverse`] tells the pieces of a row apart by their codes.
    let [mut before, mut after] = contexts.map(|contexts| {
        contexts.iter().map(|context| PieceBlock::of(builder, context, povs, true)).collect::<Vec<PieceBlock<'_, '_>>>()
    });
    if before.iter().all(|block| block.terms.is_empty()) {
        return false;
    }
    let inverses = [(&after, BoardTime::After), (&before, BoardTime::Before)].map(|(others, time)| {
        let mut inverses = Vec::new();
        for block in others {
            inverses.extend(block.terms.iter().map(|term| Inverse::of(builder, block, term, (time, pov))));
        }
        inverses
    });
    let mut write = |builder: &mut Builder, are_apart: bool| {
        let lists = [
            (Program::REMOVED, BoardTime::Before, &mut before, &inverses[0]),
            (Program::ADDED, BoardTime::After, &mut after, &inverses[1]),
        ];
        for (list, time, blocks, inverses) in lists {
            for_pieces(builder, time, &mut |builder, state| {
                let mut inverses = inverses.iter();
                for block in &mut *blocks {
                    block.bind(builder, state);
                    for term in &block.terms {
                        let inverse = inverses.next().and_then(Option::as_ref).filter(|_| !are_apart);
                        let (rows, conditions) = block.row(builder, term, state, None, &[Others::Lower(time)]);
                        let Some(row) = rows.each(builder)[pov] else { continue };
                        let mut condition = conditions.0[pov];
                        if let Some(inverse) = inverse {
                            let is_absent = inverse.lacks(builder, row);
                            condition = Some(match condition {
                                Some(condition) => builder.and(condition, is_absent),
                                None => is_absent,
                            });
                        }
                        builder.emit_one(list, pov, row, condition);
                    }
                }
            });
        }
    };
    // Often, as where the kings select one of many buckets, no row can be on both boards.
    match Inverse::may_meet(builder, &inverses) {
        Some(may_meet) => builder.if_else(may_meet, &mut write),
        None => write(builder, false),
    }
    inverses.iter().flatten().any(Option::is_none)
}

/// Which piece of a board a perspective's row belongs to.
struct Inverse {
    time: BoardTime,
    /// What is not the piece's in the row.
    base: Operand,
    orientation: Operand,
    /// By the piece's entry: its oriented square, and from [`Inverse::CODES`] on a bit for each code that it may have. At
    /// the end an entry of no piece.
    pieces: Memory,
    entries: u64,
}

impl Inverse {
    /// Most entries.
    const MOST: usize = 1 << 14;

    /// Above the bits of an orientation.
    const CODES: u32 = 16;

    /// `None` where more than the piece's entry decides whether its row is there.
    fn of(
        builder: &mut Builder,
        block: &PieceBlock<'_, '_>,
        term: &PieceTerm,
        (time, pov): (BoardTime, usize),
    ) -> Option<Inverse> {
        if !term.is_alone() || !block.is_free(term) {
            return None;
        }
        let context = block.context;
        let table = &context.block.terms()[term.number].tables[block.slot];
        let entries = table.iter().filter(|entry| **entry != NONE).max().map_or(0, |entry| *entry as usize + 1);
        if entries > Inverse::MOST {
            return None;
        }
        let mut pieces = vec![0; entries + 1];
        for (state, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
            let code = state >> 6 ^ pov << 3;
            pieces[*entry as usize] |= state as u32 & 63 | 1 << (Inverse::CODES + code as u32);
        }
        Some(Inverse {
            time,
            base: context.bases[term.number].part(pov),
            orientation: context.orientation[pov],
            pieces: builder.words(pieces),
            entries: entries as u64,
        })
    }

    /// Whether the rows of both boards lie within each other's ranges; `None` if that is known or does not matter.
    fn may_meet(builder: &mut Builder, [of_after, of_before]: &[Vec<Option<Inverse>>; 2]) -> Option<Register> {
        let mut any = None;
        for (after, before) in of_after.iter().zip(of_before) {
            let (Some(after), Some(before)) = (after, before) else { return None };
            let Operand::Register(base) = after.base else { return None };
            let distance = builder.binary(Binary::Subtract, base, before.base);
            let distance = builder.add(distance, after.entries);
            let meet = builder.binary(Binary::Less, distance, 2 * after.entries);
            any = Some(match any {
                Some(others) => builder.or(others, meet),
                None => meet,
            });
        }
        any
    }

    /// Whether no piece of the board has a row.
    fn lacks(&self, builder: &mut Builder, row: Register) -> Register {
        let entry = builder.binary(Binary::Subtract, row, self.base);
        let is_entry = builder.binary(Binary::Less, entry, self.entries);
        let entry = builder.select(is_entry, entry, self.entries);
        let piece = builder.load(self.pieces, entry);
        let square = builder.xor(piece, self.orientation);
        let square = builder.and(square, 63);
        let there = builder.code_on(self.time, square);
        let codes = builder.shift_right(piece, u64::from(Inverse::CODES));
        let is_there = builder.shift_right(codes, there);
        let is_there = builder.and(is_there, 1);
        builder.xor(is_there, 1)
    }
}
