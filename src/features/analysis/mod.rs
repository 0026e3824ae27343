//! What can be proved of a definition: which features no legal position activates, which one does, and whether the
//! features determine where the pieces stand.
//!
//! Everything is argued on the language's meaning ([`search`]) and shown on the reference encoder ([`construct`]); no
//! feature set is known by name here.

mod active_counts;
mod bindings;
mod budget;
mod classify;
mod count_bounds;
mod count_values;
mod counterexample;
mod counts;
mod decode;
mod domain;
mod legal;
mod lossless;
mod partial_board;
mod positions;
mod sources;
mod witness;

use std::collections::BTreeMap;

use crate::chess::Perspective;

use super::set::{Block, FeatureSet};
use budget::Steps;
use classify::BlockStatuses;

pub(super) use bindings::{BindingSearch, SearchEnd};

pub use active_counts::ActiveCounts;
pub use budget::Budget;
pub use legal::Witness;

/// Indices a set may have to be examined one by one; blocks beyond are left unresolved.
const MAX_EXAMINED: u64 = 1 << 24;

/// What all blocks may take together, and what they may take where rows are dropped by the answer.
const BUDGET: Steps = 1 << 28;
const DEAD_BUDGET: Steps = 1 << 30;

/// What is known of a feature.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Proved: no legal position activates it.
    Dead,
    /// A legal position activates it.
    Live,
    /// Neither proved nor shown.
    Unresolved,
}

/// What an analysis is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Purpose {
    /// A witness for every live feature.
    Witnesses,
    /// Only what is dead.
    DeadOnly,
}

/// How many features are dead, live, unresolved.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    pub dead: u32,
    pub live: u32,
    pub unresolved: u32,
}

/// The features of a set, each dead, live or unresolved.
#[derive(Debug)]
pub struct Analysis {
    blocks: Vec<BlockAnalysis>,
    steps: Steps,
}

#[derive(Debug)]
struct BlockAnalysis {
    offset: u32,
    size: u32,
    /// Under a selection: each feature's element in the block's product, by the set's index.
    elements: Option<BTreeMap<u32, u32>>,
    /// None when the set is too large.
    settled: Option<BlockStatuses>,
}

impl Analysis {
    /// Most steps an analysis takes by [`Budget::STEPS`].
    pub const STEPS: Steps = BUDGET;

    /// Examines every feature by [`Budget::STEPS`]. `progress` is told a block's number and how many of its features are
    /// left.
    pub fn of(set: &FeatureSet, progress: impl FnMut(usize, usize)) -> Analysis {
        Analysis::within(set, Budget::STEPS, progress)
    }

    /// The same within another budget.
    pub fn within(set: &FeatureSet, budget: Budget, progress: impl FnMut(usize, usize)) -> Analysis {
        Analysis::with(set, Purpose::Witnesses, (budget, budget.steps(BUDGET)), progress)
    }

    fn with(
        set: &FeatureSet,
        purpose: Purpose,
        (budget, limit): (Budget, Steps),
        mut progress: impl FnMut(usize, usize),
    ) -> Analysis {
        let mut total = 0;
        let (mut left, mut open) = (limit, set.blocks().len() as Steps);
        let examine = |(at, block): (usize, &Block)| {
            let mut examined = BlockAnalysis::unsettled(block);
            total += u64::from(block.spec().product.size);
            if total <= MAX_EXAMINED {
                let screen = |witness: &Witness, out: &mut Vec<u32>| {
                    set.encoder().append_block(at, witness.board(), Perspective::White, out);
                    out.iter_mut().for_each(|index| *index = examined.element(*index).unwrap_or(0));
                };
                let mut tell = |pending| progress(at, pending);
                // What a block does not need is left to those after it.
                let share = (budget, left / open);
                let (settled, steps) = classify::settle(block.spec(), purpose, share, &screen, &mut tell);
                examined.settled = Some(settled);
                left -= steps;
            }
            open -= 1;
            examined
        };
        let blocks = set.blocks().iter().enumerate().map(examine).collect();
        Analysis { blocks, steps: limit - left }
    }

