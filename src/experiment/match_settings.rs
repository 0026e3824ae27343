//! `[match]`: which networks play which, and under what conditions.

use serde::Deserialize;
use toml::Spanned;

use super::checks::{Problem, check_selection};
use super::spec::ComparisonRow;
use crate::alpha_beta::TranspositionTable;
use crate::data::Method;
use crate::units::Seed;

/// `[match]`. Every network that matches `sets`, `methods` and `seeds` (`None` matches all) plays the reference set's
/// network of its method and seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatchMeasure {
    /// Label or name of the set that the others play; `None` = each method's first.
    pub reference: Option<Spanned<String>>,
    /// Method of the reference; `None` = that of the row that plays it.
    pub reference_method: Option<Method>,
    pub sets: Option<Vec<String>>,
    pub methods: Option<Vec<Method>>,
    pub seeds: Option<Vec<Seed>>,
    /// Play at equal nodes: so many per move.
    pub nodes: Option<u64>,
    /// Play at equal cost: so many nodes per move of the reference.
    pub equal_cost: Option<u64>,
    /// Game pairs per match; with `half_width` at most.
    pub pairs: Option<u64>,
    /// Play until half the 95% interval is at most this, in Elo.
    pub half_width: Option<f64>,
    /// Play a match in shards of so many pairs, each a step of its own; `None` = the whole match is one step.
    pub shard_pairs: Option<u64>,
    /// A book as written; `None` = the openings that come with fsbench.
    pub openings: Option<Spanned<String>>,
    /// Moves taken from each game of a PGN book.
    pub opening_plies: Option<u16>,
    /// Seed of the order of openings; the training seed is added to it.
    pub seed: Seed,
    pub adjudication: bool,
    /// A player's hash table in MiB.
    pub hash: u32,
    /// Games at once; `None` = the number of cores.
    pub concurrency: Option<u16>,
}

impl Default for MatchMeasure {
    fn default() -> MatchMeasure {
        MatchMeasure {
            reference: None,
            reference_method: None,
            sets: None,
            methods: None,
            seeds: None,
            nodes: None,
            equal_cost: None,
            pairs: None,
            half_width: None,
            shard_pairs: None,
            openings: None,
            opening_plies: None,
            seed: Seed(0),
            adjudication: true,
            hash: TranspositionTable::DEFAULT_MEGABYTES as u32,
            concurrency: None,
        }
    }
}

impl MatchMeasure {
    /// Pairs per match unless `half_width` is given.
    pub const DEFAULT_PAIRS: u64 = 100;
    /// Most pairs per match where `half_width` is given.
    pub const DEFAULT_MOST_PAIRS: u64 = 10_000;

    /// Game pairs per match, with `half_width` at most.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        let default = if self.half_width.is_some() { Self::DEFAULT_MOST_PAIRS } else { Self::DEFAULT_PAIRS };
        self.pairs.unwrap_or(default)
    }

    /// The row that the networks of `row` play; `None` if they play none.
    pub(super) fn opponent<'a>(&self, row: &ComparisonRow, rows: &'a [ComparisonRow]) -> Option<&'a ComparisonRow> {
        let is_covered = self.covers_method(row.method)
            && self.sets.as_ref().is_none_or(|sets| sets.iter().any(|name| row.is_called(name)));
        let is_other = |other: &ComparisonRow| (&other.label, other.method) != (&row.label, row.method);
        self.reference_row(rows, row).filter(|reference| is_covered && is_other(reference))
    }

    fn covers_method(&self, method: Method) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    pub(super) fn covers_seed(&self, seed: Seed) -> bool {
        self.seeds.as_ref().is_none_or(|seeds| seeds.contains(&seed))
    }

    /// The row that `row` plays: of the same method, unless another is given, and, unless the reference is one row's whole label, of the same
    /// group. `None` if no such row is called `reference`.
    fn reference_row<'a>(&self, rows: &'a [ComparisonRow], row: &ComparisonRow) -> Option<&'a ComparisonRow> {
        let method = self.reference_method.unwrap_or(row.method);
        let of_method = rows.iter().filter(move |other| other.method == method);
        let mut of_group = of_method.clone().filter(|other| other.group == row.group);
        match &self.reference {
            None => of_group.next(),
            Some(name) => {
                let labelled = of_method.clone().find(|row| row.label == *name.get_ref());
                labelled.or_else(|| of_group.find(|row| row.is_called(name.get_ref())))
            }
        }
    }
}

/// Checks the table's numbers, and that it names only sets, methods and seeds of the experiment.
pub(super) fn check_matches(
    table: &Spanned<MatchMeasure>,
    rows: &[ComparisonRow],
    all_seeds: &[Seed],
) -> Result<(), Problem> {
    let measure = table.get_ref();
    let MatchMeasure { sets, methods, seeds, .. } = measure;
    check_numbers(measure)
        .and_then(|()| check_selection(sets, methods, seeds, rows, all_seeds))
        .map_err(|message| Problem::at(table, message))?;
    check_reference(measure, rows)?;
    match rows.iter().any(|row| measure.opponent(row, rows).is_some()) {
        true => Ok(()),
        false => Err(Problem::at(table, "no set plays: a match needs a set beside the reference".into())),
    }
}

fn check_numbers(measure: &MatchMeasure) -> Result<(), String> {
    const MOST_PAIRS: u64 = 10_000_000;
    let megabytes = 1..=TranspositionTable::MAX_MEGABYTES as u32;
    let has_book = measure.openings.is_some();
    let checks = [
        (
            measure.nodes.is_some() || measure.equal_cost.is_some(),
            "give nodes = 5000 (nodes per move, the same for both), equal_cost = 5000 (nodes per move of the reference) \
             or both"
                .to_owned(),
        ),
        (measure.nodes != Some(0), "nodes must be at least 1".into()),
        (measure.equal_cost != Some(0), "equal_cost must be at least 1".into()),
        ((1..=MOST_PAIRS).contains(&measure.pairs()), format!("pairs must lie between 1 and {MOST_PAIRS}")),
        (
            measure.half_width.is_none_or(|width| width.is_finite() && width > 0.0),
            "half_width must be above 0, in Elo".into(),
        ),
        (measure.shard_pairs != Some(0), "shard_pairs must be at least 1".into()),
        (
            has_book || measure.opening_plies.is_none(),
            "opening_plies needs `openings` with a book of games: the openings that come with fsbench are positions"
                .into(),
        ),
        (megabytes.contains(&measure.hash), format!("hash must lie between 1 and {} MiB", megabytes.end())),
        (measure.concurrency != Some(0), "concurrency must be at least 1".into()),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, message)| Err(message))
}

/// Checks that every method that plays has the reference.
fn check_reference(measure: &MatchMeasure, rows: &[ComparisonRow]) -> Result<(), Problem> {
    let Some(reference) = &measure.reference else { return Ok(()) };
    let name = reference.get_ref();
    let problem = |message| Err(Problem::at(reference, message));
    if !rows.iter().any(|row| row.is_called(name)) {
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        return problem(format!("no run uses the set '{name}'; the experiment has {}", labels.join(", ")));
    }
    let without =
        rows.iter().find(|row| measure.covers_method(row.method) && measure.reference_row(rows, row).is_none());
    match without {
        Some(row) => problem(format!(
            "no run by {} uses the set '{name}': name the methods that play in `methods`",
            measure.reference_method.unwrap_or(row.method).name()
        )),
        None => Ok(()),
    }
}
