//! Rows a move touches, by strategy, for the mover's perspective and the other's.
//!
//! For a move, a perspective, and its active sets A before and B after: added = |B∖A|, removed = |A∖B|. A block costs
//! `rows_update` its delta, or its |B| where its context changed; `rows_cache` likewise, but a block whose context
//! changed is brought from what the refresh cache holds for (perspective, block, context). The cache is empty when a
//! game starts, and written by the game's first position and by every refresh into it; legal moves that are not played
//! read it and leave it.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::Path;

use shakmaty::Position;

use super::MeasureError;
use super::lines::{Line, ReadSummary, Step, fold};
use crate::chess::{Board, BoardChange, ByPerspective, Perspective};
use crate::features::{Delta, FeatureSet};
use crate::record::{LegalCounts, MoveCounts, UpdatesRecord};

/// Counts over every move of the data's first `limit` games (all without a limit); with `legal`, over every legal move
/// of each position as well.
///
/// # Errors
/// When the data cannot be read or hold no move.
pub fn updates(
    set: &FeatureSet,
    data: &Path,
    limit: Option<u64>,
    legal: bool,
) -> Result<(UpdatesRecord, ReadSummary), MeasureError> {
    let work = |totals: &mut Totals, line: &Line| Counter::new(set, line.start.board()).line(line, legal, totals);
    let (totals, reading) = fold(data, limit, Totals::default, work, Totals::plus)?;
    if totals.played.moves == 0 {
        return Err(MeasureError::NoMoves { path: data.into() });
    }
    let [mover, other, mean] = totals.played.means();
    let active_mean = totals.active as f64 / (2 * totals.played.moves) as f64;
    let legal = legal.then(|| {
        let [mover, other, mean] = totals.legal.means();
        LegalCounts { moves: totals.legal.moves, mover, other, mean }
    });
    let record = UpdatesRecord {
        name: set.name().into(),
        identity: set.identity().clone(),
        num_features: set.num_features(),
        games: reading.games,
        positions: totals.played.moves,
        moves: totals.played.moves,
        active_mean,
        active_max: totals.active_max,
        density: active_mean / f64::from(set.num_features()),
        mover,
        other,
        mean,
        legal,
    };
    Ok((record, reading))
}

/// Sums over moves for one perspective.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Rows {
    added: u64,
    removed: u64,
    refreshes: u64,
    update: u64,
    refresh: u64,
    cache: u64,
}

impl AddAssign for Rows {
    fn add_assign(&mut self, other: Rows) {
        self.added += other.added;
        self.removed += other.removed;
        self.refreshes += other.refreshes;
        self.update += other.update;
        self.refresh += other.refresh;
        self.cache += other.cache;
    }
}

impl Rows {
    fn mean(self, moves: u64) -> MoveCounts {
        let mean = |sum: u64| sum as f64 / moves.max(1) as f64;
        MoveCounts {
            added: mean(self.added),
            removed: mean(self.removed),
            refreshes: mean(self.refreshes),
            rows_update: mean(self.update),
            rows_refresh: mean(self.refresh),
            rows_cache: mean(self.cache),
        }
    }
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    moves: u64,
    mover: Rows,
    other: Rows,
}

impl Sums {
    fn plus(mut self, other: Sums) -> Sums {
        self.moves += other.moves;
        self.mover += other.mover;
        self.other += other.other;
        self
    }

    fn side(&mut self, of_mover: bool) -> &mut Rows {
        if of_mover { &mut self.mover } else { &mut self.other }
    }

    /// Mover, other, and (mover + other) / 2.
    fn means(self) -> [MoveCounts; 3] {
        let mut both = self.mover;
        both += self.other;
        [self.mover.mean(self.moves), self.other.mean(self.moves), both.mean(2 * self.moves)]
    }
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    played: Sums,
    legal: Sums,
    active: u64,
    active_max: u64,
}

impl Totals {
    fn plus(self, other: Totals) -> Totals {
        Totals {
            played: self.played.plus(other.played),
            legal: self.legal.plus(other.legal),
            active: self.active + other.active,
            active_max: self.active_max.max(other.active_max),
        }
    }
}

/// Follows a game.
struct Counter<'a> {
    set: &'a FeatureSet,
    views: ByPerspective<View>,
    delta: Delta,
    active: Vec<u32>,
}

/// What one perspective remembers.
struct View {
    /// Active features of each block.
    sizes: Vec<usize>,
    /// The refresh cache: sorted active features by block and context.
    cache: HashMap<(usize, Option<u32>), Vec<u32>>,
}

