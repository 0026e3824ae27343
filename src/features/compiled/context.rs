//! Contexts: which placements of the kings a block tells apart.

use std::collections::HashMap;

use crate::chess::{Mirror, Perspective, Square};
use crate::features::spec::{ConditionSpec, ENEMY_KING, OWN_KING, SourceSpec};
use crate::features::syntax::Direction;

use super::CompiledBlock;
use super::tables::{NONE, Term};

/// A number for every placement of the kings; equal numbers mean that every assignment of the block's other variables
/// gives the same rows.
#[derive(Debug, Default)]
pub struct ContextTable {
    /// By own king, then enemy king (when `enemy` is read), as White sees them or as Black's turned board shows them.
    ids: Vec<u32>,
    enemy: bool,
    distinct: u32,
}

impl ContextTable {
    pub(super) fn of(block: &CompiledBlock) -> ContextTable {
        let live: Vec<&Term> = block.terms.iter().filter(|term| !term.dead()).collect();
        let reads = |slot: usize| {
            let varies = |term: &&Term| term.tables[slot].windows(2).any(|pair| pair[0] != pair[1]);
            let conditions = block.king_conditions.iter().chain(&block.residual);
            let counts = live.iter().flat_map(|term| &term.counts);
            live.iter().any(varies)
                || conditions
                    .chain(counts.clone().flat_map(|(_, count)| &count.condition))
                    .any(|c| c.slots().contains(&slot))
                || counts
                    .flat_map(|(_, count)| &count.binders)
                    .chain(&block.binders)
                    .any(|b| binds_from(b.source, slot))
        };
        let (own, enemy) = (reads(OWN_KING) || block.orientation.mirror != Mirror::None, reads(ENEMY_KING));
        if !own && !enemy {
            return ContextTable { ids: Vec::new(), enemy: false, distinct: 1 };
        }
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        let enemies = if enemy { 64 } else { 1 };
        let mut ids = Vec::with_capacity(64 * enemies);
        for own_square in 0..64u32 {
            for enemy_square in 0..enemies as u32 {
                if enemy && too_close(own_square, enemy_square) {
                    ids.push(NONE);
                    continue;
                }
                let signature = signature(block, &live, own_square, enemy_square);
                let fresh = known.len() as u32;
                ids.push(*known.entry(signature).or_insert(fresh));
            }
        }
        ContextTable { ids, enemy, distinct: known.len() as u32 }
    }

    /// Number of contexts; with the enemy king, over pairs of squares that are not adjacent.
    pub fn count(&self) -> u32 {
        self.distinct
    }

    pub fn reads_enemy(&self) -> bool {
        self.enemy
    }

    pub fn entries(&self) -> usize {
        self.ids.len()
    }

    /// The context of two king squares on the board turned for `pov` (ranks exchanged or rotated, not mirrored).
    pub fn id(&self, own: u32, enemy: u32) -> u32 {
        match (self.ids.is_empty(), self.enemy) {
            (true, _) => 0,
            (false, false) => self.ids[own as usize],
            (false, true) => self.ids[(own << 6 | enemy) as usize],
        }
    }
}

fn binds_from(source: SourceSpec, slot: usize) -> bool {
    match source {
        SourceSpec::Pieces => false,
        SourceSpec::Moves(of) | SourceSpec::Attacks(of) | SourceSpec::Targets(of) | SourceSpec::Next(of, _) => {
            of == slot
        }
    }
}

/// Kings on one square or side by side.
pub fn too_close(a: u32, b: u32) -> bool {
    (a & 7).abs_diff(b & 7) <= 1 && (a >> 3).abs_diff(b >> 3) <= 1
}

/// What the rows depend on: each live term's sum over the kings, whether the board is mirrored where the block can
/// tell, and the kings themselves where several variables are compared with them.
fn signature(block: &CompiledBlock, live: &[&Term], own: u32, enemy: u32) -> Vec<u32> {
    let mask = block.orientation.mask(Square::new(own), Perspective::White);
    let (own, enemy) = (own ^ mask, enemy ^ mask);
    let holds = block.kings_hold(own, enemy);
    let mut sums: Vec<u32> = live.iter().map(|term| if holds { term.king_sum(own, enemy) } else { NONE }).collect();
    if sums.iter().all(|sum| *sum == NONE) {
        return vec![NONE];
    }
    if mask != 0 && handed(block, live) {
        sums.push(mask);
    }
    let conditions =
        block.residual.iter().chain(live.iter().flat_map(|term| &term.counts).flat_map(|(_, c)| &c.condition));
    let sources = block.binders.iter().chain(live.iter().flat_map(|term| &term.counts).flat_map(|(_, c)| &c.binders));
    let read: Vec<usize> = conditions.flat_map(ConditionSpec::slots).collect();
    let sources: Vec<SourceSpec> = sources.map(|binder| binder.source).collect();
    for (slot, square) in [(OWN_KING, own), (ENEMY_KING, enemy)] {
        if read.contains(&slot) || sources.iter().any(|source| binds_from(*source, slot)) {
            sums.push(square);
        }
    }
    sums
}

/// Whether mirroring the board left to right changes the rows of some assignment.
fn handed(block: &CompiledBlock, live: &[&Term]) -> bool {
    let counts = || live.iter().flat_map(|term| &term.counts);
    let sideways = |source| matches!(source, SourceSpec::Next(_, direction) if direction != Direction::North);
    let asymmetric = |table: &Vec<u32>| table.iter().enumerate().any(|(at, entry)| *entry != table[at ^ 7]);
    live.iter().any(|term| term.tables[ENEMY_KING + 1..].iter().any(asymmetric))
        || !block.residual.is_empty()
        || counts().any(|(_, count)| count.condition.is_some())
        || counts().flat_map(|(_, count)| &count.binders).chain(&block.binders).any(|binder| sideways(binder.source))
}
