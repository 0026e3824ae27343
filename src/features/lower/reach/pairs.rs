//! The pairs of a piece and what it reaches that a change takes away, and those that it brings, found once for all
//! blocks of a source. Where each binding has a row of its own, these are the delta; bags count them first
//! ([`super::bag`]).

use crate::features::code::{Binary, Builder, Memory, Program, Register, Slider};
use crate::features::lower::sources::Reachable;

use super::bag::BagCounter;
use super::rows::{CodeEffect, FirstPart, StatePairRows};
use super::scene::{ReachTables, Scene, TIMES, leaps, lines, pieces_of, pushers, state};

/// The lists of the board before and of the one after.
pub const LISTS: [u8; 2] = [Program::REMOVED, Program::ADDED];

/// Blocks of one source.
pub struct PairPlan<'a> {
    pub reach: Reachable,
    /// Whether the second variable is a piece.
    pub ends_on_pieces: bool,
    pub pairs: PairSink<'a>,
    pub scene: &'a Scene,
}

/// What is done with the pairs found.
pub enum PairSink<'a> {
    /// Their rows are emitted.
    Emitted(&'a [StatePairRows<'a>]),
    /// They are counted.
    Counted(&'a BagCounter<'a>),
}

/// A first piece: its code, its state, and its part of the rows or of the number of a counter.
struct FirstPiece {
    code: Register,
    state: Register,
    parts: Vec<FirstPart>,
    counter: Option<Register>,
}

impl PairSink<'_> {
    /// Codes with rows, of first variables or of second ones.
    fn codes(&self, number: usize) -> u16 {
        match self {
            PairSink::Emitted(rows) => rows.iter().fold(0, |codes, rows| codes | rows.codes[number]),
            PairSink::Counted(counter) => counter.rows.codes[number],
        }
    }

    /// What other codes of the first variable, or of the second, make of rows.
    fn effects(&self, number: usize) -> CodeEffect {
        match self {
            PairSink::Emitted(rows) => {
                rows.iter().map(|rows| rows.effects[number]).reduce(CodeEffect::and).unwrap_or(CodeEffect::Same)
            }
            // Equal rows cancel when they are counted.
            PairSink::Counted(_) => CodeEffect::Different,
        }
    }
}

