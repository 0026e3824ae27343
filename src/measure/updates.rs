//! Rows per move of each strategy, for the mover's perspective and the other one.
//!
//! For a move, a perspective, and its active sets A before and B after: added = |B∖A|, removed = |A∖B|. `rows_update`
//! of a block is the size of its delta, or its |B| if its context changed. `rows_cache` differs in blocks whose context
//! changed: they are updated from the refresh cache's entry for (perspective, block, context). The cache is empty at
//! the start of a game. The game's first position and every refresh write to it; legal moves that are not played only
//! read it.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::path::Path;

use shakmaty::Position;

use super::MeasureError;
use super::lines::{Line, LineMove, ReadSummary, fold_lines};
use crate::chess::{Board, BoardChange, ByPerspective, Chess, Perspective};
use crate::features::{Delta, FeatureSet};
use crate::record::{LegalCounts, MoveCounts, UpdatesRecord};

/// Counts rows over the moves of the first `limit` games; `None` reads all games. With `legal`, counts over every legal
/// move of each position as well.
///
/// # Errors
/// When the data cannot be read or hold no moves.
pub fn updates(
    set: &FeatureSet,
    data: &Path,
    limit: Option<u64>,
    legal: bool,
) -> Result<(UpdatesRecord, ReadSummary), MeasureError> {
    let add = |totals: &mut Totals, line: &Line| RowCounter::new(set, line.start.board()).count(line, legal, totals);
    let (totals, summary) = fold_lines(data, limit, Totals::default, add, Totals::plus)?;
    if totals.played.moves == 0 {
        return Err(MeasureError::NoMoves { path: data.into() });
    }
    let [mover, other, mean] = totals.played.means();
    let active_mean = totals.active_mean();
    let legal = legal.then(|| {
        let [mover, other, mean] = totals.legal.means();
        LegalCounts { moves: totals.legal.moves, mover, other, mean }
    });
    let record = UpdatesRecord {
        name: set.name().into(),
        identity: set.identity().clone(),
        num_features: set.num_features(),
        games: summary.games,
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
    Ok((record, summary))
}

/// The mean number of active features and the rows of a move, over both perspectives of the moves of lines.
pub(super) fn updates_of_lines(set: &FeatureSet, lines: &[Line]) -> (f64, MoveCounts) {
    let mut totals = Totals::default();
    lines.iter().for_each(|line| RowCounter::new(set, line.start.board()).count(line, false, &mut totals));
    let [_, _, mean] = totals.played.means();
    (totals.active_mean(), mean)
}

/// Sums over moves, for one perspective.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct PerspectiveSums {
    added: u64,
    removed: u64,
    refreshes: u64,
    update: u64,
    refresh: u64,
    cache: u64,
}

impl AddAssign for PerspectiveSums {
    fn add_assign(&mut self, other: PerspectiveSums) {
        self.added += other.added;
        self.removed += other.removed;
        self.refreshes += other.refreshes;
        self.update += other.update;
        self.refresh += other.refresh;
        self.cache += other.cache;
    }
}

impl PerspectiveSums {
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
struct MoveSums {
    moves: u64,
    mover: PerspectiveSums,
    other: PerspectiveSums,
}

impl MoveSums {
    fn plus(mut self, other: MoveSums) -> MoveSums {
        self.moves += other.moves;
        self.mover += other.mover;
        self.other += other.other;
        self
    }

    fn side(&mut self, of_mover: bool) -> &mut PerspectiveSums {
        if of_mover { &mut self.mover } else { &mut self.other }
    }

    /// The means of mover, other, and (mover + other) / 2.
    fn means(self) -> [MoveCounts; 3] {
        let mut both = self.mover;
        both += self.other;
        [self.mover.mean(self.moves), self.other.mean(self.moves), both.mean(2 * self.moves)]
    }
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    played: MoveSums,
    legal: MoveSums,
    active: u64,
    active_max: u64,
}

impl Totals {
    /// Per position and perspective.
    fn active_mean(&self) -> f64 {
        self.active as f64 / (2 * self.played.moves) as f64
    }

    fn plus(self, other: Totals) -> Totals {
        Totals {
            played: self.played.plus(other.played),
            legal: self.legal.plus(other.legal),
            active: self.active + other.active,
            active_max: self.active_max.max(other.active_max),
        }
    }
}

/// Counts the rows of a line of play.
struct RowCounter<'a> {
    set: &'a FeatureSet,
    states: ByPerspective<PerspectiveState>,
    delta: Delta,
    active: Vec<u32>,
}

/// The state of a perspective.
struct PerspectiveState {
    /// Number of active features of each block.
    active_counts: Vec<usize>,
    /// The refresh cache: sorted active features by block and context.
    cache: HashMap<(usize, Option<u32>), Vec<u32>>,
}