impl<'a> Counter<'a> {
    fn new(set: &'a FeatureSet, start: &Board) -> Counter<'a> {
        let view = |pov| {
            let mut view = View { sizes: Vec::new(), cache: HashMap::new() };
            for block in 0..set.blocks().len() {
                let active = sorted_block(set, block, start, pov);
                view.sizes.push(active.len());
                view.cache.insert((block, set.encoder().context(block, start, pov)), active);
            }
            view
        };
        Counter { set, views: ByPerspective::new_with(view), delta: Delta::default(), active: Vec::new() }
    }

    fn line(&mut self, line: &Line, legal: bool, totals: &mut Totals) {
        line.walk(|step| {
            for pov in Perspective::ALL {
                let active = self.views[pov].sizes.iter().sum::<usize>() as u64;
                totals.active += active;
                totals.active_max = totals.active_max.max(active);
            }
            if legal {
                self.legal_moves(step, &mut totals.legal);
            }
            self.played(step, &mut totals.played);
        });
    }

    fn played(&mut self, step: &Step<'_>, sums: &mut Sums) {
        sums.moves += 1;
        let turn = step.before.turn();
        for pov in Perspective::ALL {
            let mut rows = self.changes(step.before.board(), step.change, step.after, pov);
            rows.cache = self.through_cache(step.before.board(), step.after, pov, true);
            *sums.side(pov.own() == turn) += rows;
        }
    }

    fn legal_moves(&mut self, step: &Step<'_>, sums: &mut Sums) {
        let before = step.before.board();
        let turn = step.before.turn();
        for mv in step.before.legal_moves() {
            let change = BoardChange::of(mv, turn);
            let after = change.applied_to(before);
            sums.moves += 1;
            for pov in Perspective::ALL {
                let mut rows = self.changes(before, &change, &after, pov);
                rows.cache = self.through_cache(before, &after, pov, false);
                *sums.side(pov.own() == turn) += rows;
            }
        }
    }

    /// Everything but the cache. Leaves the change in `self.delta`.
    fn changes(&mut self, before: &Board, change: &BoardChange, after: &Board, pov: Perspective) -> Rows {
        let set = self.set;
        set.encoder().diff(before, change, after, pov, &mut self.delta);
        let (added, removed) = (self.delta.added.len(), self.delta.removed.len());
        let mut rows = Rows {
            added: added as u64,
            removed: removed as u64,
            refreshes: u64::from(self.delta.refresh),
            ..Rows::default()
        };
        for (block, size) in self.views[pov].sizes.iter().enumerate() {
            let (added, removed) = block_delta(set, block, &self.delta);
            let after_size = size + added - removed;
            rows.refresh += after_size as u64;
            rows.update += match set.encoder().context(block, before, pov) == set.encoder().context(block, after, pov) {
                true => added + removed,
                false => after_size,
            } as u64;
        }
        rows
    }

    /// Rows with the cache for the change in `self.delta`. `played`: moves the view to `after` and writes the cache.
    fn through_cache(&mut self, before: &Board, after: &Board, pov: Perspective, played: bool) -> u64 {
        let set = self.set;
        let view = &mut self.views[pov];
        let mut rows = 0;
        for (block, kept_size) in view.sizes.iter_mut().enumerate() {
            let (added, removed) = block_delta(set, block, &self.delta);
            let size = *kept_size + added - removed;
            if played {
                *kept_size = size;
            }
            let context = set.encoder().context(block, after, pov);
            if set.encoder().context(block, before, pov) == context {
                rows += added + removed;
                continue;
            }
            self.active.clear();
            set.encoder().append_block(block, after, pov, &mut self.active);
            self.active.sort_unstable();
            let cached = view.cache.get(&(block, context));
            rows += cached.map_or(size, |cached| difference(cached, &self.active).min(size));
            if played {
                view.cache.entry((block, context)).or_default().clone_from(&self.active);
            }
        }
        rows as u64
    }
}

fn sorted_block(set: &FeatureSet, block: usize, board: &Board, pov: Perspective) -> Vec<u32> {
    let mut active = Vec::new();
    set.encoder().append_block(block, board, pov, &mut active);
    active.sort_unstable();
    active
}

/// How many of a delta's added and removed features belong to a block.
fn block_delta(set: &FeatureSet, block: usize, delta: &Delta) -> (usize, usize) {
    let block = &set.blocks()[block];
    let inside = |features: &[u32]| features.iter().filter(|index| block.contains(**index)).count();
    (inside(&delta.added), inside(&delta.removed))
}

/// Size of the symmetric difference of two sorted lists; repeated features count repeatedly.
fn difference(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut different) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            std::cmp::Ordering::Less => (i, different) = (i + 1, different + 1),
            std::cmp::Ordering::Greater => (j, different) = (j + 1, different + 1),
        }
    }
    different + (a.len() - i) + (b.len() - j)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences() {
        let check = |a: &[u32], b: &[u32], expected| assert_eq!(difference(a, b), expected, "{a:?} {b:?}");
        check(&[], &[], 0);
        check(&[1, 2, 3], &[1, 2, 3], 0);
        check(&[1, 2, 3], &[2, 3, 4], 2);
        check(&[1, 1, 2], &[1, 2, 2], 2);
        check(&[], &[7, 8], 2);
    }
}