    /// Steps taken, about 30 ns each.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn status(&self, index: u32) -> Status {
        let known = self.locate(index).map(|(settled, element)| settled.statuses[element as usize]);
        known.unwrap_or(Status::Unresolved)
    }

    /// A legal position that activates a live feature for White.
    pub fn witness(&self, index: u32) -> Option<&Witness> {
        self.locate(index).and_then(|(settled, element)| settled.witness(element))
    }

    /// Ascending.
    pub fn dead(&self) -> Vec<u32> {
        let mut dead: Vec<u32> = self.blocks.iter().flat_map(|block| block.with(Status::Dead)).collect();
        dead.sort_unstable();
        dead
    }

    pub fn tally(&self) -> Tally {
        (0..self.blocks.len()).map(|block| self.block_tally(block)).fold(Tally::default(), |sum, block| Tally {
            dead: sum.dead + block.dead,
            live: sum.live + block.live,
            unresolved: sum.unresolved + block.unresolved,
        })
    }

    pub fn block_tally(&self, block: usize) -> Tally {
        let block = &self.blocks[block];
        let [dead, live] = [Status::Dead, Status::Live].map(|status| block.with(status).count() as u32);
        Tally { dead, live, unresolved: block.size - dead - live }
    }

    /// The block that has a feature, and the feature's element there.
    fn locate(&self, index: u32) -> Option<(&BlockStatuses, u32)> {
        let found = self.blocks.iter().find_map(|block| Some((block, block.element(index)?)));
        found.and_then(|(block, element)| Some((block.settled.as_ref()?, element)))
    }
}

impl BlockAnalysis {
    fn unsettled(block: &Block) -> BlockAnalysis {
        let spec = block.spec();
        let numbered = || (0..spec.product.size).filter_map(|element| Some((spec.index_of(element)?, element)));
        let elements = spec.renumbering.as_ref().map(|_| numbered().collect());
        BlockAnalysis { offset: block.offset, size: block.size, elements, settled: None }
    }

    /// The element that is the set's feature `index`.
    fn element(&self, index: u32) -> Option<u32> {
        match &self.elements {
            Some(elements) => elements.get(&index).copied(),
            None => index.checked_sub(self.offset).filter(|element| *element < self.size),
        }
    }

    /// The set's indices of a status.
    fn with(&self, status: Status) -> impl Iterator<Item = u32> + '_ {
        let statuses = self.settled.iter().flat_map(|settled| &settled.statuses);
        let plain = statuses.zip(0u32..).filter(move |(of, _)| **of == status && self.elements.is_none());
        let selected = self.elements.iter().flatten().filter(move |(_, element)| {
            self.settled.as_ref().is_some_and(|settled| settled.statuses[**element as usize] == status)
        });
        plain.map(|(_, element)| self.offset + element).chain(selected.map(|(index, _)| *index))
    }
}

/// Boards that the compiled encoder may encode within a budget, where a look at a set is all that is wanted.
pub(super) fn affordable_encodings(set: &FeatureSet, budget: Budget) -> u64 {
    const LOOK: Steps = 1 << 26;
    // The compiled encoder takes a quarter of what the reference does, or less.
    4 * budget.steps(LOOK) / bindings::encoding_steps(set)
}

/// The features proved dead, ascending: rows that may be dropped without changing any score. Looks for no witnesses
/// beyond what random positions show, so it is quicker than a whole [`Analysis`].
pub fn dead(set: &FeatureSet) -> Vec<u32> {
    Analysis::with(set, Purpose::DeadOnly, (Budget::STEPS, DEAD_BUDGET), |_, _| {}).dead()
}

/// Whether both perspectives' features together determine where the pieces stand.
#[derive(Debug)]
pub enum Lossless {
    /// Proved.
    Yes,
    /// Two legal positions that look the same.
    No(Box<[Witness; 2]>),
    Unknown,
}

impl Lossless {
    /// By [`Budget::STEPS`].
    pub fn of(set: &FeatureSet) -> Lossless {
        Lossless::within(set, Budget::STEPS)
    }

    pub fn within(set: &FeatureSet, budget: Budget) -> Lossless {
        if lossless::everything(set, budget) {
            return Lossless::Yes;
        }
        counterexample::pair(set, budget).map_or(Lossless::Unknown, |pair| Lossless::No(Box::new(pair)))
    }

    /// `yes`, `no` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Lossless::Yes => "yes",
            Lossless::No(_) => "no",
            Lossless::Unknown => "unknown",
        }
    }
}
