//! Counts, on sampled positions, which features of a new block are active for the same binding as each feature of an
//! old one.

use crate::chess::{Board, Perspective};
use crate::cpu::map_tasks;
use crate::features::reference;
use crate::features::spec::{BlockSpec, Multiplicity};
use crate::features::starting_rows::RowPart;

/// Boards per task. Sums are added up task by task, so they do not depend on the number of threads.
const BOARDS_PER_TASK: usize = 512;

/// The average of a feature of the old block on positions where a feature of the new one is active.
#[derive(Debug)]
pub struct Credit {
    pub new: u32,
    pub old: u32,
    pub weight: f32,
}

/// What becomes of an old block.
#[derive(Debug)]
pub struct Credits {
    /// By new feature, then by old.
    pub of_rows: Vec<Credit>,
    /// The average of old features without a new one, over all positions.
    pub of_bias: Vec<RowPart>,
    /// The features of the new block that were active, ascending.
    pub seen: Vec<u32>,
}

/// New and old feature. Without a new one: credited to the biases. Without an old one: how often the new one is active.
type Key = (Option<u32>, Option<u32>);

impl Credits {
    /// Without a new block, the biases receive everything.
    pub fn count(new: Option<&BlockSpec>, old: &BlockSpec, boards: &[Board]) -> Credits {
        let tasks: Vec<&[Board]> = boards.chunks(BOARDS_PER_TASK).collect();
        let tallies = map_tasks(tasks.len(), &|task| {
            let mut tally = Vec::new();
            for board in tasks[task] {
                Perspective::ALL.into_iter().for_each(|pov| credit(new, old, board, pov, &mut tally));
            }
            summed(tally)
        });
        let mut credits = Credits { of_rows: Vec::new(), of_bias: Vec::new(), seen: Vec::new() };
        let perspectives = (boards.len() * Perspective::ALL.len()) as f64;
        let mut active = 0.0;
        for (key, sum) in summed(tallies.concat()) {
            match key {
                (Some(new), None) => {
                    credits.seen.push(new);
                    active = sum;
                }
                (Some(new), Some(old)) => credits.of_rows.push(Credit { new, old, weight: (sum / active) as f32 }),
                (None, Some(row)) => credits.of_bias.push(RowPart { row, weight: (sum / perspectives) as f32 }),
                (None, None) => {}
            }
        }
        credits
    }
}

/// The sum for each key, ascending.
fn summed(mut tally: Vec<(Key, f64)>) -> Vec<(Key, f64)> {
    tally.sort_by_key(|(key, _)| *key);
    tally.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            first.1 += next.1;
        }
        same
    });
    tally
}

/// A binding of a block's variables: their squares on the board itself, whatever the block's orientation, and its
/// features in the set; `None` where a selection leaves one out.
struct Binding {
    squares: Vec<u32>,
    features: Vec<Option<u32>>,
}

/// Adds what the features of one perspective are credited with.
fn credit(new: Option<&BlockSpec>, old: &BlockSpec, board: &Board, pov: Perspective, tally: &mut Vec<(Key, f64)>) {
    let mut continued = new.map_or_else(Vec::new, |new| bindings(new, board, pov));
    continued.sort_by(|a, b| a.squares.cmp(&b.squares));
    let active = new.map_or_else(Vec::new, |new| active(new, &continued));
    tally.extend(active.into_iter().map(|feature| ((Some(feature), None), 1.0)));
    let of_old = bindings(old, board, pov);
    let mut occurrences: Vec<u32> = of_old.iter().flat_map(|binding| &binding.features).flatten().copied().collect();
    occurrences.sort_unstable();
    for Binding { squares, features } in &of_old {
        let candidates = same_squares(&continued, squares).map_or(&[][..], |binding| &binding.features);
        for (number, feature) in features.iter().enumerate() {
            let Some(feature) = *feature else { continue };
            let times = match old.multiplicity {
                Multiplicity::Set => {
                    occurrences.partition_point(|other| *other <= feature)
                        - occurrences.partition_point(|other| *other < feature)
                }
                Multiplicity::Bag => 1,
            };
            // Terms of a sum in the order in which they stand.
            let targets = if candidates.len() == features.len() { &candidates[number..=number] } else { candidates };
            let targets: Vec<u32> = targets.iter().flatten().copied().collect();
            let share = 1.0 / (times * targets.len().max(1)) as f64;
            if targets.is_empty() {
                tally.push(((None, Some(feature)), share));
            }
            tally.extend(targets.into_iter().map(|target| ((Some(target), Some(feature)), share)));
        }
    }
}

/// The binding with these squares. On a mirrored board, the neighbours of a piece are found from the other side.
fn same_squares<'a>(sorted: &'a [Binding], squares: &[u32]) -> Option<&'a Binding> {
    let find = |squares: &[u32]| sorted.binary_search_by(|binding| binding.squares.as_slice().cmp(squares)).ok();
    let reversed: Vec<u32> = squares.iter().rev().copied().collect();
    find(squares).or_else(|| find(&reversed)).map(|at| &sorted[at])
}

/// The active features of a block, each as often as it counts.
fn active(block: &BlockSpec, bindings: &[Binding]) -> Vec<u32> {
    let mut features: Vec<u32> = bindings.iter().flat_map(|binding| &binding.features).flatten().copied().collect();
    features.sort_unstable();
    if block.multiplicity == Multiplicity::Set {
        features.dedup();
    }
    features
}

fn bindings(block: &BlockSpec, board: &Board, pov: Perspective) -> Vec<Binding> {
    let Some(king) = board.king_of(pov.own()) else { return Vec::new() };
    let mask = block.orientation.mask(king, pov);
    let mut bindings: Vec<Binding> = Vec::new();
    for (element, mut squares) in reference::elements_by_binding(block, board, pov) {
        squares.iter_mut().for_each(|square| *square ^= mask);
        let feature = block.index_of(element);
        match bindings.last_mut().filter(|last| last.squares == squares) {
            Some(last) => last.features.push(feature),
            None => bindings.push(Binding { squares, features: vec![feature] }),
        }
    }
    bindings
}
