//! An executor that only counts its calls.

use std::ops::Range;

use serde_json::Value;

use super::steps::NetworkMeasure;
use super::*;
use crate::data::{ScoreUnit, content_hash};
use crate::features::{EncoderKind, FeatureSet};
use crate::generate::GenerateGoal;
use crate::json::to_value;
use crate::measure::{ScreenOptions, SpeedOptions};
use crate::pipeline::WeightedInput;
use crate::pipeline::generation::{BookSpec, GenerateSettings};
use crate::play::{BookPart, Pairs};
use crate::record::{
    ActivityRecord, CostRatio, EqualSpeedRecord, ErrorRecord, GeneratedGames, LayerActivity, LossFunction, LossSums,
    Machine, MatchRecord, MoveCounts, NetworkRecord, ScreenRecord, ScreenedCosts, ShardRecord, SpeedEntry, SpeedRatio,
    SpeedRecord, SpeedSetup, Timestamp, UpdatesRecord, ValidationLosses, ValidationRecord, WidthSpeed,
    write_checked_json,
};
use crate::train::{TrainConfig, TrainError, TrainOutcome, TrainSettings};
use crate::units::Seed;

/// Returns made-up records, and counts how often each is requested.
pub struct FakeExecutor {
    pub calls: SortedMap<String, u32>,
    /// The folder of the run that each training begins with, without its key.
    pub starts: SortedMap<String, String>,
    /// Fails after this many calls, like a process that is killed.
    pub calls_left: Option<u32>,
    /// The name of a call that fails.
    pub fails: Option<String>,
    /// Part of the sets whose trainings diverge, and their seed.
    pub diverges: Option<(&'static str, Seed)>,
    /// Whether every path is a set. All paths are then the same set.
    pub any_set: bool,
    /// Digest of the search.
    pub search: String,
    /// The width of equal speed.
    pub found: usize,
    /// Relative speed of the network trained at it.
    pub trained: f64,
    /// What trainings make.
    pub network: String,
    /// Whether every definition is a set.
    pub any_definition: bool,
    /// Validation games.
    pub games: u32,
    /// A part of a set's name and of its definition, and by what it multiplies the loss. A network of lower loss wins.
    pub merits: Vec<([&'static str; 2], f64)>,
}

impl Default for FakeExecutor {
    fn default() -> Self {
        FakeExecutor {
            calls: SortedMap::new(),
            starts: SortedMap::new(),
            calls_left: None,
            fails: None,
            diverges: None,
            any_set: false,
            search: String::new(),
            found: 32,
            trained: 1.01,
            network: String::new(),
            any_definition: false,
            games: 4,
            merits: Vec::new(),
        }
    }
}

impl FakeExecutor {
    fn call(&mut self, name: String) -> Result<(), StepError> {
        match &mut self.calls_left {
            Some(0) => return Err("killed".into()),
            Some(calls) => *calls -= 1,
            None => {}
        }
        if self.fails.as_ref() == Some(&name) {
            return Err("failed".into());
        }
        *self.calls.get_or_default(name) += 1;
        Ok(())
    }

    /// The loss of a set, as a share of that of a set without merits.
    fn loss_of(&self, set: &str) -> f64 {
        let has = |parts: &[&str; 2]| parts.iter().any(|part| set.contains(part));
        self.merits.iter().filter(|(parts, _)| has(parts)).map(|(_, factor)| factor).product()
    }

    fn pairs(&self, names: &[String; 2]) -> Pairs {
        let [own, reference] = names.each_ref().map(|name| self.loss_of(name));
        match own / reference {
            _ if self.merits.is_empty() => Pairs::from_counts([1, 2, 3, 2, 1]),
            ratio if ratio < 0.995 => Pairs::from_counts([0, 2, 6, 8, 4]),
            ratio if ratio > 1.005 => Pairs::from_counts([4, 8, 6, 2, 0]),
            _ => Pairs::from_counts([2, 4, 8, 4, 2]),
        }
    }
}

fn identity() -> crate::features::Identity {
    serde_json::from_value(serde_json::json!("0".repeat(64))).expect("an identity is a text")
}

/// The name of the run's folder.
pub fn run_name(network: &Path) -> String {
    let folder = network.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

impl Executor for FakeExecutor {
    fn resolve_set(&self, request: &str) -> Result<ResolvedSet, StepError> {
        if self.any_set && request.ends_with(".toml") {
            let definition = "own".into();
            let encoder = EncoderKind::Interpreter;
            return Ok(ResolvedSet { name: "own".into(), about: None, identity: identity(), encoder, definition });
        }
        if !self.any_definition && !["piece", "compact", "king-piece"].contains(&request) {
            return Err(format!("no set `{request}`").into());
        }
        let about = Some(format!("about {request}"));
        let encoder = EncoderKind::Interpreter;
        Ok(ResolvedSet { name: request.into(), about, identity: identity(), encoder, definition: request.into() })
    }

    fn check_trainer(&self, _settings: &TrainSettings) -> Result<(), StepError> {
        Ok(())
    }

    fn prepare_data(&mut self, request: &DataRequest) -> Result<PreparedData, StepError> {
        let first = request.inputs[0].origin.path();
        let content = |input: &WeightedInput| {
            std::fs::read_to_string(input.origin.path()).map(|games| format!("{games}{}", input.weight))
        };
        let games = request.inputs.iter().map(content).collect::<Result<String, _>>()?;
        let path = first.with_extension("fsd");
        let hash = format!("{games}{:?}", request.options);
        Ok(PreparedData { path, hash, score_unit: request.inputs[0].unit.unwrap_or(ScoreUnit::Centipawns) })
    }

    fn starting_network(&mut self, config: &TrainConfig, path: Option<&Path>) -> Result<LoopStart, StepError> {
        if let Some(path) = path {
            self.call(format!("start {}", config.set))?;
            std::fs::write(path, format!("start of {}", config.set))?;
        }
        Ok(LoopStart { set: config.set.clone(), has_shape: config.settings.shape_options.psqt })
    }

    fn generate(
        &mut self,
        request: &GenerationRequest<'_>,
        _monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<GeneratedGames>, StepError> {
        let folder = run_name(request.out);
        self.call(format!("games of {folder} by {}", std::fs::read_to_string(request.network)?))?;
        let GenerateGoal::Games(games) = request.goal else { return Err("games are asked for".into()) };
        let GenerateSettings { seed, book, random_plies, opening_bound, .. } = request.settings;
        let source = book.as_ref().and_then(BookSpec::source);
        let text = format!("{games} games, {seed:?}, {source:?}, {random_plies:?}, within {opening_bound}");
        std::fs::write(request.out, text)?;
        Ok(Some(GeneratedGames {
            games: games.into(),
            positions: 60 * u64::from(games),
            plies: 70 * u64::from(games),
            results: SortedMap::new(),
            hash: content_hash(request.out)?,
            seconds: 0.0,
        }))
    }

    fn train(
        &mut self,
        request: &TrainRequest<'_>,
        monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<TrainOutcome>, StepError> {
        let config = request.config;
        let name = format!("train {} {:?} {}", config.set, config.method, config.seed.0);
        self.call(name.clone())?;
        if let Some(start) = &config.start {
            let folder = run_name(start);
            self.starts.insert(name, folder.rsplit_once('-').map_or("", |(name, _)| name).to_owned());
        }
        if self.diverges.is_some_and(|(part, seed)| config.set.contains(part) && config.seed == seed) {
            let learning_rate = config.settings.learning_rate;
            return Err(TrainError::NotFinite { step: 7, cause: "the loss is NaN".into(), learning_rate }.into());
        }
        let metrics = EpochMetrics {
            epoch: 1,
            step: 10,
            samples: 160,
            learning_rate: config.settings.learning_rate,
            train_loss: 0.1,
            validation_loss: 0.1 / config.seed.0 as f64,
            validation_accuracy: None,
            second: None,
            weights: Vec::new(),
            neurons: None,
            samples_per_second: Some(1.0),
            seconds: 1.0,
        };
        monitor.epoch(&metrics, config.settings.epochs);
        if monitor.stop_requested() {
            return Ok(None);
        }
        let outcome = TrainOutcome {
            config: config.clone(),
            name: config.set.clone(),
            identity: identity(),
            gpu: None,
            num_features: 768,
            parameters: 1_000,
            trained_parameters: 900,
            training_samples: 160,
            distinct_samples: None,
            validation_samples: 20,
            best_epoch: 1,
            validation_loss: metrics.validation_loss,
            epochs: vec![metrics],
            averaged: None,
            baseline_loss: 0.5,
            seconds: 2.0,
            network: PathBuf::from("network.safetensors"),
            weights: PathBuf::from("best.safetensors"),
            last: PathBuf::from("last.safetensors"),
            checkpoint: PathBuf::from("checkpoint.safetensors"),
        };
        write_checked_json(&request.folder.join("config.json"), config)?;
        std::fs::write(
            request.folder.join("best.safetensors"),
            format!("{} {}", config.seed.0, config.settings.epochs),
        )?;
        std::fs::write(request.folder.join("network.safetensors"), &self.network)?;
        // Last, as a training does: other workers find the run finished.
        write_checked_json(&request.folder.join("outcome.json"), &outcome)?;
        Ok(Some(outcome))
    }

    fn validation(&mut self, request: &TrainRequest<'_>) -> Result<ValidationRecord, StepError> {
        let seed = request.config.seed.0;
        self.call(format!("validation {}", run_name(&request.folder.join("network.safetensors"))))?;
        let factor = self.loss_of(&request.config.set) as f32;
        let sums =
            |game: u32| LossSums { game, samples: 10, loss: factor * (game + 1) as f32 / seed as f32, preferred: 0 };
        let losses = ValidationLosses { games: (0..self.games).map(sums).collect(), ..ValidationLosses::default() };
        Ok(ValidationRecord::new(LossFunction::Eval(EvalLoss::default()), losses))
    }

    fn screen(
        &mut self,
        sets: &[&str],
        _data: &Path,
        limits: ScreenOptions,
        l1: usize,
    ) -> Result<Vec<ScreenRecord>, StepError> {
        self.call(format!("screen {}", sets.join(" ")))?;
        let record = |set: &&str| {
            let features = u64::from(FeatureSet::resolve(set)?.num_features());
            let most = limits.max_features.filter(|most| features > *most);
            Ok(ScreenRecord {
                identity: None,
                features,
                bytes: 2 * features * l1 as u64,
                active: Some(20.0),
                rows_a_move: Some(4.0),
                split: None,
                refused: most.map(|most| format!("{features} features, more than {most}")),
                costs: None,
            })
        };
        sets.iter().map(record).collect()
    }

    fn screened_costs(&mut self, sets: &[&str], _data: &Path) -> Result<Vec<ScreenedCosts>, StepError> {
        self.call(format!("screened cost {}", sets.join(" ")))?;
        Ok(vec![ScreenedCosts { ns_a_move: 100.0, dead_share: 0.0, lossless: "yes".into() }; sets.len()])
    }

    /// Ranks are buckets, as far as there are enough.
    fn king_buckets(&mut self, request: &NetRequest, counts: &[usize]) -> Result<Vec<Vec<i32>>, StepError> {
        self.call(format!("king buckets {}", run_name(&request.network)))?;
        let by_rank = |count: &usize| (0..64).map(|square| (square / 8).min(*count as i32 - 1)).collect();
        Ok(counts.iter().map(by_rank).collect())
    }

    fn row_importance(&mut self, request: &NetRequest) -> Result<Vec<f64>, StepError> {
        self.call(format!("row importance {}", run_name(&request.network)))?;
        let set = FeatureSet::resolve(&request.config.set)?;
        Ok((0..set.num_features()).map(f64::from).collect())
    }

    fn updates(&mut self, set: &str, _data: &Path, _games: Option<u64>) -> Result<UpdatesRecord, StepError> {
        self.call(format!("updates {set}"))?;
        Ok(UpdatesRecord {
            name: set.into(),
            identity: identity(),
            num_features: 768,
            games: 1,
            positions: 1,
            moves: 1,
            active_mean: 1.0,
            active_max: 1,
            density: 0.1,
            mover: MoveCounts::default(),
            other: MoveCounts::default(),
            mean: MoveCounts::default(),
            legal: None,
        })
    }

    fn measure_network(&mut self, measure: &NetworkMeasure, request: &NetRequest) -> Result<Value, StepError> {
        self.call(format!("{} {}", measure.name, run_name(&request.network)))?;
        let name = String::new();
        let identity = identity();
        let record = match measure.name {
            ActivityRecord::KIND => {
                let layer =
                    LayerActivity { layer: "l1".into(), neurons: 8, active: 0.5, saturated: 0.1, never_active: 0 };
                to_value(&ActivityRecord { name, identity, positions: 1, layers: vec![layer], buckets: vec![] })
            }
            ErrorRecord::KIND => to_value(&ErrorRecord {
                name,
                identity,
                positions: 1,
                mean: 0.001,
                p99: 0.002,
                max: 0.003,
                within_tolerance: 1.0,
                tolerance: 0.03,
                accumulator_overflows: 0,
            }),
            other => return Err(format!("no made-up record of {other}").into()),
        };
        Ok(record?)
    }

    fn speed(
        &mut self,
        request: &NetRequest,
        beside: Option<&Path>,
        _timing: SpeedOptions,
    ) -> Result<SpeedRecord, StepError> {
        let beside = beside.map(|network| format!(" beside {}", run_name(network))).unwrap_or_default();
        self.call(format!("speed {}{beside}", run_name(&request.network)))?;
        let strategy = "incremental".into();
        let back_end = "scalar".into();
        let entry =
            SpeedEntry { strategy, back_end, evaluations_per_second: 1e6, interval: 1e3, ..SpeedEntry::default() };
        let entries = vec![entry];
        let name = String::new();
        let identity = identity();
        let network = None;
        let digest = String::new();
        let positions = 1;
        let best = None;
        let known_lines = Vec::new();
        let ft_permuted = None;
        let beside = None;
        let machine = None;
        let encoder = None;
        Ok(SpeedRecord {
            name,
            identity,
            encoder,
            network,
            digest,
            positions,
            entries,
            best,
            known_lines,
            ft_permuted,
            beside,
            machine,
        })
    }

    /// As if compact were as fast as piece at half the width.
    fn equal_speed(&mut self, request: &EqualSpeedRequest<'_>) -> Result<EqualSpeedRecord, StepError> {
        let [network, reference] = [request.network, request.reference].map(run_name);
        self.call(format!("equal speed {network} {reference} {}", request.is_search))?;
        let (l1, ratio) = if request.is_search { (self.found, 1.01) } else { (64, self.trained) };
        let speed = SpeedRatio { ratio, low: ratio - 0.01, high: ratio + 0.01 };
        let setup = || SpeedSetup { strategy: "eager".into(), back_end: "scalar".into() };
        Ok(EqualSpeedRecord {
            l1,
            speed,
            tried: vec![WidthSpeed { l1, speed }],
            tolerance: request.options.tolerance,
            reference_l1: 8,
            own_features_ns: request.own.features_ns,
            own_scale: request.own.scale.or(request.own.node_cost),
            strategies: [setup(), setup()],
            positions: request.options.positions,
            rounds: request.options.repetitions,
            machine: Machine { recorded: Timestamp::from_unix(0), ..Machine::current() },
        })
    }

    fn match_setup(
        &self,
        openings: Option<&Path>,
        _plies: Option<u16>,
        part: Option<BookPart>,
    ) -> Result<MatchSetup, StepError> {
        let mut book = openings.map_or_else(|| Ok("shipped".to_owned()), std::fs::read_to_string)?;
        if let Some(part) = part.filter(|_| !book.is_empty()) {
            book += if part.is_kept { ", kept" } else { ", others" };
        }
        if book.is_empty() {
            Err("no playable opening".into())
        } else {
            Ok(MatchSetup { openings: book, count: 2_000, search: self.search.clone() })
        }
    }

    fn match_cost(
        &mut self,
        request: &MatchRequest<'_>,
        _monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<CostRatio>, StepError> {
        self.call(format!("cost {}", run_name(&request.networks[0])))?;
        Ok(Some(CostRatio { rounds: 15, own_node_costs: None, ..CostRatio::of_figures([1.0, 1.0]) }))
    }

    fn play_shard(
        &mut self,
        request: &MatchRequest<'_>,
        pairs: Range<u64>,
        _monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<ShardRecord>, StepError> {
        let network = run_name(&request.networks[0]);
        self.call(format!("shard {network} at {} {}-{}", request.kind.name(), pairs.start, pairs.end))?;
        let half_points = pairs.clone().map(|pair| 1 + (pair % 3) as u8).collect();
        Ok(Some(ShardRecord { first: pairs.start, half_points }))
    }

    fn play(
        &mut self,
        request: &MatchRequest<'_>,
        monitor: &dyn ExperimentMonitor,
    ) -> Result<Option<MatchRecord>, StepError> {
        let names = request.networks.each_ref().map(|network| run_name(network));
        self.call(format!("match {} against {} at {}", names[0], names[1], request.kind.name()))?;
        monitor.games(&MatchProgress { games: 1, total: 2, first: Pairs::default() });
        if monitor.stop_requested() {
            return Ok(None);
        }
        if request.folder.is_dir() {
            std::fs::write(request.folder.join("games.pgn"), "")?;
        }
        Ok(Some(MatchRecord { pairs: self.pairs(&request.names), ..matches::record(request) }))
    }
}