impl PairPlan<'_> {
    /// Emits the rows removed and added.
    pub fn write(&self, builder: &mut Builder) {
        if self.reach == Reachable::Board {
            return builder.scope(|builder| self.write_all(builder));
        }
        let codes = [self.pairs.codes(0), self.pairs.codes(1)];
        let tables = ReachTables::new(builder, self.reach, codes[0]);
        builder.scope(|builder| {
            let ends = [0, 1].map(|time| pieces_of(builder, time, self.scene, codes[1]));
            let ends = self.ends_on_pieces.then_some(ends);
            let staying = Staying::new(builder, self.reach, self.ends_on_pieces, codes[0], self.scene);
            builder.for_bits(self.scene.changed, |builder, square| {
                let lines = self.scene.occupied.map(|occupied| lines(builder, square, occupied, staying.needed));
                staying.see(builder, square, lines[0]);
                self.changed_square(builder, &tables, square, lines, ends);
            });
            for (slider, pieces) in [(Slider::Bishop, staying.sliders[0]), (Slider::Rook, staying.sliders[1])] {
                if let Some(pieces) = pieces {
                    let pieces = builder.and_not(pieces, self.scene.changed);
                    builder.for_bits(pieces, |builder, square| {
                        let reached = self.scene.occupied.map(|occupied| builder.slide(slider, square, occupied));
                        self.staying_slider(builder, square, reached, ends);
                    });
                }
            }
            if let Some(leapers) = staying.leapers {
                let pieces = builder.and_not(leapers, self.scene.changed);
                builder.for_bits(pieces, |builder, square| self.staying_leaper(builder, &tables, square, ends));
            }
        });
    }

    /// Emits the rows of all pairs of a board.
    pub fn encode(&self, builder: &mut Builder, rows: &[StatePairRows<'_>]) {
        let codes = [self.pairs.codes(0), self.pairs.codes(1)];
        let tables = ReachTables::new(builder, self.reach, codes[0]);
        builder.scope(|builder| {
            let ends = self.ends_on_pieces.then(|| pieces_of(builder, 0, self.scene, codes[1]));
            for roles in [&[2, 4][..], &[3, 4], &[0, 1, 5]] {
                let of_roles = roles.iter().fold(0, |all, role| all | 0x101u16 << role) & codes[0];
                if of_roles == 0 {
                    continue;
                }
                let slider = match roles[0] {
                    2 => Some(Slider::Bishop),
                    3 => Some(Slider::Rook),
                    _ => None,
                };
                let pieces = pieces_of(builder, 0, self.scene, of_roles);
                builder.for_bits(pieces, |builder, square| {
                    let code = builder.code_on(TIMES[0], square);
                    let first = self.first(builder, code, square);
                    let attacked = match slider {
                        Some(slider) => builder.slide(slider, square, self.scene.occupied[0]),
                        None => tables.leaps(builder, first.state),
                    };
                    let mut reached = tables.reached(builder, [code, first.state], attacked, self.scene, 0);
                    if let Some(ends) = ends {
                        reached = builder.and(reached, ends);
                    }
                    builder.for_bits(reached, |builder, square| {
                        let end = self.end(builder, 0, square);
                        for (rows, part) in rows.iter().zip(&first.parts) {
                            builder.scope(|builder| {
                                let (found, conditions) = rows.rows(builder, part, end);
                                found.emit(builder, Program::ACTIVE, conditions);
                            });
                        }
                    });
                });
            }
        });
    }

    /// The pairs of any two pieces of which one is on a changed square.
    fn write_all(&self, builder: &mut Builder) {
        let ends = [0, 1].map(|time| pieces_of(builder, time, self.scene, self.pairs.codes(1)));
        builder.for_bits(self.scene.changed, |builder, square| {
            let firsts = [0, 1].map(|time| {
                let code = builder.code_on(TIMES[time], square);
                self.first(builder, code, square)
            });
            // Where no piece stands, there are no pairs.
            let reached = [0, 1].map(|time| {
                let has_first = builder.shift_right(self.scene.occupied[time], square);
                let has_first = builder.and(has_first, 1);
                builder.select(has_first, ends[time], 0)
            });
            self.emit_difference(builder, [&firsts[0], &firsts[1]], reached, self.pairs.effects(0));
        });
        let staying = pieces_of(builder, 0, self.scene, self.pairs.codes(0));
        let staying = builder.and_not(staying, self.scene.changed);
        let reached = ends.map(|ends| builder.and(ends, self.scene.changed));
        builder.for_bits(staying, |builder, square| {
            let code = builder.code_on(TIMES[0], square);
            let first = self.first(builder, code, square);
            self.emit_difference(builder, [&first, &first], reached, CodeEffect::Same);
        });
    }

    fn changed_square(
        &self,
        builder: &mut Builder,
        tables: &ReachTables,
        square: Register,
        lines: [[Option<Register>; 2]; 2],
        ends: Option<[Register; 2]>,
    ) {
        let firsts = [0, 1].map(|time| {
            let code = builder.code_on(TIMES[time], square);
            self.first(builder, code, square)
        });
        let reached = [0, 1].map(|time| {
            let first = &firsts[time];
            let attacked = tables.attacks(builder, first.code, first.state, lines[time]);
            let reached = tables.reached(builder, [first.code, first.state], attacked, self.scene, time);
            ends.map_or(reached, |ends| builder.and(reached, ends[time]))
        });
        self.emit_difference(builder, [&firsts[0], &firsts[1]], reached, self.pairs.effects(0));
    }

    fn staying_slider(
        &self,
        builder: &mut Builder,
        square: Register,
        reached: [Register; 2],
        ends: Option<[Register; 2]>,
    ) {
        let code = builder.code_on(TIMES[0], square);
        let first = self.first(builder, code, square);
        let reached = [0, 1].map(|time| match (self.reach, ends) {
            (Reachable::Moves, _) => {
                let color = builder.shift_right(code, 3);
                let own = builder.by_color(TIMES[time], color);
                builder.and_not(reached[time], own)
            }
            (_, None) => reached[time],
            (_, Some(ends)) => builder.and(reached[time], ends[time]),
        });
        self.emit_difference(builder, [&first, &first], reached, CodeEffect::Same);
    }

    fn staying_leaper(
        &self,
        builder: &mut Builder,
        tables: &ReachTables,
        square: Register,
        ends: Option<[Register; 2]>,
    ) {
        let code = builder.code_on(TIMES[0], square);
        let first = self.first(builder, code, square);
        let attacked = tables.leaps(builder, first.state);
        match (self.reach, ends) {
            (Reachable::Moves, _) => {
                let codes = [code, first.state];
                let reached = [0, 1].map(|time| tables.reached(builder, codes, attacked, self.scene, time));
                self.emit_difference(builder, [&first, &first], reached, CodeEffect::Same);
            }
            (_, Some(ends)) => {
                let attacked = builder.and(attacked, self.scene.changed);
                let reached = ends.map(|ends| builder.and(attacked, ends));
                self.emit_difference(builder, [&first, &first], reached, CodeEffect::Same);
            }
            (_, None) => {}
        }
    }

    fn first(&self, builder: &mut Builder, code: Register, square: Register) -> FirstPiece {
        let state = state(builder, code, square);
        match &self.pairs {
            PairSink::Emitted(rows) => {
                let parts = rows.iter().map(|rows| rows.first(builder, state)).collect();
                FirstPiece { code, state, parts, counter: None }
            }
            PairSink::Counted(counter) => {
                FirstPiece { code, state, parts: Vec::new(), counter: Some(counter.first(builder, state)) }
            }
        }
    }

    /// Emits what differs between the pairs of a first square before and after. `of_first`: what the codes of the first
    /// pieces make of rows.
    fn emit_difference(
        &self,
        builder: &mut Builder,
        firsts: [&FirstPiece; 2],
        reached: [Register; 2],
        of_first: CodeEffect,
    ) {
        let of_second = if self.ends_on_pieces { self.pairs.effects(1) } else { CodeEffect::Same };
        let [old, new] = reached;
        let mut compared = None;
        let [lost, gained] = match (of_first, of_second) {
            (CodeEffect::Different, _) => [old, new],
            (CodeEffect::Same, CodeEffect::Different) => {
                let both = builder.and(old, new);
                let kept = builder.and_not(both, self.scene.changed);
                [builder.xor(old, kept), builder.xor(new, kept)]
            }
            _ => {
                let both = builder.and(old, new);
                match (of_first, of_second) {
                    (CodeEffect::Same, CodeEffect::Same) => {}
                    (CodeEffect::Same, _) => compared = Some(builder.and(both, self.scene.changed)),
                    _ => compared = Some(both),
                }
                [builder.xor(old, both), builder.xor(new, both)]
            }
        };
        for (time, squares) in [lost, gained].into_iter().enumerate() {
            builder.for_bits(squares, |builder, square| {
                let end = self.end(builder, time, square);
                match (&self.pairs, firsts[time].counter) {
                    (PairSink::Emitted(all), _) => {
                        for (rows, part) in all.iter().zip(&firsts[time].parts) {
                            builder.scope(|builder| {
                                let (found, conditions) = rows.rows(builder, part, end);
                                found.emit(builder, LISTS[time], conditions);
                            });
                        }
                    }
                    (PairSink::Counted(counter), Some(first)) => counter.count(builder, first, end, time),
                    (PairSink::Counted(_), None) => {}
                }
            });
        }
        if let (Some(compared), PairSink::Emitted(all)) = (compared, &self.pairs) {
            builder.for_bits(compared, |builder, square| {
                let ends = [0, 1].map(|time| self.end(builder, time, square));
                for (number, rows) in all.iter().enumerate() {
                    builder.scope(|builder| {
                        let found = [0, 1].map(|time| rows.rows(builder, &firsts[time].parts[number], ends[time]));
                        let differ = rows.differ(builder, found);
                        for (list, (found, conditions)) in LISTS.into_iter().zip(found) {
                            let conditions = conditions.and(builder, differ);
                            found.emit(builder, list, conditions);
                        }
                    });
                }
            });
        }
    }

    /// The state of a second variable on a square.
    fn end(&self, builder: &mut Builder, time: usize, square: Register) -> Register {
        if !self.ends_on_pieces {
            return square;
        }
        let code = builder.code_on(TIMES[time], square);
        state(builder, code, square)
    }
}

