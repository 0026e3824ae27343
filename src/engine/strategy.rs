//! How accumulators follow the moves.

/// A way to keep accumulators up to date. Where some blocks of a set look at a king and others do not, the sum over the
/// latter is kept beside the whole, and a refresh recomputes the former alone (partial refresh; not by `Refresh`). Where
/// changed rows are fewer than those to recompute, they are added and subtracted instead.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Recompute both perspectives from all active features at every move.
    Refresh,
    /// Add and subtract the changed rows at every move, in place; recompute a perspective whose context changed.
    Eager,
    /// As `Eager`, with a refresh cache.
    EagerCached,
    /// Remember the moves, and make an accumulator of its predecessor when a score is asked for; moves can be taken back.
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

    /// Whether refreshes go through a cache.
    #[must_use]
    pub const fn caches(self) -> bool {
        matches!(self, Strategy::EagerCached | Strategy::LazyCached)
    }

    /// Whether moves are remembered until a score is asked for.
    #[must_use]
    pub const fn lazy(self) -> bool {
        matches!(self, Strategy::Lazy | Strategy::LazyCached)
    }
}
