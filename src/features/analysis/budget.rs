//! What an analysis may take: steps of work, so that where it ends does not depend on the machine, and a clock for
//! machines on which that many steps take too long.

use std::time::{Duration, Instant};

/// Bindings tried and board squares looked at, about 30 ns each.
pub type Steps = u64;

/// When a brief analysis stops, wherever it is.
const BRIEF: Duration = Duration::from_secs(8);

/// What an analysis may take.
#[derive(Copy, Clone, Debug)]
pub struct Budget {
    limited: bool,
    deadline: Option<Instant>,
}

impl Budget {
    /// A few seconds of work, however long they take: the answer is the same on every machine.
    pub const STEPS: Budget = Budget { limited: true, deadline: None };

    /// Whatever it takes.
    pub const THOROUGH: Budget = Budget { limited: false, deadline: None };

    /// The same work as [`Budget::STEPS`], but eight seconds from now at most: beyond, what is open stays unresolved.
    #[must_use]
    pub fn brief() -> Budget {
        Budget { limited: true, deadline: Some(Instant::now() + BRIEF) }
    }

    /// Steps to spend where a limited analysis takes so many.
    pub(super) fn steps(&self, limited: Steps) -> Steps {
        // Far beyond what any analysis takes, and far from overflow.
        if self.limited { limited } else { 1 << 56 }
    }

    /// Whether there is an end.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Whether the time is over.
    pub fn expired(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
