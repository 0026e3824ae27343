//! The pieces on a board that share a variable's entry: whether a row has another binding is one or two tests of
//! bitboards.

use std::collections::HashMap;

use crate::features::code::{Binary, BoardTime, Builder, Memory, Operand, Register};
use crate::features::compiled::NONE;
use crate::features::spec::VariableKind;

use super::allowed::AllowedSquares;
use super::context::Context;

/// The states that share an entry, for each state on the board as it stands.
pub struct Classes {
    /// By perspective; one where both see the same.
    tables: Vec<ClassTable>,
    allowed: Option<AllowedSquares>,
}

/// As one perspective sees them.
struct ClassTable {
    members: Members,
    /// Where the mirrored half matters: the register whose lowest bit says which half.
    half: Option<Register>,
}

/// How the members of a class are found.
enum Members {
    /// All pieces of the state's own code on the squares `within` which they are looked for.
    Whole,
    /// Pieces of the state's own code.
    OwnCode(Memory),
    /// Pieces of its role, of its colour, or all.
    Role(Memory),
    Color(Memory),
    All(Memory),
    /// At most the piece on the state's own square: by state, the codes that do not share its entry. None for states
    /// without an entry.
    OwnSquare(Memory),
    /// Pieces of so many codes each; codes and masks by state.
    Listed {
        count: usize,
        codes: Memory,
        masks: Memory,
    },
}

/// As its perspective sees it.
const OWN_KING_CODE: usize = 5;

/// Bitboards of a class by code.
type CodeMasks = [u64; 16];

/// Whether no two pieces that are compared share an entry of a table. `own_king_stays`: they are those of one board, or of
/// two that have the own king on the same square, so that no other piece is on its square.
pub fn are_distinct(table: &[u32], own_king_stays: bool) -> bool {
    let is_own_king = |state: usize| state >> 6 == OWN_KING_CODE;
    let of = |kings: bool| {
        let states = (0..table.len()).filter(move |state| (own_king_stays && is_own_king(*state)) == kings);
        states.filter(|state| table[*state] != NONE)
    };
    let mut owners = HashMap::new();
    of(false).all(|state| owners.insert(table[state], state).is_none())
        && of(true).all(|state| owners.insert(table[state], state).is_none_or(|other| other & 63 == state & 63))
}

