//! The table `[loop]`: its keys, and their checks.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml::Spanned;

use crate::alpha_beta::search_digest;
use crate::data::{DataFiles, Method, content_hash};
use crate::experiment::ExperimentError;
use crate::experiment::checks::NetworkChoice;
use crate::experiment::executor::Executor;
use crate::experiment::match_settings::{MatchMeasure, MatchTerms};
use crate::experiment::runner_options::{RunnerOptions, Share};
use crate::experiment::spec::{ComparisonRow, Experiment, RowStart};
use crate::experiment::steps::match_setup;
use crate::experiment::store::ResultKey;
use crate::features::FeatureSet;
use crate::generate::GenerateGoal;
use crate::output::file_lock::FileLock;
use crate::pipeline::generation::{BookSource, BookSpec, GenerateAdjudication, GenerateSettings};
use crate::pipeline::uci::SearchLimit;
use crate::play::{EloModel, MatchOptions, Sprt};
use crate::record::{LEARNING_LOOP, LoopRecord, read_json};
use crate::settings::{SettingError, check_all};
use crate::train::TrainConfig;
use crate::units::Seed;

/// A learning loop: the network plays games, a new one learns from them and replaces it if it wins
#[derive(Clone, Debug, PartialEq)]
pub struct LearningLoop {
    pub terms: LoopTerms,
    /// Where the table stands.
    pub(super) place: Spanned<()>,
    /// The book of the games as written.
    pub(super) openings: Option<Spanned<String>>,
}

/// A learning loop: the network plays games against itself, a new one learns from them, and replaces it if it wins the
/// gate, a sequential test under the conditions of [match] at equal nodes; pairs there are the most
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopTerms {
    /// Most iterations [default: until the hours are over]
    #[serde(default)]
    pub iterations: Option<u32>,
    /// No iteration begins once the finished steps have taken so many hours [default: until the iterations are done]
    #[serde(default)]
    pub hours: Option<f64>,
    /// Nodes per move of the games to learn from
    #[serde(default)]
    pub nodes: Option<u64>,
    /// Instead of nodes: no search begins another depth after so many
    #[serde(default)]
    pub soft_nodes: Option<u64>,
    /// Games per iteration
    #[serde(default)]
    pub games: Option<u32>,
    /// Instead of games: play until so many positions were searched
    #[serde(default)]
    pub positions: Option<u64>,
    /// Book of the games to learn from [default: random moves from the initial position]
    #[serde(default)]
    pub openings: Option<PathBuf>,
    /// Instead of a book: random moves from the 960 start positions of Chess960
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chess960: bool,
    /// Instead of a book: random moves from the 921,600 start positions of double Chess960
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub double_chess960: bool,
    /// Moves taken from each game of a PGN book [default: all]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening_plies: Option<u16>,
    /// Least and largest number of random moves after the opening [default: [8, 9], with a book [1, 4]]
    #[serde(default)]
    pub random_plies: Option<[u16; 2]>,
    /// Drop a game whose opening the player to move scores beyond ± this, in centipawns
    #[serde(default = "LoopTerms::default_opening_bound", skip_serializing_if = "LoopTerms::is_default_bound")]
    pub opening_bound: u16,
    /// Train on the last iterations that have so many positions together [default: on all]
    #[serde(default)]
    pub window: Option<u64>,
    /// Begin each training with the network that was accepted last, not with random weights
    #[serde(default)]
    pub warm_start: bool,
    /// The gate's null hypothesis, in Elo: a network that is no better than this is not accepted
    #[serde(default)]
    pub elo0: f64,
    /// The gate's alternative: a network that is so much better is taken
    #[serde(default = "LoopTerms::default_elo1")]
    pub elo1: f64,
    /// Unit of elo0 and elo1: normalised or logistic Elo
    #[serde(default)]
    pub model: EloModel,
}

impl LoopTerms {
    /// Game pairs of a gate, at most; as many openings come with fsbench.
    pub(in crate::experiment) const DEFAULT_PAIRS: u64 = 2_000;

    /// Random moves after an opening of a book: the loop's searches are exact, so without them an opening would give the
    /// same game in every iteration whose player is the same.
    const AFTER_BOOK: (u16, u16) = (1, 4);

