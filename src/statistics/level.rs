//! How sure each of several intervals must be, so that all of them hold together.

use super::CONFIDENCE;

/// The level of every interval in a family whose statements all hold together with 95% confidence (Bonferroni).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Level {
    statements: usize,
    tables: usize,
}

impl Level {
    /// A single interval.
    pub const SINGLE: Level = Level { statements: 1, tables: 1 };

    /// So many statements from so many tables of sets × seeds (a measure, or a class of positions, each has one).
    #[must_use]
    pub fn together(statements: usize, tables: usize) -> Level {
        Level { statements: statements.max(1), tables: tables.max(1) }
    }

    /// The confidence of each statement.
    #[must_use]
    pub fn each(self) -> f64 {
        together(self.statements)
    }

    /// The confidence with which a set's own noise, as `seeds` trainings show it, is taken into account. All statements
    /// about a noisy set fail together, because all of them contain its mean: they are one statement, not K − 1. The
    /// error 5% · 2 / (seeds − 1), at most 5%, was chosen by simulation (`scripts/coverage.sh`): with few seeds the
    /// variance common to the sets covers a part of the failures, with more seeds less of it is left to cover.
    pub(super) fn of_own_noise(self, seeds: f64) -> f64 {
        let share = (2.0 / (seeds - 1.0)).min(1.0) / self.tables as f64;
        (1.0 - (1.0 - CONFIDENCE) * share).min(self.each())
    }
}

/// The confidence of each of `count` intervals that hold together with 95% confidence (Bonferroni).
#[must_use]
pub fn together(count: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / count.max(1) as f64
}
