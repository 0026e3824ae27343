//! Lowering: from a set's blocks to programs that encode boards and follow moves. The encoder runs them, the export
//! writes them down.
//!
//! Everything is done on the board as it stands. A variable's value is a state, code · 64 + square, or a bare square; a
//! perspective's exclusive or ([`Context::orientation`]) turns it into the state that the perspective sees. [`Context`]
//! writes down what the kings decide; [`Context::rows`] gives the rows of bound variables, for both perspectives at
//! once where that is possible.
//!
//! A delta is derived from the change of the board: [`pieces`] for blocks of one variable of pieces, [`next`] for
//! pieces with the next one in a direction, [`pairs`] for selected pairs of pieces, [`reach`] for attacks, moves and
//! counts of them. Blocks without such a derivation are encoded before and after the move and compared, by the caller. [`encode`] writes the loops of any block.
#![allow(clippy::needless_range_loop, reason = "a perspective's number indexes several arrays at once")]

mod allowed;
mod classes;
mod conditions;
mod context;
mod encode;
mod next;
mod pairs;
mod pieces;
mod reach;
mod rows;
mod sources;
#[cfg(test)]
mod tests;
mod values;

use super::code::{BoardTime, Builder, Program};
use super::set::Block;
use super::spec::Multiplicity;
use context::{Context, king_squares};

/// Most terms of a block for which instructions are written term by term.
const MOST_TERMS: usize = 16;

/// A program that follows moves, and the blocks, by position, that it leaves out.
#[derive(Debug)]
pub struct DeltaProgram {
    /// The rows that a change adds and removes. The boards before and after have one king a side, and each block's
    /// context is the same on both for every perspective that is looked at.
    pub program: Program,
    /// Writes the state that belongs to the board before, where there is any: for the first board of a game.
    pub start: Option<Program>,
    /// Blocks whose change is found by encoding both boards: their rows are compared.
    pub compared: Vec<usize>,
    /// Whether a row of a bag may be listed as removed and as added, once more each than it is.
    pub may_cancel: bool,
}

/// A program that encodes boards: the active rows of some blocks.
#[derive(Debug)]
pub struct EncoderProgram {
    /// Emits nothing for a board on which a side has no king or several.
    pub program: Program,
    /// Whether rows that count once may be listed several times, so that repeats must be dropped.
    pub repeats: bool,
}

/// The encoders of blocks: one of those whose rows come as they count, one of the others.
#[must_use]
pub fn encoders(blocks: &[&Block]) -> Vec<EncoderProgram> {
    let mut programs = Vec::new();
    for repeats in [false, true] {
        let own: Vec<usize> = (0..blocks.len()).filter(|block| may_repeat(blocks[*block]) == repeats).collect();
        if !own.is_empty() {
            let of: Vec<&Block> = own.iter().map(|block| blocks[*block]).collect();
            programs.push(EncoderProgram { program: encoder(&of), repeats });
        }
    }
    programs
}

/// Whether the encoder of a block may list a row several times though it counts once.
fn may_repeat(block: &Block) -> bool {
    let context = Context::new(&mut Builder::default(), block, &mut None);
    let is_told_apart = !block.merges
        && (pieces::derives(&context)
            || next::derives(&context)
            || pairs::derives(&context)
            || reach::tells_apart(&context));
    block.may_repeat() && !is_told_apart
}

fn encoder(blocks: &[&Block]) -> Program {
    let mut builder = Builder::default();
    let mut capacity = 0;
    let kings = [5u64, 13].map(|code| {
        let kings = builder.by_code(BoardTime::Before, code);
        let number = builder.count_ones(kings);
        builder.equal(number, 1)
    });
    let has_kings = builder.and(kings[0], kings[1]);
    builder.if_(has_kings, |builder| {
        let contexts = contexts(builder, blocks);
        let mut pieces = Vec::new();
        let mut pairs = Vec::new();
        let mut selected = Vec::new();
        let mut others = Vec::new();
        for context in &contexts {
            capacity += encode::capacity(context);
            if pieces::derives(context) {
                pieces.push(context);
            } else if next::derives(context) {
                pairs.push(context);
            } else if pairs::derives(context) {
                selected.push(context);
            } else {
                others.push(context);
            }
        }
        pieces::encode(builder, &pieces);
        next::encode(builder, &pairs);
        for context in selected {
            pairs::encode(builder, context);
        }
        for number in reach::encode(builder, &others) {
            encode::encode(builder, others[number]);
        }
    });
    builder.finish(1, rows_of(capacity))
}