impl Classes {
    /// The classes of the table that a perspective looks up for an orientation. `within`: squares to which the class of
    /// a piece is cut down, by orientation and square of the board as it stands. `allowed`: where conditions with the
    /// kings allow pieces.
    pub fn of<'t>(
        builder: &mut Builder,
        context: &Context<'_>,
        table: &dyn Fn(usize, usize) -> &'t [u32],
        within: &dyn Fn(usize, usize) -> u64,
        allowed: Option<AllowedSquares>,
    ) -> Classes {
        let mut is_whole = allowed.is_none();
        // By perspective: the masks in the half in which the orientation's lowest bit is 0, and in the other one.
        let halves = [0, 1].map(|pov| {
            let mut turns = context.turns(pov, VariableKind::Piece);
            turns.sort_by_key(|turn| turn & 1);
            let mut halves: Vec<Vec<CodeMasks>> = Vec::new();
            for turn in turns {
                let mut masks = masks_by_state(table(pov, turn), turn);
                for (state, masks) in masks.iter_mut().enumerate() {
                    masks.iter_mut().for_each(|mask| *mask &= within(turn, state & 63));
                    let is_own = |(code, mask): (usize, &u64)| {
                        *mask == if code == state >> 6 { within(turn, state & 63) } else { 0 }
                    };
                    is_whole &= state >> 6 & 7 > 5 || masks.iter().enumerate().all(is_own);
                }
                halves.push(masks);
            }
            halves.dedup();
            halves
        });
        if is_whole {
            return Classes { tables: vec![ClassTable { members: Members::Whole, half: None }], allowed };
        }
        let is_same = halves[0].len() == 1 && halves[0] == halves[1];
        let povs = if is_same { 1 } else { 2 };
        let mut tables = Vec::new();
        for (pov, halves) in halves.iter().take(povs).enumerate() {
            let half = match context.orientation[pov] {
                Operand::Register(turn) if halves.len() > 1 => Some(turn),
                _ => None,
            };
            let masks: Vec<CodeMasks> = halves.concat();
            tables.push(ClassTable { members: Members::of(builder, &masks, allowed.is_some()), half });
        }
        Classes { tables, allowed }
    }

    /// Whether pieces share an entry on one square only, so that no two pieces of a board do.
    pub fn are_of_squares(&self) -> bool {
        self.tables.iter().all(|table| matches!(table.members, Members::OwnSquare(_)))
    }

    /// Whether both perspectives see the same classes.
    pub fn are_same(&self) -> bool {
        self.tables.len() == 1 && self.allowed.is_none()
    }

    /// Whether either perspective sees the classes that the other one sees of `other`, as with a diagonal and an
    /// antidiagonal.
    pub fn are_exchanged_with(&self, other: &Classes) -> bool {
        let codes = |classes: &Classes| -> Option<[Memory; 2]> {
            match (&classes.tables[..], &classes.allowed) {
                (
                    [
                        ClassTable { members: Members::OwnCode(white), half: None },
                        ClassTable { members: Members::OwnCode(black), half: None },
                    ],
                    None,
                ) => Some([*white, *black]),
                _ => None,
            }
        };
        match (codes(self), codes(other)) {
            (Some(own), Some([white, black])) => own == [black, white],
            _ => false,
        }
    }

    /// Whether a piece has an entry and the piece on its square of a board does not share it: for classes of squares.
    pub fn is_absent(&self, builder: &mut Builder, time: BoardTime, state: Register, pov: usize) -> Option<Register> {
        let table = &self.tables[pov.min(self.tables.len() - 1)];
        let Members::OwnSquare(codes) = table.members else { return None };
        let index = table.index(builder, state);
        let square = builder.and(state, 63);
        Some(lacks(builder, time, (codes, index), square))
    }

    /// The pieces of a board that share the entry of a piece, as a perspective sees them. They may lie outside of the
    /// squares `within` which they are looked for.
    pub fn members(&self, builder: &mut Builder, time: BoardTime, state: Register, pov: usize) -> Register {
        let table = &self.tables[pov.min(self.tables.len() - 1)];
        let index = table.index(builder, state);
        let code = builder.shift_right(state, 6);
        let (pieces, masks) = match &table.members {
            Members::Whole => return builder.by_code(time, code),
            Members::OwnCode(masks) => {
                let pieces = builder.by_code(time, code);
                (self.admitted(builder, pieces, code, pov), masks)
            }
            Members::Role(masks) => {
                let other = builder.xor(code, 8);
                let own = builder.by_code(time, code);
                let other = builder.by_code(time, other);
                (builder.or(own, other), masks)
            }
            Members::Color(masks) => {
                let color = builder.shift_right(code, 3);
                (builder.by_color(time, color), masks)
            }
            Members::All(masks) => (builder.occupied(time), masks),
            Members::OwnSquare(codes) => {
                let square = builder.and(state, 63);
                let lacks = lacks(builder, time, (*codes, index), square);
                let shares = builder.xor(lacks, 1);
                return builder.shift_left(shares, square);
            }
            Members::Listed { count, codes, masks } => {
                let pieces = builder.constant(0);
                let first = builder.binary(Binary::Multiply, index, *count as u64);
                let count = builder.constant(*count as u64);
                builder.for_range(count, |builder, number| {
                    let at = builder.add(first, number);
                    let code = builder.load(*codes, at);
                    let mask = builder.load(*masks, at);
                    let of_code = builder.by_code(time, code);
                    let of_code = builder.and(of_code, mask);
                    let of_code = self.admitted(builder, of_code, code, pov);
                    builder.change(pieces, Binary::Or, of_code);
                });
                return pieces;
            }
        };
        let mask = builder.load(*masks, index);
        builder.and(pieces, mask)
    }

    /// The pieces of a code that conditions with the kings allow.
    fn admitted(&self, builder: &mut Builder, pieces: Register, code: Register, pov: usize) -> Register {
        match &self.allowed {
            None => pieces,
            Some(allowed) => {
                let allowed = allowed.by_code(builder, code, pov);
                builder.and(pieces, allowed)
            }
        }
    }
}