    const fn default_opening_bound() -> u16 {
        GenerateSettings::OPENING_BOUND
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    const fn is_default_bound(bound: &u16) -> bool {
        *bound == GenerateSettings::OPENING_BOUND
    }

    const fn default_elo1() -> f64 {
        10.0
    }

    /// The limit of the searches of games to learn from.
    fn limit(&self) -> SearchLimit {
        match (self.nodes, self.soft_nodes) {
            (None, Some(nodes)) => SearchLimit::SoftNodes(nodes),
            (nodes, _) => SearchLimit::Nodes(nodes.unwrap_or_default()),
        }
    }

    /// The name of an iteration's file of games. Of Chess960, a binpack lacks castling.
    pub(super) const fn games_file(&self) -> &'static str {
        if self.chess960 || self.double_chess960 { "games.vf" } else { "games.binpack" }
    }

    pub(super) fn goal(&self) -> GenerateGoal {
        match (self.games, self.positions) {
            (None, Some(positions)) => GenerateGoal::Positions(positions),
            (games, _) => GenerateGoal::Games(games.unwrap_or_default()),
        }
    }

    /// The settings of the games to learn from, with a book at this path.
    pub(super) fn settings(&self, seed: Seed, book: Option<PathBuf>) -> GenerateSettings {
        let usual = if book.is_some() { LoopTerms::AFTER_BOOK } else { GenerateSettings::RANDOM_PLIES };
        let start = match (self.chess960, self.double_chess960) {
            (true, _) => Some(BookSource::Chess960),
            (_, true) => Some(BookSource::DoubleChess960),
            _ => None,
        };
        GenerateSettings {
            book: book
                .map(BookSource::File)
                .or(start)
                .map(BookSpec::of)
                .map(|book| BookSpec { plies: self.opening_plies, ..book }),
            random_plies: self.random_plies.map_or(usual, |[least, most]| (least, most)),
            opening_bound: self.opening_bound,
            ..GenerateSettings::new(self.limit(), seed)
        }
    }

    /// The gate's test; its hypotheses are checked when the file is read.
    pub(super) fn sprt(&self) -> Option<Sprt> {
        Sprt::new(self.elo0, self.elo1, self.model).ok()
    }
}

impl LearningLoop {
    /// The table's keys, which stands at `place`.
    pub(in crate::experiment) const fn new(
        terms: LoopTerms,
        place: Spanned<()>,
        openings: Option<Spanned<String>>,
    ) -> LearningLoop {
        LearningLoop { terms, place, openings }
    }

    /// The book of the games to learn from, with the hash of its contents.
    pub(super) fn book(&self, base: &Experiment) -> Result<Option<(PathBuf, String)>, ExperimentError> {
        let Some(written) = &self.openings else { return Ok(None) };
        let path = base.existing(written)?;
        let failed = |error: crate::data::DataError| ExperimentError::Openings {
            at: base.location_of(written),
            message: error.to_string(),
        };
        let hash = content_hash(&path).map_err(failed)?;
        Ok(Some((path, hash)))
    }

    /// The training of the loop's row, without data.
    pub(super) fn config(&self, base: &Experiment) -> Result<TrainConfig, ExperimentError> {
        let row = &base.rows[0];
        let wrong = |message: String| ExperimentError::Set {
            at: base.location_of(&row.set),
            set: row.set.get_ref().clone(),
            message,
        };
        let request = base.set_request(row.set.get_ref()).map_err(|error| wrong(error.to_string()))?;
        let start = match &row.start {
            Some(RowStart::Network(written)) => Some(base.start_path(written)?),
            _ => None,
        };
        let seed = base.seeds.first().copied().unwrap_or_default();
        let config = TrainConfig::new(request, DataFiles::default(), Method::Eval, row.settings.clone());
        Ok(TrainConfig { start, seed, ..config.effective() })
    }