/// What the kings decide for blocks.
fn contexts<'a>(builder: &mut Builder, blocks: &[&'a Block]) -> Vec<Context<'a>> {
    let mut kings = None;
    let mut contexts = Vec::new();
    for block in blocks {
        contexts.push(Context::new(builder, block, &mut kings));
    }
    contexts
}

/// For one perspective, the rows of blocks that a king's move removes and adds, and whether a row may be listed as both.
/// `None` where not all are blocks of one variable of pieces. Each board has one king a side.
#[must_use]
pub fn king_move(blocks: &[&Block], pov: usize) -> Option<(Program, bool)> {
    let mut builder = Builder::default();
    let contexts = [BoardTime::Before, BoardTime::After].map(|time| {
        let mut kings = Some(king_squares(&mut builder, time));
        blocks.iter().map(|block| Context::new(&mut builder, block, &mut kings)).collect::<Vec<_>>()
    });
    if blocks.iter().any(|block| block.merges) || !contexts[0].iter().all(pieces::derives) {
        return None;
    }
    let capacity = contexts[0].iter().map(encode::capacity).sum();
    let may_cancel = pieces::king_move(&mut builder, contexts.each_ref().map(|contexts| &contexts[..]), pov);
    Some((builder.finish(2, rows_of(capacity)), may_cancel))
}

/// A number of rows as a program's capacity; what is beyond 32 bits is more than machine code takes.
fn rows_of(capacity: usize) -> u32 {
    u32::try_from(capacity).unwrap_or(u32::MAX)
}

/// The difference between any two boards with one king a side, over blocks whose contexts are equal on both.
#[must_use]
pub fn difference(blocks: &[&Block]) -> DeltaProgram {
    let mut builder = Builder::default();
    let contexts = contexts(&mut builder, blocks);
    let mut compared = Vec::new();
    let mut pieces = Vec::new();
    let mut capacity = 0;
    let mut may_cancel = false;
    for (number, (block, context)) in blocks.iter().zip(&contexts).enumerate() {
        if block.merges || !pieces::derives(context) {
            compared.push(number);
        } else {
            capacity += encode::capacity(context);
            may_cancel |= context.spec.multiplicity == Multiplicity::Bag;
            pieces.push(context);
        }
    }
    pieces::difference(&mut builder, &pieces);
    DeltaProgram { program: builder.finish(2, rows_of(capacity)), start: None, compared, may_cancel }
}

/// The delta of blocks.
#[must_use]
pub fn delta(blocks: &[&Block]) -> DeltaProgram {
    let mut builder = Builder::default();
    let contexts = contexts(&mut builder, blocks);
    let mut compared = Vec::new();
    let mut pieces = Vec::new();
    let mut neighbours = Vec::new();
    let mut pairs = Vec::new();
    let mut others = Vec::new();
    let mut capacity = 0;
    let mut may_cancel = false;
    for (number, (block, context)) in blocks.iter().zip(&contexts).enumerate() {
        if block.merges {
            compared.push(number);
        } else if pieces::derives(context) {
            capacity += 2 * context.block.terms().len();
            pieces.push(context);
        } else if next::derives(context) {
            capacity += next::capacity(context);
            may_cancel |= next::may_cancel(context);
            neighbours.push(context);
        } else if pairs::derives(context) {
            capacity += pairs::CAPACITY;
            pairs.push(context);
        } else {
            others.push((number, context));
        }
    }
    pieces::delta(&mut builder, &pieces);
    next::delta(&mut builder, &neighbours);
    for context in pairs {
        pairs::delta(&mut builder, context);
    }
    let reached = reach::delta(&mut builder, &others);
    capacity += reached.capacity as usize;
    compared.extend(others.iter().map(|(number, _)| *number).filter(|number| !reached.written.contains(number)));
    compared.sort_unstable();
    let start = reached.start();
    DeltaProgram { program: builder.finish(2, rows_of(capacity)), start, compared, may_cancel }
}
