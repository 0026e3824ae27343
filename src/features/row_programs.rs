//! What an encoder runs: the programs of its blocks, made ready once.

use crate::chess::{BoardChange, PieceBoard};

use super::code::{DirectDelta, Executable, Inputs, Obstacle, Outputs, RowList};
use super::delta::Delta;
use super::lower;
use super::row_counts::{cancel_from, dedup_from};
use super::set::Block;

/// Finds the active rows of a board.
#[derive(Debug)]
pub struct ActiveRows {
    /// Each with whether it may list rows several times that count once.
    programs: Vec<(Executable, bool)>,
}

/// What an encoder keeps of a board from move to move: for some sets, the squares that pieces reach or their numbers.
/// Empty at first; a delta fills in what it can use of it again. It belongs to one encoder.
#[derive(Clone, Debug, Default)]
pub struct DeltaState {
    values: Vec<u64>,
    is_known: bool,
}

impl DeltaState {
    /// To be called when the state comes to belong to another board.
    pub fn clear(&mut self) {
        self.is_known = false;
    }
}

/// Finds the rows that differ between two boards.
#[derive(Debug)]
pub struct ChangedRows {
    rows: Changed,
    /// The bits of [`PieceBoard::king_squares`] that must stay for all contexts to be known to stay.
    compared_kings: u32,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "an encoder has one, and looks it up for every move")]
enum Changed {
    /// Machine code lists exactly what differs.
    Direct(DirectDelta),
    Composed(Composed),
}

#[derive(Debug)]
struct Composed {
    /// `None` where no block has a derived change.
    derived: Option<Executable>,
    /// Finds the state of a board, where `derived` has one.
    start: Option<Executable>,
    /// Whether `derived` may list a row as removed and as added.
    may_cancel: bool,
    /// The blocks without a derived change: both boards are encoded and compared.
    compared: Option<ActiveRows>,
}

impl ActiveRows {
    pub fn of(blocks: &[&Block]) -> ActiveRows {
        let compiled = |encoder: lower::EncoderProgram| (Executable::compile(encoder.program), encoder.repeats);
        ActiveRows { programs: lower::encoders(blocks).into_iter().map(compiled).collect() }
    }

    /// Bytes of the tables of what runs it.
    pub fn table_bytes(&self) -> usize {
        self.programs.iter().map(|(program, _)| program.program().table_bytes()).sum()
    }

    /// Why some of it is found by the interpreter; `None` if nothing is.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        self.programs.iter().find_map(|(program, _)| program.obstacle())
    }

    /// Appends the active rows of both perspectives.
    #[inline]
    pub fn append(&self, board: &PieceBoard, [white, black]: [&mut RowList; 2]) {
        for (program, repeats) in &self.programs {
            let from = [white.len(), black.len()];
            program.run(Inputs::of(board), Outputs::Active([&mut *white, &mut *black]));
            if *repeats {
                for (rows, from) in [&mut *white, &mut *black].into_iter().zip(from) {
                    dedup_from(rows, from);
                }
            }
        }
    }
}

impl ChangedRows {
    /// `lowered`: [`lower::delta`] or [`lower::difference`].
    #[cold]
    pub fn of(blocks: &[&Block], lowered: fn(&[&Block]) -> lower::DeltaProgram) -> ChangedRows {
        let lower::DeltaProgram { program, start, compared, may_cancel } = lowered(blocks);
        let compared: Vec<&Block> = compared.into_iter().map(|block| blocks[block]).collect();
        let is_exact = start.is_none() && compared.is_empty() && !may_cancel;
        let derived = (!program.body.is_empty()).then(|| Executable::compile(program));
        let direct = match derived {
            Some(derived) if is_exact => DirectDelta::of(derived).map_err(Some),
            derived => Err(derived),
        };
        let rows = match direct {
            Ok(direct) => Changed::Direct(direct),
            Err(derived) => Changed::Composed(Composed {
                derived,
                start: start.map(Executable::compile),
                may_cancel,
                compared: (!compared.is_empty()).then(|| ActiveRows::of(&compared)),
            }),
        };
        let has_constant_contexts = blocks.iter().all(|block| block.compiled.contexts().is_constant());
        ChangedRows { rows, compared_kings: if has_constant_contexts { PieceBoard::NO_KINGS } else { u32::MAX } }
    }