    /// Hash of all settings but those of how long the loop goes on.
    pub(super) fn settings_hash(&self, base: &Experiment) -> Result<String, ExperimentError> {
        let row = &base.rows[0];
        let config = self.config(base)?;
        let start = config.start.as_deref().and_then(|start| content_hash(start).ok());
        let book = self.book(base)?.map(|(_, hash)| hash);
        let random_plies = self.terms.random_plies.or(book.is_some().then_some(LoopTerms::AFTER_BOOK.into()));
        let terms = LoopTerms { iterations: None, hours: None, openings: None, random_plies, ..self.terms.clone() };
        let set = FeatureSet::resolve(&config.set);
        let definition = set.map(|set| set.definition().to_string()).ok();
        let mut settings = TrainConfig { set: row.set.get_ref().clone(), start: None, ..config };
        // Another machine may go on with the loop.
        settings.settings.threads = None;
        let openings = base.openings_path()?.and_then(|openings| content_hash(&openings).ok());
        let matches = base.matches.as_ref().map(|measure| {
            let MatchOptions { opening_plies, adjudication, seed, hash, .. } = &measure.options;
            json!([measure.terms.nodes, measure.options.pairs(), openings, opening_plies, adjudication, seed, hash])
        });
        let samples = base.dataset_options(row, Method::Eval);
        let games = json!([search_digest(), start, book, matches]);
        Ok(ResultKey::of(&json!([terms, settings, definition, samples, games])).to_string())
    }

    /// Locks the loop's folder, and checks what it needs before anything is done.
    pub(in crate::experiment) fn begin(
        &self,
        base: &Experiment,
        executor: &mut dyn Executor,
        options: &RunnerOptions,
    ) -> Result<FileLock, ExperimentError> {
        if options.share != Share::All {
            let at = base.location_of(&self.place);
            let message = "the steps of a loop follow each other, and each takes all cores: one process does them, \
                           `fsbench loop`";
            return Err(ExperimentError::Spec { at, message: message.into() });
        }
        let folder = &options.out;
        let failed = |source| ExperimentError::WorkFolder { path: folder.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = FileLock::of_folder(folder)?;
        self.check(base, executor, folder, options.fresh)?;
        if options.fresh {
            remove_iterations(folder).map_err(failed)?;
        }
        Ok(lock)
    }

    /// Refuses, before anything is done, a start of another set or shape, books without openings, and a folder that
    /// holds another loop. `is_fresh`: that loop is to be replaced.
    pub(super) fn check(
        &self,
        base: &Experiment,
        executor: &mut dyn Executor,
        folder: &Path,
        is_fresh: bool,
    ) -> Result<(), ExperimentError> {
        let settings = self.settings_hash(base)?;
        let record = folder.join(LEARNING_LOOP);
        let kept: Option<LoopRecord> = (record.exists() && !is_fresh).then(|| read_json(&record)).transpose()?;
        if kept.is_some_and(|kept| kept.settings != settings && kept.steps() > 0) {
            let at = base.location_of(&self.place);
            let message = format!(
                "{} holds a loop with other settings; give another folder by --out, or replace that loop by --force",
                folder.display()
            );
            return Err(ExperimentError::Spec { at, message });
        }
        match_setup(base, executor, base.openings_path()?.as_deref())?;
        if let (Some((book, _)), Some(written)) = (self.book(base)?, &self.openings) {
            let wrong = |error: crate::experiment::StepError| ExperimentError::Openings {
                at: base.location_of(written),
                message: error.to_string(),
            };
            executor.match_setup(Some(&book), self.terms.opening_plies, None).map_err(wrong)?;
        }
        let config = self.config(base)?;
        executor.starting_network(&config, None).map(drop).map_err(|error| {
            let row = &base.rows[0];
            let at = base.location_of(row.start.as_ref().map_or(&row.set, RowStart::written));
            ExperimentError::Spec { at, message: error.to_string() }
        })
    }
}

/// Takes the folder's record in the place of a loop's own that is not as far: a loop that goes on looks at its finished
/// steps first, and until then that record stays.
pub(in crate::experiment) fn keep_further_record(own: &mut LoopRecord, folder: &Path) {
    if let Ok(kept) = read_json::<LoopRecord>(&folder.join(LEARNING_LOOP))
        && kept.settings == own.settings
        && kept.steps() > own.steps()
    {
        *own = kept;
    }
}

/// Removes the iterations of the loop that another one replaces: its journals belong to no games of the new one.
fn remove_iterations(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("iteration-") && entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// The tables that a loop does not go with, and whether the file has them.
pub(in crate::experiment) type OtherTables<'a> = [(&'a str, bool)];

