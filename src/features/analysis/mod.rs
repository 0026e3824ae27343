//! Proofs about a definition: dead features, a witness position for each live one, and losslessness.
//!
//! Proofs argue on the language's meaning: `bindings` enumerates, `dead` concludes. The reference encoder checks every
//! witness. No code here knows a feature set by name.

mod active_counts;
mod bindings;
mod budget;
mod classify;
mod count_bounds;
mod count_values;
mod counterexample;
mod counts;
mod dead;
mod decode;
mod domain;
mod legal;
mod lossless;
mod one_active;
mod partial_board;
mod positions;
mod sources;
mod witness;

use crate::chess::Perspective;
use crate::units::SortedMap;

use super::set::{Block, FeatureSet};
use budget::AnalysisSteps;
use classify::BlockStatuses;

pub(super) use bindings::{BindingSearch, SearchEnd};

pub use active_counts::ActiveCounts;
pub use budget::Budget;
pub use lossless::Lossless;
pub(super) use one_active::OneActive;
#[cfg(test)]
pub(super) use positions::random_game;
pub use witness::Witness;

/// Most indices that are examined; the blocks beyond stay unresolved.
const MAX_EXAMINED: u64 = 1 << 24;

/// Steps for all blocks of a set.
const BUDGET: AnalysisSteps = 1 << 28;
/// The same for [`dead`], whose answer decides which rows are dropped.
const DEAD_BUDGET: AnalysisSteps = 1 << 30;

/// The result for one feature.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// No legal position activates it, by proof.
    Dead,
    /// A legal position activates it.
    Live,
    /// Neither a proof nor a witness was found.
    Unresolved,
}

/// The questions of an analysis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum AnalysisGoal {
    /// Dead features, and a witness for every live feature.
    Witnesses,
    /// Dead features only.
    DeadOnly,
}

/// Number of features per status.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct StatusCounts {
    /// Features that no legal position activates.
    pub dead: u32,
    /// Features that some legal position activates.
    pub live: u32,
    /// Features of which neither is proved.
    pub unresolved: u32,
}

/// The status of every feature of a set.
#[derive(Debug)]
pub struct Analysis {
    blocks: Vec<BlockAnalysis>,
    steps: AnalysisSteps,
}

#[derive(Debug)]
struct BlockAnalysis {
    offset: u32,
    size: u32,
    /// Under a selection: set index → element of the block's product.
    elements: Option<SortedMap<u32, u32>>,
    /// `None` when the set is too large.
    statuses: Option<BlockStatuses>,
}

impl Analysis {
    /// Most steps that an analysis within [`Budget::STEPS`] takes.
    pub const STEPS: AnalysisSteps = BUDGET;

    /// Examines every feature within [`Budget::STEPS`]. `progress` gets a block's number and its number of open
    /// features.
    pub fn of(set: &FeatureSet, progress: impl FnMut(usize, usize)) -> Analysis {
        Analysis::within(set, Budget::STEPS, progress)
    }

    /// [`Analysis::of`] within another budget.
    pub fn within(set: &FeatureSet, budget: Budget, progress: impl FnMut(usize, usize)) -> Analysis {
        Analysis::with(set, AnalysisGoal::Witnesses, (budget, budget.steps(BUDGET)), progress)
    }

    fn with(
        set: &FeatureSet,
        goal: AnalysisGoal,
        (budget, limit): (Budget, AnalysisSteps),
        mut progress: impl FnMut(usize, usize),
    ) -> Analysis {
        let mut total = 0;
        let mut steps_left = limit;
        let mut blocks_left = set.blocks().len() as AnalysisSteps;
        let examine = |(number, block): (usize, &Block)| {
            let mut analysis = BlockAnalysis::unresolved(block);
            total += u64::from(block.spec().product.size);
            if total <= MAX_EXAMINED {
                let encoder = set.encoder().part(&[number]);
                let encode = |witness: &Witness, out: &mut Vec<u32>| {
                    encoder.encode(witness.board(), Perspective::White, out);
                    out.iter_mut().for_each(|index| *index = analysis.element(*index).unwrap_or(0));
                };
                let mut block_progress = |open| progress(number, open);
                // Later blocks share the steps that a block does not use.
                let share = (budget, steps_left / blocks_left);
                let (statuses, steps) = classify::classify(block.spec(), goal, share, &encode, &mut block_progress);
                analysis.statuses = Some(statuses);
                steps_left -= steps;
            }
            blocks_left -= 1;
            analysis
        };
        let blocks = set.blocks().iter().enumerate().map(examine).collect();
        Analysis { blocks, steps: limit - steps_left }
    }