/// The pieces that stay and whose reach a change may alter, found from the changed squares.
pub struct Staying {
    /// Which lines are needed: a bishop's, a rook's.
    pub needed: [bool; 2],
    /// Found sliders on the lines of a bishop and of a rook.
    pub sliders: [Option<Register>; 2],
    /// Found pawns, knights and kings.
    pub leapers: Option<Register>,
    /// All sliders on such lines.
    all_sliders: [Option<Register>; 2],
    /// By square the squares from which some pieces reach it, and these pieces.
    leaps: Vec<(Memory, Register)>,
}

impl Staying {
    /// `codes`: of pieces that matter. Nothing is found yet.
    pub fn new(builder: &mut Builder, reach: Reachable, ends_on_pieces: bool, codes: u16, scene: &Scene) -> Staying {
        let of_roles = |builder: &mut Builder, roles: &[usize]| {
            let mask = roles.iter().fold(0u16, |all, role| all | 0x101 << role) & codes;
            (mask != 0).then(|| pieces_of(builder, 0, scene, mask))
        };
        let all_sliders = [of_roles(builder, &[2, 4]), of_roles(builder, &[3, 4])];
        let sliders = all_sliders.map(|all| all.map(|_| builder.constant(0)));
        let mut leaping = Vec::new();
        // What leapers attack does not depend on other pieces.
        if reach == Reachable::Moves || ends_on_pieces {
            let by_square = |of: &dyn Fn(u32) -> u64| (0..64).map(of).collect::<Vec<u64>>();
            for role in [1, 5] {
                if let Some(pieces) = of_roles(builder, &[role]) {
                    leaping.push((builder.bitboards(by_square(&|square| leaps(role, square))), pieces));
                }
            }
            for code in [0usize, 8] {
                if codes >> code & 1 != 0 {
                    let pieces = pieces_of(builder, 0, scene, 1 << code);
                    let pushes = |square: u32| if reach == Reachable::Moves { pushers(code, square) } else { 0 };
                    let table = builder.bitboards(by_square(&|square| leaps(code ^ 8, square) | pushes(square)));
                    leaping.push((table, pieces));
                }
            }
        }
        let leapers = (!leaping.is_empty()).then(|| builder.constant(0));
        Staying { needed: sliders.map(|found| found.is_some()), sliders, leapers, all_sliders, leaps: leaping }
    }

    /// Finds the pieces that see a changed square, given the lines from it before the change.
    pub fn see(&self, builder: &mut Builder, square: Register, lines: [Option<Register>; 2]) {
        builder.scope(|builder| {
            for ((found, all), line) in self.sliders.into_iter().zip(self.all_sliders).zip(lines) {
                if let (Some(found), Some(all), Some(line)) = (found, all, line) {
                    let seeing = builder.and(line, all);
                    builder.change(found, Binary::Or, seeing);
                }
            }
            if let Some(found) = self.leapers {
                for (table, pieces) in &self.leaps {
                    let from = builder.load(*table, square);
                    let seeing = builder.and(from, *pieces);
                    builder.change(found, Binary::Or, seeing);
                }
            }
        });
    }
}