    /// Whether it is plain that each side has one king on both boards and no block's context changes: no king moves, or no
    /// context depends on the kings.
    #[inline(always)]
    pub const fn keeps_contexts(&self, before: &PieceBoard, after: &PieceBoard) -> bool {
        before.has_kings() && (before.king_squares() ^ after.king_squares()) & self.compared_kings == 0
    }

    /// Bytes of the tables of what runs it.
    pub fn table_bytes(&self) -> usize {
        match &self.rows {
            Changed::Direct(direct) => direct.program().table_bytes(),
            Changed::Composed(Composed { derived, compared, .. }) => {
                let derived = derived.as_ref().map_or(0, |derived| derived.program().table_bytes());
                derived + compared.as_ref().map_or(0, ActiveRows::table_bytes)
            }
        }
    }

    /// Why some of it is found by the interpreter; `None` if nothing is.
    pub fn obstacle(&self) -> Option<&Obstacle> {
        let Changed::Composed(Composed { derived, compared, .. }) = &self.rows else { return None };
        let derived = derived.as_ref().and_then(Executable::obstacle);
        derived.or_else(|| compared.as_ref().and_then(ActiveRows::obstacle))
    }

    /// Replaces the changes of both perspectives.
    #[inline(always)]
    pub fn find(
        &self,
        before: &PieceBoard,
        change: &BoardChange,
        after: &PieceBoard,
        [state_before, state_after]: [&mut DeltaState; 2],
        [white, black]: [&mut Delta; 2],
    ) {
        match &self.rows {
            Changed::Direct(direct) => {
                white.forget_refresh();
                black.forget_refresh();
                direct.run(before, change, after, [white, black]);
            }
            Changed::Composed(composed) => {
                composed.find(before, change, after, [state_before, state_after], [white, black]);
            }
        }
    }
}

impl Composed {
    fn find(
        &self,
        before: &PieceBoard,
        change: &BoardChange,
        after: &PieceBoard,
        [state_before, state_after]: [&mut DeltaState; 2],
        [white, black]: [&mut Delta; 2],
    ) {
        white.clear();
        black.clear();
        if let Some(derived) = &self.derived {
            let mut inputs = Inputs { before, after, change, state_before: &[], state_after: &mut [] };
            if let Some(start) = &self.start {
                prepare(start, derived.program().state, before, [&mut *state_before, &mut *state_after]);
                inputs.state_before = &state_before.values;
                inputs.state_after = &mut state_after.values;
            }
            derived.run(inputs, Outputs::Changed([&mut *white, &mut *black]));
        }
        if self.may_cancel {
            for delta in [&mut *white, &mut *black] {
                cancel_from(&mut delta.removed, &mut delta.added, [0, 0]);
            }
        }
        if let Some(compared) = &self.compared {
            let from = [&*white, &*black].map(|delta| [delta.removed.len(), delta.added.len()]);
            compared.append(before, [&mut white.removed, &mut black.removed]);
            compared.append(after, [&mut white.added, &mut black.added]);
            for (delta, from) in [white, black].into_iter().zip(from) {
                cancel_from(&mut delta.removed, &mut delta.added, from);
            }
        }
    }
}

/// Lets the state before be known and makes room for the state after, which have `length` elements.
#[inline]
fn prepare(start: &Executable, length: u32, before: &PieceBoard, [state_before, state_after]: [&mut DeltaState; 2]) {
    let length = length as usize;
    let have_room = state_before.values.len() == length && state_after.values.len() == length;
    if !have_room || !state_before.is_known {
        begin(start, length, before, [&mut *state_before, &mut *state_after]);
    }
    state_after.is_known = true;
}

#[cold]
#[inline(never)]
fn begin(start: &Executable, length: usize, before: &PieceBoard, [state_before, state_after]: [&mut DeltaState; 2]) {
    for state in [&mut *state_before, &mut *state_after] {
        if state.values.len() != length {
            state.values = vec![0; length];
            state.is_known = false;
        }
    }
    if !state_before.is_known {
        let inputs = Inputs {
            before,
            after: before,
            change: &BoardChange::EMPTY,
            state_before: &state_after.values,
            state_after: &mut state_before.values,
        };
        start.run(inputs, Outputs::None);
        state_before.is_known = true;
    }
}