/// Checks the table's numbers, and that the rest of the experiment is what a loop needs.
pub(in crate::experiment) fn check_loop(
    terms: &LoopTerms,
    rows: &[ComparisonRow],
    seeds: &[Seed],
    matches: Option<&MatchMeasure>,
    others: &OtherTables<'_>,
) -> Result<(), SettingError> {
    check_numbers(terms)?;
    let problem = |message: String| Err(SettingError::new("", message));
    if let Some((table, _)) = others.iter().find(|(_, is_there)| *is_there) {
        return problem(format!("[loop] and {table} cannot stand together: a loop makes its own data, and tests them"));
    }
    let ([row], [_]) = (rows, seeds) else {
        return problem("a loop has one row with one set, and one seed".into());
    };
    if row.method != Method::Eval || row.second.is_some() {
        return problem("a loop learns by eval alone: give method = \"eval\"".into());
    }
    let Some(measure) = matches else {
        return problem("a loop needs the gate's conditions: write [match] with nodes = 2000".into());
    };
    let MatchMeasure { terms: conditions, choice, options } = measure;
    let plain = MatchTerms { nodes: conditions.nodes, ..MatchTerms::default() };
    if conditions.nodes.is_none() || *conditions != plain || *choice != NetworkChoice::default() {
        return problem("the gate is a match at equal nodes: of the terms of [match], give nodes alone".into());
    }
    check_gate(terms, options.pairs())
}

/// Refuses a gate that can accept no network, whatever happens in its games.
fn check_gate(terms: &LoopTerms, most: u64) -> Result<(), SettingError> {
    let test =
        Sprt::new(terms.elo0, terms.elo1, terms.model).map_err(|error| SettingError::new("elo1", error.to_string()))?;
    if test.fewest_pairs(most).is_some() {
        return Ok(());
    }
    let needed = match test.fewest_pairs(MatchOptions::MOST_PAIRS) {
        Some(pairs) => format!("at least {pairs} pairs ({} games)", 2 * pairs),
        None => format!("more than {} pairs", MatchOptions::MOST_PAIRS),
    };
    Err(SettingError::new(
        "elo1",
        format!(
            "the gate can accept no network: to tell {} from {} Elo takes {needed} even if they all end alike, and \
             [match] has {most} pairs; give more pairs, or hypotheses that lie farther apart",
            terms.elo1, terms.elo0
        ),
    ))
}

fn check_numbers(terms: &LoopTerms) -> Result<(), SettingError> {
    let LoopTerms { iterations, hours, nodes, soft_nodes, games, positions, random_plies, window, .. } = terms;
    let is_one = |one: bool, other: bool| one != other;
    let most_plies = GenerateAdjudication::default().max_plies;
    let starts = [terms.openings.is_some(), terms.chess960, terms.double_chess960];
    check_all(&[
        (
            "",
            iterations.is_some() || hours.is_some(),
            "give iterations = 20, hours = 8 or both: one of them ends the loop",
        ),
        ("iterations", *iterations != Some(0), "iterations must be at least 1"),
        ("hours", hours.is_none_or(|hours| hours.is_finite() && hours > 0.0), "hours must be above 0"),
        (
            "",
            is_one(nodes.is_some(), soft_nodes.is_some()),
            "give nodes = 5000 or soft_nodes = 5000: the searches of the games to learn from",
        ),
        ("nodes", *nodes != Some(0), "nodes must be at least 1"),
        ("soft_nodes", *soft_nodes != Some(0), "soft_nodes must be at least 1"),
        (
            "",
            is_one(games.is_some(), positions.is_some()),
            "give games = 2000 or positions = 200_000: how much an iteration plays",
        ),
        ("games", *games != Some(0), "games must be at least 1"),
        ("positions", *positions != Some(0), "positions must be at least 1"),
        (
            "",
            starts.iter().filter(|given| **given).count() <= 1,
            "of openings, chess960 and double_chess960, give one: they say where the games to learn from begin",
        ),
        (
            "random_plies",
            random_plies.is_none_or(|[least, most]| least <= most),
            "random_plies needs the smaller number first, as in [8, 9]",
        ),
        (
            "random_plies",
            random_plies.is_none_or(|[_, most]| most <= most_plies),
            "random_plies must not exceed 300, after which a game is a draw",
        ),
        (
            "random_plies",
            terms.double_chess960 || random_plies.is_none_or(|[_, most]| most > 0),
            "without random moves an opening gives the same game again: random_plies needs a number above 0",
        ),
        (
            "opening_plies",
            terms.opening_plies.is_none() || terms.openings.is_some(),
            "opening_plies has no effect without openings, a PGN book",
        ),
        ("window", *window != Some(0), "window must be at least 1"),
    ])
}
