//! What the counts of a block count, on the board as it stands.

use crate::features::code::{Binary, Builder, Register};
use crate::features::lower::context::Context;
use crate::features::lower::sources::Reachable;
use crate::features::spec::{BinderSpec, ConditionSpec, CountSpec, Entity, SourceSpec, VariableKind};

use super::scene::{CODES, pieces_on};

/// Squares by code, on the board as it stands: where a variable's conditions allow pieces.
pub type CodeSquares = Vec<(usize, u64)>;

/// What a count counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub firsts: CodeSquares,
    /// `None` where pieces are counted.
    pub reached: Option<CountedReach>,
}

/// What pieces reach, as far as it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedReach {
    pub reach: Reachable,
    pub ends: Ends,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
    Squares(u64),
    Pieces(CodeSquares),
}

impl Ends {
    /// The squares on a board; `None`: all.
    pub fn squares(&self, builder: &mut Builder, time: usize) -> Option<Register> {
        match self {
            Ends::Squares(u64::MAX) => None,
            Ends::Squares(squares) => Some(builder.constant(*squares)),
            Ends::Pieces(of) => {
                let all = builder.constant(0);
                for (code, squares) in of {
                    builder.scope(|builder| {
                        let pieces = pieces_on(builder, time, *code, *squares);
                        builder.change(all, Binary::Or, pieces);
                    });
                }
                Some(all)
            }
        }
    }
}

/// What a count counts as a perspective sees it; `None` if it has another form, or depends on kings or on the mirrored
/// half.
pub fn counted(context: &Context<'_>, count: &CountSpec, pov: usize) -> Option<Counted> {
    let conditions: Vec<&ConditionSpec> = count.condition.iter().flat_map(ConditionSpec::conjuncts).collect();
    let is_bound = |slot: usize| count.binders.iter().any(|binder| binder.slot == slot);
    let is_of_one = |condition: &&ConditionSpec| matches!(condition.slots()[..], [slot] if is_bound(slot));
    if !count.guards.is_empty() || !conditions.iter().all(is_of_one) {
        return None;
    }
    let allowed = |slot: usize, kind: VariableKind| {
        let own: Vec<&ConditionSpec> = conditions.iter().filter(|of| of.slots() == [slot]).copied().collect();
        allowed_squares(context, &own, kind, pov)
    };
    let (first, second) = match &count.binders[..] {
        [first] => (first, None),
        [first, second] => (first, Some(second)),
        _ => return None,
    };
    if first.source != SourceSpec::Pieces {
        return None;
    }
    let reached = match second {
        None => None,
        Some(BinderSpec { source, slot, .. }) if source.of() == Some(first.slot) => {
            let reach = Reachable::of(*source).filter(|reach| *reach != Reachable::Board)?;
            let ends = match context.spec.variables[*slot] {
                VariableKind::Square => {
                    Ends::Squares(allowed(*slot, VariableKind::Square)?.first().map_or(0, |of| of.1))
                }
                VariableKind::Piece => Ends::Pieces(allowed(*slot, VariableKind::Piece)?),
            };
            Some(CountedReach { reach, ends })
        }
        Some(_) => return None,
    };
    Some(Counted { firsts: allowed(first.slot, VariableKind::Piece)?, reached })
}

/// The squares on which conditions on a variable hold, by code.
fn allowed_squares(
    context: &Context<'_>,
    conditions: &[&ConditionSpec],
    kind: VariableKind,
    pov: usize,
) -> Option<CodeSquares> {
    let codes: &[usize] = if kind == VariableKind::Piece { &CODES } else { &[0] };
    let by_turn = |turn: usize| {
        let mut all = Vec::new();
        for code in codes {
            let mut squares = 0u64;
            for square in 0..64 {
                let state = (code << 6 | square) ^ turn;
                let entity = match kind {
                    VariableKind::Square => Entity::bare(state as u32 & 63),
                    VariableKind::Piece => {
                        Entity { square: state as u32 & 63, role: state as u32 >> 6 & 7, color: state as u32 >> 9 }
                    }
                };
                let holds = conditions.iter().all(|condition| condition.holds(&|_: usize| entity));
                squares |= u64::from(holds) << square;
            }
            if squares != 0 {
                all.push((*code, squares));
            }
        }
        all
    };
    let turns = context.turns(pov, kind);
    let first = by_turn(turns[0]);
    turns.iter().all(|turn| by_turn(*turn) == first).then_some(first)
}
