//! The table `[search]`: its keys, and their checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Spanned;

use super::candidates::{Candidate, CandidateKeys, NetworkFindings, candidates};
use crate::experiment::ExperimentError;
use crate::experiment::checks::NetworkChoice;
use crate::experiment::match_settings::{MatchMeasure, MatchTerms};
use crate::experiment::spec::{ComparisonRow, Experiment};
use crate::json::ReadError;
use crate::measure::ScreenOptions;
use crate::play::BookPart;
use crate::record::OwnFigures;
use crate::settings::{SettingError, TableParts, check_all};
use crate::train::{LearningRateSchedule, Optimisation, TrainError, TrainSettings};
use crate::units::Seed;

/// Tries changes of a set and keeps the best, round by round; the rows of [[runs]] are what it starts with
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub struct Search {
    #[schemars(flatten)]
    pub terms: SearchTerms,
    #[schemars(flatten)]
    pub limits: ScreenOptions,
    #[schemars(flatten)]
    pub candidates: CandidateKeys,
    /// Where the table stands.
    #[schemars(skip)]
    pub(in crate::experiment) place: Spanned<()>,
}

/// How a search goes on, and how long.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchTerms {
    /// No round begins once the finished steps have taken so many hours, on however many machines
    pub hours: f64,
    /// Most rounds [default: until nothing improves, or the hours are over]
    #[serde(default)]
    pub rounds: Option<u32>,
    /// Samples of a candidate's first short training, which starts from the incumbent's network; a network whose king
    /// squares are merged learns from three times as many
    #[serde(default = "SearchTerms::default_samples")]
    pub samples: u64,
    /// Learning rate with which short trainings begin; it falls to a tenth along half a cosine, and the weights of the
    /// second half are averaged, so that the noise of steps does not count against candidates with many features
    #[serde(default = "SearchTerms::default_learning_rate")]
    pub learning_rate: f64,
    /// Samples per step of the short trainings, so that they have enough steps
    #[serde(default = "SearchTerms::default_batch_size")]
    pub batch_size: usize,
    /// Share of the candidates that goes on to trainings three times as long
    #[serde(default = "SearchTerms::default_keep")]
    pub keep: f64,
    /// Candidates of a round that are trained from scratch and play
    #[serde(default = "SearchTerms::default_finalists")]
    pub finalists: usize,
    /// Share of all games, and of the openings, that is kept for the last comparison, of the winner and the first set;
    /// the games are neither trained on nor part of any comparison before
    #[serde(default = "SearchTerms::default_final", rename = "final")]
    pub kept: f64,
}

impl SearchTerms {
    const fn default_samples() -> u64 {
        400_000
    }

    /// With 0.0001 new blocks hardly learn; with 0.001 and more the incumbent's rows lose more than a candidate gains,
    /// and candidates of many features seem worse than they are: two king buckets, which have 3% less loss in the end,
    /// 2% more after 400,000 samples, instead of 0.7%.
    const fn default_learning_rate() -> f64 {
        0.0003
    }

    const fn default_batch_size() -> usize {
        2048
    }

    const fn default_keep() -> f64 {
        0.333
    }

    const fn default_finalists() -> usize {
        3
    }

    const fn default_final() -> f64 {
        0.1
    }

    /// How many of so many candidates go on.
    pub(super) fn left_of(&self, candidates: usize) -> usize {
        let share = (self.keep * candidates as f64).floor() as usize;
        share.max(self.finalists).min(candidates)
    }

    /// Samples of each short training of a round, with the number of candidates that learn from so many.
    pub(super) fn liftings(&self, candidates: usize) -> Vec<(u64, usize)> {
        let mut liftings = Vec::new();
        let mut left = candidates;
        let mut samples = self.samples;
        while left > 0 {
            liftings.push((samples, left));
            left = self.left_of(left);
            samples = samples.saturating_mul(3);
            if left <= self.finalists {
                break;
            }
        }
        liftings
    }
}

impl Search {
    /// Reads the table, which stands at `place`.
    pub(in crate::experiment) fn read(table: &Value, place: Spanned<()>) -> Result<Search, ReadError> {
        let mut parts = TableParts::new(table, "search")?;
        let terms = parts.part();
        let limits = parts.part();
        let candidates = parts.part();
        // A key that does not exist is named before one that is missing.
        parts.finish()?;
        Ok(Search { candidates: candidates?, limits: limits?, terms: terms?, place })
    }

    /// The sets to try instead of an incumbent, given as the command line takes it. Without findings, before any
    /// training, no features are selected, and layouts are some that might be merged.
    ///
    /// # Errors
    /// When a definition has a mistake.
    pub(super) fn candidates(
        &self,
        base: &Experiment,
        incumbent: &str,
        findings: Option<&NetworkFindings>,
    ) -> Result<Vec<Candidate>, ExperimentError> {
        let (keys, findings) = match findings {
            Some(findings) => (self.candidates.clone(), findings.clone()),
            None => self.candidates.before_training(),
        };
        let seed = base.seeds.first().copied().unwrap_or_default();
        candidates(incumbent, &keys, seed, &|written| base.set_request(written), &findings)
            .map_err(|error| self.mistake(base, error.message))
    }

    /// A mistake in the table.
    pub(super) fn mistake(&self, base: &Experiment, message: String) -> ExperimentError {
        ExperimentError::Spec { at: base.location_of(&self.place), message }
    }