    /// Steps taken; one is about 30 ns.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn status(&self, index: u32) -> Status {
        let status = self.locate(index).map(|(block, element)| block.statuses[element as usize]);
        status.unwrap_or(Status::Unresolved)
    }

    /// A legal position that activates a live feature for White.
    pub fn witness(&self, index: u32) -> Option<&Witness> {
        self.locate(index).and_then(|(block, element)| block.witness(element))
    }

    /// The dead features in ascending order.
    pub fn dead(&self) -> Vec<u32> {
        let mut dead: Vec<u32> = self.blocks.iter().flat_map(|block| block.with(Status::Dead)).collect();
        dead.sort_unstable();
        dead
    }

    pub fn tally(&self) -> StatusCounts {
        (0..self.blocks.len()).map(|block| self.block_tally(block)).fold(StatusCounts::default(), |sum, block| {
            StatusCounts {
                dead: sum.dead + block.dead,
                live: sum.live + block.live,
                unresolved: sum.unresolved + block.unresolved,
            }
        })
    }

    pub fn block_tally(&self, block: usize) -> StatusCounts {
        let block = &self.blocks[block];
        let [dead, live] = [Status::Dead, Status::Live].map(|status| block.with(status).count() as u32);
        StatusCounts { dead, live, unresolved: block.size - dead - live }
    }

    /// The block that contains a feature, and the feature's element there.
    fn locate(&self, index: u32) -> Option<(&BlockStatuses, u32)> {
        let (block, element) = self.blocks.iter().find_map(|block| Some((block, block.element(index)?)))?;
        Some((block.statuses.as_ref()?, element))
    }
}

impl BlockAnalysis {
    fn unresolved(block: &Block) -> BlockAnalysis {
        let spec = block.spec();
        let selected = || (0..spec.product.size).filter_map(|element| Some((spec.index_of(element)?, element)));
        let elements = spec.renumbering.as_ref().map(|_| selected().collect());
        BlockAnalysis { offset: block.offset, size: block.size, elements, statuses: None }
    }

    /// The element with this index in the set.
    fn element(&self, index: u32) -> Option<u32> {
        match &self.elements {
            Some(elements) => elements.get(&index).copied(),
            None => index.checked_sub(self.offset).filter(|element| *element < self.size),
        }
    }

    /// The set's indices of this status.
    fn with(&self, status: Status) -> impl Iterator<Item = u32> + '_ {
        let statuses = self.statuses.iter().flat_map(|block| &block.statuses);
        let unselected = statuses.zip(0u32..).filter(move |(of, _)| **of == status && self.elements.is_none());
        let selected = self.elements.iter().flatten().filter(move |(_, element)| {
            self.statuses.as_ref().is_some_and(|block| block.statuses[**element as usize] == status)
        });
        unselected.map(|(_, element)| self.offset + element).chain(selected.map(|(index, _)| *index))
    }
}

/// Number of boards that the compiled encoder may encode for warnings.
pub(super) fn affordable_encodings(set: &FeatureSet, budget: Budget) -> u64 {
    const WARNINGS: AnalysisSteps = 1 << 26;
    // The compiled encoder is at least four times as fast as the reference.
    4 * budget.steps(WARNINGS) / budget::encoding_steps(set)
}

/// The features proved dead, ascending: their rows may be dropped without changing any evaluation. Faster than a full
/// [`Analysis`], because it builds no witnesses.
pub fn dead(set: &FeatureSet) -> Vec<u32> {
    Analysis::with(set, AnalysisGoal::DeadOnly, (Budget::STEPS, DEAD_BUDGET), |_, _| {}).dead()
}
