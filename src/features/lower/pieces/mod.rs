//! Deltas of blocks of one variable of pieces: the rows of the pieces that come and go.

mod king_move;

use crate::chess::BoardChange;
use crate::features::code::{Binary, BoardTime, Builder, Memory, Program, Register};
use crate::features::spec::{BinderSpec, ConditionSpec, Multiplicity, SourceSpec};

use super::allowed::AllowedSquares;
use super::classes::{Classes, are_distinct};
use super::conditions::Conditions;
use super::context::Context;
use super::rows::{Bound, Rows, is_complete};
use super::values::Values;
pub use king_move::king_move;

const NO_PIECE: u64 = BoardChange::NO_PIECE as u64;

/// The terms of a block of pieces, with what their deltas need.
struct PieceBlock<'a, 'b> {
    context: &'b Context<'a>,
    /// Perspectives that are looked at.
    povs: [bool; 2],
    slot: usize,
    conditions: Vec<&'a ConditionSpec>,
    values: Values,
    terms: Vec<PieceTerm>,
}

struct PieceTerm {
    number: usize,
    sharing: Sharing,
    /// Whether some piece on some square has no entry, so that the entry also says whether there is a piece.
    is_partial: bool,
}

/// How pieces of one row are told apart.
enum Sharing {
    /// No two of the pieces that are compared share a row.
    Distinct,
    /// A row counts once: it changes if no piece of its class is on the other board.
    Once(Classes),
    /// A row counts for each piece.
    Each,
}

/// The pieces that may have a row before a piece does.
#[derive(Copy, Clone)]
enum Others {
    /// All of a board.
    Any(BoardTime),
    /// Those on lower squares of a board.
    Lower(BoardTime),
}

/// A row of a changed piece.
type Found = (Rows, Conditions);

/// By list, position in the list and term.
type FoundRows = [[Vec<Found>; 2]; 2];

/// A piece that is removed or added.
struct ChangedPiece {
    state: Register,
    /// Whether there is one, if that is not known.
    exists: Option<Register>,
    list: u8,
    /// The board on which it is not.
    other: BoardTime,
    position: usize,
}

/// Whether a block's delta is one of these.
pub fn derives(context: &Context<'_>) -> bool {
    let spec = context.spec;
    let [BinderSpec { source: SourceSpec::Pieces, slot, .. }] = spec.binders[..] else { return false };
    let has_counts = context.block.terms().iter().any(|term| !term.counts.is_empty()) || !spec.guards.is_empty();
    let terms = context.block.terms();
    let is_distinct = terms.iter().all(|term| are_distinct(&term.tables[slot], false));
    let of_one_king = |condition: &&ConditionSpec| condition.slots().len() == 2;
    let is_tested = spec.multiplicity == Multiplicity::Bag || context.joint_conditions().iter().all(of_one_king);
    !has_counts && (is_distinct || is_tested) && terms.len() <= super::MOST_TERMS
}