    /// Samples of the training with rows for every king square, from which layouts are merged; 0 without such layouts.
    pub(super) fn merging_samples(&self) -> u64 {
        if self.candidates.merged().is_empty() { 0 } else { self.terms.samples.saturating_mul(3) }
    }

    /// The openings that are kept for the last comparison, or the others.
    pub(in crate::experiment) const fn book_part(&self, is_kept: bool) -> BookPart {
        BookPart { share: self.terms.kept, is_kept }
    }

    /// The settings of a short training of a row's set.
    pub(super) fn lifting_settings(&self, row: &ComparisonRow, samples: u64) -> TrainSettings {
        let SearchTerms { learning_rate, batch_size, .. } = self.terms;
        let schedule = LearningRateSchedule::Cosine;
        let optimisation = Optimisation {
            schedule,
            final_share: 0.1,
            warm_up: 0,
            average_from: Some(0.5),
            average_every: 5,
            average_decay: None,
            ..row.settings.optimisation
        };
        TrainSettings {
            epochs: 1,
            epoch_samples: Some(samples),
            batch_size,
            learning_rate,
            optimisation,
            ..row.settings.clone()
        }
    }
}

/// Checks the table's numbers, and that the rest of the experiment is what a search needs. `shared`: the settings of
/// `[train]`; `seed` draws what candidates are drawn by.
pub(in crate::experiment) fn check_search(
    search: &Search,
    shared: &TrainSettings,
    rows: &[ComparisonRow],
    matches: Option<&MatchMeasure>,
    has_sweep: bool,
    seed: Seed,
) -> Result<(), SettingError> {
    check_numbers(search)?;
    search.limits.check()?;
    search.candidates.check(seed)?;
    let problem = |message: String| Err(SettingError::new("", message));
    if has_sweep {
        return problem("[search] and [sweep] cannot stand together: a search compares rows of one setting".into());
    }
    let Some((measure, Some(_))) = matches.map(|measure| (measure, measure.terms.equal_cost)) else {
        let message = "a search is decided by matches at equal cost: write [match] with equal_cost = 1000 (nodes per \
                       move of the incumbent)";
        return problem(message.into());
    };
    let unused = MatchTerms {
        equal_cost: None,
        cost_weight: None,
        half_width: None,
        shard_pairs: None,
        ..measure.terms.clone()
    };
    if unused != MatchTerms::default() || measure.choice != NetworkChoice::default() {
        let message = "in a search every set plays the incumbent with all seeds, at equal cost: leave reference, \
                       reference_method, nodes, cost, sets, methods and seeds out of [match]";
        return problem(message.into());
    }
    if shared.validation - search.terms.kept <= 0.0 {
        let message = "a search compares losses on validation games, besides those that final keeps: give [train] \
                       validation above 0, as validation = 0.1";
        return problem(message.into());
    }
    if search.candidates == CandidateKeys::default() {
        return problem("nothing to try: list blocks to add, as in blocks = [\"axis-h\", \"mobility-bitset\"]".into());
    }
    for row in rows {
        let label = &row.label;
        if (row.method, row.second.map(|second| second.method)) != (rows[0].method, rows[0].second.map(|s| s.method)) {
            return problem(format!("a search has one method, but {label} has another than {}", rows[0].label));
        }
        if row.own != OwnFigures::default() {
            return problem(format!("{label} has own figures of its cost, which a search has not for its candidates"));
        }
        if row.settings.shape_options.bucket_rule.expression().is_some() {
            let message = "goes by an expression, which means another rule on another board or without its tables";
            return problem(format!("bucket_rule of {label} {message}: a search takes stockfish or cpw"));
        }
        let by_rows = [
            ("select", !search.candidates.select.is_empty()),
            ("a merged layout", !search.candidates.merged().is_empty()),
        ];
        if let Some((what, _)) = by_rows.iter().find(|(_, is_asked)| row.settings.compact_dead && *is_asked) {
            return problem(format!("{what} needs the rows of all features, but {label} has compact_dead = true"));
        }
        if row.start.is_some() {
            return problem(format!("{label} begins with a network: rows of a search begin with random weights"));
        }
        let of_split = |settings: &TrainSettings| (settings.validation, settings.split_seed);
        if of_split(&row.settings) != of_split(shared) {
            return problem(format!("{label} has other validation games than [train]: a search compares on the same"));
        }
        let short = search.lifting_settings(row, search.terms.samples);
        short.validate(&[row.method], &|_| false).map_err(|error| match error {
            TrainError::Setting(error) => SettingError::new("", format!("a short training of {label}: {error}")),
            other => SettingError::new("", other.to_string()),
        })?;
    }
    Ok(())
}

fn check_numbers(search: &Search) -> Result<(), SettingError> {
    let SearchTerms { hours, rounds, samples, learning_rate, batch_size, keep, finalists, kept } = &search.terms;
    check_all(&[
        ("hours", hours.is_finite() && *hours > 0.0, "hours must be above 0"),
        ("rounds", *rounds != Some(0), "rounds must be at least 1"),
        ("samples", *samples > 0, "samples must be at least 1"),
        ("learning_rate", learning_rate.is_finite() && *learning_rate > 0.0, "learning_rate must be above 0"),
        ("batch_size", *batch_size > 0, "batch_size must be at least 1"),
        ("keep", *keep > 0.0 && *keep < 1.0, "keep must lie between 0 and 1: the share that goes on"),
        ("finalists", *finalists > 0, "finalists must be at least 1"),
        (
            "final",
            *kept > 0.0 && *kept < 0.5,
            "final must lie between 0 and 0.5: the share of games that is kept for the last comparison",
        ),
    ])
}
