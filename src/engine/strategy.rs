//! The strategies that keep accumulators up to date.

/// How accumulators follow the moves. All strategies give the same accumulators; they differ in rows read.
///
/// Every strategy but `Refresh` uses partial refresh for sets that have both king-dependent and king-independent
/// blocks: the king-independent sum is kept apart, and only the rest is recomputed. Where fewer rows change than would
/// be recomputed, the changed rows are added and subtracted instead.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Recomputes both perspectives from all active features at every move.
    Refresh,
    /// Adds and subtracts the changed rows in place at every move; recomputes a perspective whose context changed.
    Eager,
    /// As `Eager`, with a refresh cache.
    EagerCached,
    /// Records the moves and updates accumulators when a score is asked for. Moves can be undone.
    Lazy,
    /// As `Lazy`, with a refresh cache.
    LazyCached,
}

impl Strategy {
    pub const ALL: [Strategy; 5] =
        [Strategy::Refresh, Strategy::Eager, Strategy::EagerCached, Strategy::Lazy, Strategy::LazyCached];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Refresh => "refresh",
            Strategy::Eager => "eager",
            Strategy::EagerCached => "eager + cache",
            Strategy::Lazy => "lazy",
            Strategy::LazyCached => "lazy + cache",
        }
    }

    /// Whether refreshes use the cache.
    #[must_use]
    pub const fn caches(self) -> bool {
        matches!(self, Strategy::EagerCached | Strategy::LazyCached)
    }

    /// Whether moves are recorded until a score is asked for.
    #[must_use]
    pub const fn lazy(self) -> bool {
        matches!(self, Strategy::Lazy | Strategy::LazyCached)
    }
}