/// Writes the deltas of blocks for which [`derives`] holds.
pub fn delta(builder: &mut Builder, contexts: &[&Context<'_>]) {
    let mut blocks = Vec::new();
    for context in contexts {
        let own_king_stays = context.block.contexts().fix_own_king();
        blocks.push(PieceBlock::of(builder, context, [true; 2], own_king_stays));
    }
    let terms: usize = blocks.iter().map(|block| block.terms.len()).sum();
    if terms == 0 {
        return;
    }
    let partners = partners(&blocks);
    // Rows that are compared with each other at the end must all be there. Those of distinct pieces cost less than a
    // branch that depends on what is captured.
    let is_once = |term: &PieceTerm| matches!(term.sharing, Sharing::Once(_)) && !term.is_alone();
    let is_each = |term: &PieceTerm| matches!(term.sharing, Sharing::Each);
    let has = |is: fn(&PieceTerm) -> bool| blocks.iter().any(|block| block.terms.iter().any(is));
    let branches = has(is_once) && !has(is_each);
    let mut found = FoundRows::default();
    for (list, other) in [(Program::REMOVED, BoardTime::After), (Program::ADDED, BoardTime::Before)] {
        let first = 2 * u64::from(list == Program::ADDED);
        let load = |builder: &mut Builder, position: usize| builder.load(Memory::Change, first + position as u64);
        let mut write = |builder: &mut Builder, position: usize, state: Register, exists: Option<Register>| {
            let piece = ChangedPiece { state, exists, list, other, position };
            piece.write(builder, &mut blocks, &partners, &mut found);
        };
        if branches {
            // There is no second piece without a first one.
            let state = load(builder, 0);
            let exists = builder.not_equal(state, NO_PIECE);
            builder.if_(exists, |builder| {
                write(builder, 0, state, None);
                let state = load(builder, 1);
                let exists = builder.not_equal(state, NO_PIECE);
                builder.if_(exists, |builder| write(builder, 1, state, None));
            });
        } else {
            for position in 0..2 {
                let state = load(builder, position);
                // The sign of the difference takes fewer instructions than a comparison's 1 or 0.
                let below = builder.binary(Binary::Subtract, state, NO_PIECE);
                let exists = builder.shift_right(below, 63);
                write(builder, position, state, Some(exists));
            }
        }
    }
    let sharings = blocks.iter().flat_map(|block| &block.terms).map(|term| &term.sharing);
    for (number, sharing) in sharings.enumerate() {
        if matches!(sharing, Sharing::Each) {
            emit_differing(builder, &found, number);
        }
    }
}

/// Writes the encoders of such blocks: no row of a board that counts once is emitted twice.
pub fn encode(builder: &mut Builder, contexts: &[&Context<'_>]) {
    let mut blocks = Vec::new();
    for context in contexts {
        blocks.push(PieceBlock::of(builder, context, [true; 2], true));
    }
    if blocks.iter().all(|block| block.terms.is_empty()) {
        return;
    }
    for_pieces(builder, BoardTime::Before, &mut |builder, state| {
        for block in &mut blocks {
            block.bind(builder, state);
            for term in &block.terms {
                let (rows, conditions) = block.row(builder, term, state, None, &[Others::Lower(BoardTime::Before)]);
                rows.emit(builder, Program::ACTIVE, conditions);
            }
        }
    });
}

/// A loop over the states of a board's pieces.
fn for_pieces(builder: &mut Builder, time: BoardTime, body: &mut dyn FnMut(&mut Builder, Register)) {
    let occupied = builder.occupied(time);
    builder.for_bits(occupied, |builder, square| {
        let code = builder.code_on(time, square);
        let code = builder.shift_left(code, 6);
        let state = builder.or(code, square);
        body(builder, state);
    });
}

/// Writes the differences between any two boards. Rows of bags that count for each piece may be listed on both sides.
pub fn difference(builder: &mut Builder, contexts: &[&Context<'_>]) {
    let mut blocks = Vec::new();
    for context in contexts {
        let own_king_stays = context.block.contexts().fix_own_king();
        blocks.push(PieceBlock::of(builder, context, [true; 2], own_king_stays));
    }
    if blocks.iter().all(|block| block.terms.is_empty()) {
        return;
    }
    let codes = builder.constant(14);
    builder.for_range(codes, |builder, code| {
        let before = builder.by_code(BoardTime::Before, code);
        let after = builder.by_code(BoardTime::After, code);
        let first = builder.shift_left(code, 6);
        let lists = [
            (Program::REMOVED, builder.and_not(before, after), [BoardTime::Before, BoardTime::After]),
            (Program::ADDED, builder.and_not(after, before), [BoardTime::After, BoardTime::Before]),
        ];
        for (list, pieces, [own, other]) in lists {
            builder.for_bits(pieces, |builder, square| {
                let state = builder.or(first, square);
                for block in &mut blocks {
                    block.bind(builder, state);
                    for term in &block.terms {
                        let others = [Others::Any(other), Others::Lower(own)];
                        let (rows, conditions) = block.row(builder, term, state, None, &others);
                        rows.emit(builder, list, conditions);
                    }
                }
            });
        }
    });
}

impl ChangedPiece {
    /// Finds the rows of all terms, and emits those that are not compared at the end.
    fn write(
        &self,
        builder: &mut Builder,
        blocks: &mut [PieceBlock<'_, '_>],
        partners: &[Option<usize>],
        found: &mut FoundRows,
    ) {
        let ChangedPiece { state, exists, list, other, position } = *self;
        let [first, second] = &mut found[usize::from(list)];
        let (own, previous) = if position == 0 { (first, None) } else { (second, Some(&*first)) };
        for block in blocks {
            block.bind(builder, state);
            for term in &block.terms {
                let number = own.len();
                let row = match partners[number] {
                    Some(partner) if partner < number => {
                        let (_, conditions) = own[partner];
                        block.row_if(builder, term, state, conditions.exchanged())
                    }
                    _ => {
                        let row = block.row(builder, term, state, exists, &[Others::Any(other)]);
                        term.without_previous(builder, row, previous.map(|rows| rows[number]))
                    }
                };
                own.push(row);
                match partners[number] {
                    _ if matches!(term.sharing, Sharing::Each) => {}
                    None => row.0.emit(builder, list, row.1),
                    Some(partner) if partner < number => emit_exchanged(builder, list, own[partner], row.0),
                    // With its partner's.
                    Some(_) => {}
                }
            }
        }
    }
}

impl<'a, 'b> PieceBlock<'a, 'b> {
    /// `own_king_stays`: as in [`are_distinct`].
    fn of(
        builder: &mut Builder,
        context: &'b Context<'a>,
        povs: [bool; 2],
        own_king_stays: bool,
    ) -> PieceBlock<'a, 'b> {
        let slot = context.spec.binders[0].slot;
        let conditions = context.joint_conditions();
        let mut values = Values::default();
        values.bind_kings(builder, context, &conditions);
        let mut terms = Vec::new();
        for (number, term) in context.block.terms().iter().enumerate() {
            let table = &term.tables[slot];
            let sharing = match context.spec.multiplicity {
                _ if are_distinct(table, own_king_stays) => Sharing::Distinct,
                Multiplicity::Bag => Sharing::Each,
                Multiplicity::Set => {
                    let allowed = AllowedSquares::of(builder, context, slot, &conditions);
                    Sharing::Once(Classes::of(builder, context, &|_, _| table, &|_, _| !0, allowed))
                }
            };
            let is_partial = !is_complete(table, context.spec.variables[slot]);
            terms.push(PieceTerm { number, sharing, is_partial });
        }
        PieceBlock { context, povs, slot, conditions, values, terms }
    }

    fn bind(&mut self, builder: &mut Builder, state: Register) {
        self.values.bind(builder, self.context, &self.bound(state), &self.conditions);
    }

    fn bound(&self, state: Register) -> Bound {
        Bound { slot: self.slot, states: self.povs.map(|is_seen| is_seen.then_some(state)) }
    }

    /// Whether every piece with an entry has a row of the term, the sum of the entry and the kings' part.
    fn is_free(&self, term: &PieceTerm) -> bool {
        let context = self.context;
        let is_free = context.hold == Conditions::ALWAYS && context.bases[term.number].conditions == Conditions::ALWAYS;
        is_free && self.conditions.is_empty() && context.renumbering().is_none()
    }

    /// Whether every piece has a row of the term, whatever the kings.
    fn is_always_there(&self, term: &PieceTerm) -> bool {
        self.is_free(term) && !term.is_partial
    }

    /// The row of a piece for which `conditions` must hold and nothing else.
    fn row_if(&self, builder: &mut Builder, term: &PieceTerm, state: Register, conditions: Conditions) -> Found {
        let bound = self.bound(state);
        let (rows, _) = self.context.rows(builder, term.number, &[bound], None, Conditions::ALWAYS);
        (rows, conditions)
    }

    /// The row of a piece, and what must hold for it. `others`: for rows that count once, the pieces that must not have it,
    /// too. `exists`: whether there is a piece, if that is not known.
    fn row(
        &self,
        builder: &mut Builder,
        term: &PieceTerm,
        state: Register,
        exists: Option<Register>,
        others: &[Others],
    ) -> Found {
        let bound = self.bound(state);
        let given = match exists {
            // Without a piece there is no entry.
            Some(exists) if !term.is_partial && !term.is_of_squares() => Conditions::both(exists),
            _ => Conditions::ALWAYS,
        };
        let (rows, mut conditions) = self.context.rows(builder, term.number, &[bound], None, given);
        let hold = self.values.conditions(builder, &self.conditions, self.povs, true);
        conditions = conditions.and(builder, hold);
        if let Sharing::Once(classes) = &term.sharing {
            let mut absent = Conditions::ALWAYS;
            for pov in (0..2).filter(|pov| self.povs[*pov]) {
                if pov == 1 && self.povs[0] && classes.are_same() {
                    absent.0[pov] = absent.0[0];
                    continue;
                }
                for others in others {
                    let is_absent = match *others {
                        Others::Any(time) if term.is_of_squares() => {
                            let Some(is_absent) = classes.is_absent(builder, time, state, pov) else { continue };
                            is_absent
                        }
                        Others::Any(time) => {
                            let others = classes.members(builder, time, state, pov);
                            builder.equal(others, 0)
                        }
                        Others::Lower(_) if term.is_alone() => continue,
                        Others::Lower(time) => {
                            let others = classes.members(builder, time, state, pov);
                            let first = builder.lowest(others);
                            let square = builder.and(state, 63);
                            builder.equal(first, square)
                        }
                    };
                    absent.0[pov] = Some(match absent.0[pov] {
                        Some(absent) => builder.and(absent, is_absent),
                        None => is_absent,
                    });
                }
            }
            conditions = conditions.and(builder, absent);
        }
        (rows, conditions)
    }
}

impl PieceTerm {
    /// Whether pieces have one row on one square only.
    fn is_of_squares(&self) -> bool {
        matches!(&self.sharing, Sharing::Once(classes) if classes.are_of_squares())
    }

    /// Whether no two pieces of a board have one row.
    fn is_alone(&self) -> bool {
        matches!(self.sharing, Sharing::Distinct) || self.is_of_squares()
    }

    /// A row that counts once, unless the piece changed before it, if there is any, has it.
    fn without_previous(&self, builder: &mut Builder, (rows, conditions): Found, previous: Option<Found>) -> Found {
        if let (Sharing::Once(classes), Some((other, others_conditions)), false) =
            (&self.sharing, previous, self.is_alone())
        {
            let equal = rows.equal(builder, other, classes.are_same());
            let emitted = equal.and(builder, others_conditions);
            return (rows, conditions.and_not(builder, emitted));
        }
        (rows, conditions)
    }
}

/// By term of all blocks: the term of which either perspective sees the classes that the other one sees of it. What
/// holds for White's row of one then holds for Black's row of the other, so that these are emitted together.
fn partners(blocks: &[PieceBlock<'_, '_>]) -> Vec<Option<usize>> {
    let terms: Vec<(&PieceBlock<'_, '_>, &PieceTerm)> =
        blocks.iter().flat_map(|block| block.terms.iter().map(move |term| (block, term))).collect();
    let mut partners = vec![None; terms.len()];
    for (number, (block, term)) in terms.iter().enumerate() {
        for (earlier, (other_block, other)) in terms[..number].iter().enumerate() {
            let (Sharing::Once(own), Sharing::Once(others)) = (&term.sharing, &other.sharing) else { continue };
            let is_free = block.is_always_there(term) && other_block.is_always_there(other);
            if is_free && partners[earlier].is_none() && own.are_exchanged_with(others) {
                partners[number] = Some(earlier);
                partners[earlier] = Some(number);
                break;
            }
        }
    }
    partners
}

/// Emits White's rows of a term with Black's of its partner, and the other two.
fn emit_exchanged(builder: &mut Builder, list: u8, (rows, conditions): Found, partners: Rows) {
    let own = rows.each(builder);
    let partners = partners.each(builder);
    for pov in 0..2 {
        let crossed = if pov == 0 { [own[0], partners[1]] } else { [partners[0], own[1]] };
        Rows::Each(crossed).emit(builder, list, Conditions([conditions.0[pov]; 2]));
    }
}

/// Emits a term's rows but for those that are added as often as they are removed.
fn emit_differing(builder: &mut Builder, found: &FoundRows, number: usize) {
    let mut of = [Program::REMOVED, Program::ADDED].map(|list| {
        [0, 1].map(|position| {
            let (rows, conditions) = found[usize::from(list)][position][number];
            (rows.each(builder), conditions)
        })
    });
    for pov in 0..2 {
        let [removed, added] = &mut of;
        for (rows, conditions) in removed.iter_mut() {
            for (others, other_conditions) in added.iter_mut() {
                let (Some(row), Some(other)) = (rows[pov], others[pov]) else { continue };
                let mut cancel = builder.equal(row, other);
                for condition in [conditions.0[pov], other_conditions.0[pov]].into_iter().flatten() {
                    cancel = builder.binary(Binary::And, cancel, condition);
                }
                for conditions in [&mut *conditions, &mut *other_conditions] {
                    conditions.0[pov] = Some(match conditions.0[pov] {
                        Some(condition) => builder.and_not(condition, cancel),
                        None => builder.xor(cancel, 1),
                    });
                }
            }
        }
    }
    for (list, found) in [Program::REMOVED, Program::ADDED].into_iter().zip(of) {
        for (rows, conditions) in found {
            Rows::Each(rows).emit(builder, list, conditions);
        }
    }
}