impl ClassTable {
    /// A state's position in the tables.
    fn index(&self, builder: &mut Builder, state: Register) -> Register {
        let Some(turn) = self.half else { return state };
        let half = builder.and(turn, 1);
        let first = builder.shift_left(half, 10);
        builder.add(first, state)
    }
}

/// Whether the code on a square is one of those that a table has for an index.
fn lacks(builder: &mut Builder, time: BoardTime, (codes, index): (Memory, Register), square: Register) -> Register {
    let there = builder.code_on(time, square);
    let codes = builder.load(codes, index);
    let is_one = builder.shift_right(codes, there);
    builder.and(is_one, 1)
}

impl Members {
    fn of(builder: &mut Builder, masks: &[CodeMasks], by_single_codes: bool) -> Members {
        let is_all = |belongs: &dyn Fn(usize, usize) -> bool| {
            masks.iter().enumerate().all(|(state, masks)| {
                let code = state >> 6 & 15;
                let own = masks[code];
                (0..16).all(|other| {
                    let expected = if belongs(code, other) && other & 7 <= 5 { own } else { 0 };
                    masks[other] == expected
                })
            })
        };
        let own = |builder: &mut Builder| {
            let of = masks.iter().enumerate().map(|(state, masks)| masks[state >> 6 & 15]).collect();
            builder.bitboards(of)
        };
        if is_all(&|code, other| code == other) {
            Members::OwnCode(own(builder))
        } else if !by_single_codes && is_all(&|code, other| code & 7 == other & 7) {
            Members::Role(own(builder))
        } else if !by_single_codes && is_all(&|code, other| code >> 3 == other >> 3) {
            Members::Color(own(builder))
        } else if !by_single_codes && is_all(&|_, _| true) {
            Members::All(own(builder))
        } else if !by_single_codes && masks.iter().enumerate().all(|(state, masks)| is_of_square(masks, state & 63)) {
            let codes = |masks: &CodeMasks| (0..16).fold(0, |codes, code| codes | u32::from(masks[code] == 0) << code);
            let has_entry = |masks: &CodeMasks| masks.iter().any(|mask| *mask != 0);
            let codes = masks.iter().map(|masks| if has_entry(masks) { codes(masks) } else { 0 });
            Members::OwnSquare(builder.words(codes.collect()))
        } else {
            let codes = |masks: &CodeMasks| (0..16).filter(|code| masks[*code] != 0).collect::<Vec<usize>>();
            let count = masks.iter().map(|masks| codes(masks).len()).max().unwrap_or(0);
            let mut listed = Vec::new();
            let mut bits = Vec::new();
            for masks in masks {
                let mut codes = codes(masks);
                // No piece has code 7.
                codes.resize(count, 7);
                bits.extend(codes.iter().map(|code| masks[*code]));
                listed.extend(codes.into_iter().map(|code| code as u8));
            }
            Members::Listed { count, codes: builder.bytes(listed), masks: builder.bitboards(bits) }
        }
    }
}

fn is_of_square(masks: &CodeMasks, square: usize) -> bool {
    masks.iter().all(|mask| mask & !(1 << square) == 0)
}

/// For each state of the board as it stands: the states that share its entry when `turn` orients states.
fn masks_by_state(table: &[u32], turn: usize) -> Vec<CodeMasks> {
    let mut classes: HashMap<u32, CodeMasks> = HashMap::new();
    for (state, entry) in table.iter().enumerate().filter(|(_, entry)| **entry != NONE) {
        let stands = state ^ turn;
        classes.entry(*entry).or_insert([0; 16])[stands >> 6] |= 1 << (stands & 63);
    }
    let masks = |state: usize| classes.get(&table[state ^ turn]).copied().unwrap_or([0; 16]);
    (0..table.len()).map(masks).collect()
}