impl<'a> RowCounter<'a> {
    fn new(set: &'a FeatureSet, start: &Board) -> RowCounter<'a> {
        let state = |pov| {
            let mut state = PerspectiveState { active_counts: Vec::new(), cache: HashMap::new() };
            for block in 0..set.blocks().len() {
                let active = sorted_block(set, block, start, pov);
                state.active_counts.push(active.len());
                state.cache.insert((block, set.encoder().context(block, start, pov)), active);
            }
            state
        };
        RowCounter { set, states: ByPerspective::new_with(state), delta: Delta::default(), active: Vec::new() }
    }

    fn count(&mut self, line: &Line, legal: bool, totals: &mut Totals) {
        line.for_each_move(|played| {
            for pov in Perspective::ALL {
                let active = self.states[pov].active_counts.iter().sum::<usize>() as u64;
                totals.active += active;
                totals.active_max = totals.active_max.max(active);
            }
            if legal {
                self.count_legal_moves(played.before, &mut totals.legal);
            }
            self.count_played_move(played, &mut totals.played);
        });
    }

    fn count_played_move(&mut self, played: &LineMove<'_>, sums: &mut MoveSums) {
        sums.moves += 1;
        let before = played.before.board();
        let turn = played.before.turn();
        for pov in Perspective::ALL {
            let mut rows = self.count_uncached(before, played.change, played.after, pov);
            rows.cache = self.count_cached(before, played.after, pov, true);
            *sums.side(pov.own() == turn) += rows;
        }
    }

    fn count_legal_moves(&mut self, position: &Chess, sums: &mut MoveSums) {
        let before = position.board();
        let turn = position.turn();
        for mv in position.legal_moves() {
            let change = BoardChange::of(mv, turn);
            let after = change.applied_to(before);
            sums.moves += 1;
            for pov in Perspective::ALL {
                let mut rows = self.count_uncached(before, &change, &after, pov);
                rows.cache = self.count_cached(before, &after, pov, false);
                *sums.side(pov.own() == turn) += rows;
            }
        }
    }

    /// Counts everything but `cache`, and writes the move's delta to `self.delta`.
    fn count_uncached(
        &mut self,
        before: &Board,
        change: &BoardChange,
        after: &Board,
        pov: Perspective,
    ) -> PerspectiveSums {
        let set = self.set;
        set.encoder().diff(before, change, after, pov, &mut self.delta);
        let added = self.delta.added.len();
        let removed = self.delta.removed.len();
        let mut rows = PerspectiveSums {
            added: added as u64,
            removed: removed as u64,
            refreshes: u64::from(self.delta.refresh),
            ..PerspectiveSums::default()
        };
        for (block, active_count) in self.states[pov].active_counts.iter().enumerate() {
            let (added, removed) = block_delta(set, block, &self.delta);
            let active_after = active_count + added - removed;
            rows.refresh += active_after as u64;
            rows.update += if set.encoder().context(block, before, pov) == set.encoder().context(block, after, pov) {
                added + removed
            } else {
                active_after
            } as u64;
        }
        rows
    }

    /// Counts the rows with a refresh cache for the delta in `self.delta`. With `played`, brings the state to `after`
    /// and writes the cache.
    fn count_cached(&mut self, before: &Board, after: &Board, pov: Perspective, played: bool) -> u64 {
        let set = self.set;
        let state = &mut self.states[pov];
        let mut rows = 0;
        for (block, active_count) in state.active_counts.iter_mut().enumerate() {
            let (added, removed) = block_delta(set, block, &self.delta);
            let active_after = *active_count + added - removed;
            if played {
                *active_count = active_after;
            }
            let context = set.encoder().context(block, after, pov);
            if set.encoder().context(block, before, pov) == context {
                rows += added + removed;
                continue;
            }
            set.encoder().part(&[block]).encode(after, pov, &mut self.active);
            self.active.sort_unstable();
            let cached = state.cache.get(&(block, context));
            rows += cached.map_or(active_after, |cached| difference(cached, &self.active).min(active_after));
            if played {
                state.cache.entry((block, context)).or_default().clone_from(&self.active);
            }
        }
        rows as u64
    }
}

fn sorted_block(set: &FeatureSet, block: usize, board: &Board, pov: Perspective) -> Vec<u32> {
    let mut active = Vec::new();
    set.encoder().part(&[block]).encode(board, pov, &mut active);
    active.sort_unstable();
    active
}

/// The numbers of a delta's added and removed features that belong to a block.
fn block_delta(set: &FeatureSet, block: usize, delta: &Delta) -> (usize, usize) {
    let block = &set.blocks()[block];
    let inside = |features: &[u32]| features.iter().filter(|index| block.contains(**index)).count();
    (inside(&delta.added), inside(&delta.removed))
}

/// The size of the symmetric difference of two sorted lists. Repeated features count repeatedly.
pub(super) fn difference(a: &[u32], b: &[u32]) -> usize {
    let mut i = 0;
    let mut j = 0;
    let mut different = 0;
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
