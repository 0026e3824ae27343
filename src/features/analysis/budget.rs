//! The budget of an analysis in steps of work and, optionally, in time; estimates of the steps that encoding takes.
//!
//! Steps make results independent of the machine. The clock guards against slow machines.

use std::time::{Duration, Instant};

use crate::features::FeatureSet;
use crate::features::spec::{BinderSpec, BlockSpec, CountSpec};

/// One binding tried or one board square examined, about 30 ns.
pub type AnalysisSteps = u64;

/// Pieces on a typical full board.
const TYPICAL_PIECES: AnalysisSteps = 24;

/// Time limit of a brief analysis.
const BRIEF: Duration = Duration::from_secs(8);

/// A limit on the work of an analysis.
#[derive(Copy, Clone, Debug)]
pub struct Budget {
    limited: bool,
    /// A limited analysis takes this part of its steps.
    part: AnalysisSteps,
    deadline: Option<Instant>,
}

impl Budget {
    /// A fixed number of steps, some seconds of work: the same answer on every machine.
    pub const STEPS: Budget = Budget { limited: true, part: 1, deadline: None };

    /// A small part of [`Budget::STEPS`], some tenths of a second of work: the same answer on every machine.
    pub const QUICK: Budget = Budget { limited: true, part: 32, deadline: None };

    /// No limit.
    pub const THOROUGH: Budget = Budget { limited: false, part: 1, deadline: None };

    /// The steps of [`Budget::STEPS`], and at most eight seconds from now.
    #[must_use]
    pub fn brief() -> Budget {
        Budget { deadline: Some(Instant::now() + BRIEF), ..Budget::STEPS }
    }

    /// Steps for a task that takes `limited` steps in a limited analysis.
    pub(super) fn steps(&self, limited: AnalysisSteps) -> AnalysisSteps {
        // More than any analysis takes, and no sum of such numbers overflows.
        if self.limited { limited / self.part } else { 1 << 56 }
    }

    /// Whether the number of steps is limited.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Whether the time is up.
    pub fn expired(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Steps of the reference encoder for a typical full board, all blocks together.
pub fn encoding_steps(set: &FeatureSet) -> AnalysisSteps {
    set.blocks().iter().map(|block| block_steps(block.spec())).fold(0, AnalysisSteps::saturating_add)
}

/// Steps of the reference encoder for one block and a typical full board.
pub fn block_steps(block: &BlockSpec) -> AnalysisSteps {
    block_steps_with(block, TYPICAL_PIECES)
}

/// Steps of the reference encoder for one block and a board with this many pieces.
pub fn block_steps_with(block: &BlockSpec, pieces: AnalysisSteps) -> AnalysisSteps {
    let counts = block.counts().into_iter().map(|count| count_steps(count, pieces));
    let per_binding = counts.fold(0, AnalysisSteps::saturating_add).saturating_mul(2).saturating_add(10);
    typical_bindings(&block.binders, pieces).saturating_mul(per_binding).saturating_add(100).min(1 << 40)
}

/// Steps of a count, including nested counts.
fn count_steps(count: &CountSpec, pieces: AnalysisSteps) -> AnalysisSteps {
    let nested = count.guards.iter().flat_map(|guard| &guard.counts).map(|count| count_steps(count, pieces));
    typical_bindings(&count.binders, pieces).saturating_mul(nested.fold(1, AnalysisSteps::saturating_add))
}

fn typical_bindings(binders: &[BinderSpec], pieces: AnalysisSteps) -> AnalysisSteps {
    binders.iter().map(|binder| binder.source.typical_values(pieces)).fold(1, AnalysisSteps::saturating_mul)
}
