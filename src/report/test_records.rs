//! Fixed records for the report's tests: seven sets and two methods, from simple formulas.

use crate::features::EncoderKind;
use crate::json::to_value;
use crate::record::{
    ActivityRecord, Adjudication, CostRatio, Environment, EpochRecord, ErrorRecord, FtPermutedSpeed, GameCounts,
    LayerActivity, Machine, MatchConditions, MatchKind, MatchOpenings, MatchPlayer, MatchRecord, MatchResult, Method,
    MoveCounts, NetResult, NetworkRecord, NetworkRecords, OwnFigures, PlannedRow, Results, RunKey, RunRecord,
    SetResult, SpeedBeside, SpeedEntry, SpeedRatio, SpeedRecord, StageSeconds, Study, TimeBreakdown, Timestamp,
    UpdatesRecord, WrongSignRecord,
};
use crate::statistics::pentanomial::Pairs;
use crate::units::Seed;

/// (name, features, active, rows update, rows cache, rows refresh, refreshes, loss)
type SetFacts = (&'static str, u32, f64, f64, f64, f64, f64, f64);
const SETS: [SetFacts; 7] = [
    ("piece", 768, 24.11, 2.31, 2.31, 24.02, 0.0, 0.012_31),
    ("compact", 192, 45.52, 4.10, 4.10, 45.31, 0.0, 0.014_02),
    ("king-piece", 40_960, 22.11, 4.71, 3.22, 21.90, 0.068_2, 0.012_84),
    ("piece-move", 4_864, 61.92, 14.21, 14.21, 61.01, 0.0, 0.011_71),
    ("relative-king-h", 1_200, 22.11, 3.82, 2.94, 21.90, 0.041_1, 0.012_95),
    ("relative-king-v", 1_200, 22.11, 3.11, 2.60, 21.90, 0.033_7, 0.012_90),
    ("relative-king-hv", 2_250, 22.11, 4.71, 3.22, 21.90, 0.068_2, 0.013_11),
];

/// Results of a finished experiment.
pub(super) fn results() -> Results {
    let seeds = [Seed(1), Seed(2), Seed(3)];
    let mut results = empty();
    for (method, sets) in [(Method::Eval, &SETS[..]), (Method::Pqr, &SETS[..2])] {
        for facts in sets {
            let row = PlannedRow {
                set: facts.0.into(),
                method,
                seeds: seeds.to_vec(),
                definition: None,
                about: (facts.0 == "piece").then(|| "Every piece on its square".into()),
                group: None,
                train: None,
                own: OwnFigures::default(),
                name: None,
                equal_speed: None,
            };
            results.study.rows.push(row);
            for seed in seeds {
                let key = RunKey { set: facts.0.into(), method, seed };
                results.runs.push(run(&key, facts));
                push(&mut results, &key, &activity(&key, facts));
                push(&mut results, &key, &error(&key, facts));
                if method == Method::Eval {
                    push(&mut results, &key, &wrong_sign(&key, facts));
                }
                if seed == Seed(1) && method == Method::Eval {
                    results.speed.push(NetResult { key, record: speed(facts) });
                }
            }
        }
    }
    results.updates = SETS.iter().map(|facts| SetResult { set: facts.0.into(), record: updates(facts) }).collect();
    results
}

/// The first four sets by eval at two widths, as of a sweep. The wider networks have 5% less loss and half the speed.
pub(super) fn results_of_sweep() -> Results {
    let all = results();
    let mut swept = empty();
    for (width, loss, speed) in [(64, 1.0, 1.0), (128, 0.95, 0.5)] {
        for row in all.study.rows.iter().filter(|row| row.method == Method::Eval).take(4) {
            let group = format!("l1 {width}");
            let set = format!("{}, {group}", row.set);
            let name = Some(row.set.clone());
            swept.study.rows.push(PlannedRow { set: set.clone(), name, group: Some(group), ..row.clone() });
            for run in all.runs.iter().filter(|run| run.key.method == Method::Eval && run.key.set == row.set) {
                let key = RunKey { set: set.clone(), ..run.key.clone() };
                swept.runs.push(RunRecord { key, validation_loss: loss * run.validation_loss, ..run.clone() });
            }
            for timed in all.speed.iter().filter(|timed| timed.key.set == row.set) {
                let mut key = timed.key.clone();
                let mut record = timed.record.clone();
                key.set.clone_from(&set);
                record.entries.iter_mut().for_each(|entry| entry.evaluations_per_second *= speed);
                if let Some(SpeedBeside { speed: turns, .. }) = &mut record.beside {
                    (turns.ratio, turns.low, turns.high) = (speed * turns.ratio, speed * turns.low, speed * turns.high);
                }
                swept.speed.push(NetResult { key, record });
            }
        }
    }
    swept
}

/// The same as [`results`] with matches of every set against the first: of all seeds by eval, of none by pqr.
pub(super) fn results_with_matches() -> Results {
    let mut results = results();
    for facts in &SETS[1..] {
        for seed in [Seed(1), Seed(2), Seed(3)] {
            let matches = MatchKind::ALL.map(|kind| match_result(facts, seed, kind));
            results.matches.extend(matches);
        }
    }
    results.environment.seconds.matches = 75.0;
    results.environment.seconds.total += 75.0;
    results
}

fn match_result(&(name, features, _, update, .., loss): &SetFacts, seed: Seed, kind: MatchKind) -> MatchResult {
    let key = RunKey { set: name.into(), method: Method::Eval, seed };
    let lost = (loss * 1_000.0 - 11.0 + 3.0 * deviation(seed, features)).max(0.0) as u64;
    let ratio = 2.31 / update;
    let cost_lost = if kind == MatchKind::EqualCost { update as u64 } else { 0 };
    let nodes = match kind {
        MatchKind::EqualNodes => 300,
        MatchKind::EqualCost => (300.0 * ratio).round() as u64,
    };
    let player = |name: &str, node_limit: u64, nps: f64| MatchPlayer {
        network: name.repeat(3),
        eval_scale: 0.25,
        node_limit,
        moves: 4_000,
        nodes: 4_000 * node_limit,
        seconds: 4_000.0 * node_limit as f64 / nps,
    };
    let pairs = Pairs::from_counts([4 + 2 * lost + cost_lost, 7 + lost, 20, 8, 6]);
    let [wins, losses] = [6 * 2 + 8 + 10, 2 * (4 + 2 * lost + cost_lost) + 7 + lost + 10];
    let conditions = MatchConditions {
        nodes: 300,
        openings: MatchOpenings { name: None, count: 2_000, blake3: "0123456789abcdef".repeat(4), plies: None },
        seed,
        adjudication: Some(Adjudication::default()),
        hash: 16,
        search: "fedcba9876543210".into(),
        half_width: None,
    };
    let machine = Machine {
        cpu: "Test CPU @ 2.0GHz".into(),
        cores: 2,
        back_end: "avx2".into(),
        commit: "0123456789ab".into(),
        node_type: None,
        recorded: Timestamp::from_unix(1_767_225_600),
    };
    let cost = CostRatio {
        nanoseconds_per_node: Some([1_000.0, 1_000.0 / ratio]),
        own_features: [None; 2],
        own_node_costs: None,
        weight: None,
        ratio,
        low: ratio * 0.97,
        high: ratio * 1.03,
        rounds: 15,
        machine: None,
    };
    let record = MatchRecord {
        kind,
        conditions,
        player: player(name, nodes, 1e6 * ratio),
        reference_player: player("piece", 300, 1e6),
        cost: (kind == MatchKind::EqualCost).then_some(cost),
        pairs,
        games: GameCounts { wins, draws: 2 * pairs.total() - wins - losses, losses },
        adjudicated: pairs.total(),
        machine,
    };
    MatchResult { key, reference: "piece".into(), record }
}

/// Results of an experiment without any run.
pub(super) fn empty() -> Results {
    let study = Study {
        name: "sample".into(),
        about: "Seven sets over three seeds".into(),
        data: "games.pgn.zst".into(),
        rows: Vec::new(),
        train: serde_json::json!({ "l1": 64 }),
        published: None,
        scaling: None,
    };
    let environment = Environment {
        recorded: Timestamp::from_unix(1_767_225_600),
        fsbench: "0.1.0".into(),
        commit: "0123456789ab".into(),
        back_end: "avx2".into(),
        cpu: "Test CPU @ 2.0GHz".into(),
        cores: 2,
        os: "linux".into(),
        threads: 2,
        timed_on: None,
        seconds: StageSeconds { data: 4.0, training: 300.0, measures: 61.0, matches: 0.0, total: 365.0 },
    };
    let runs = Vec::new();
    let updates = Vec::new();
    let validation = Vec::new();
    let networks = NetworkRecords::new();
    let speed = Vec::new();
    let equal_speed = Vec::new();
    let matches = Vec::new();
    let none = Results::empty(study, environment);
    Results { runs, updates, validation, networks, speed, equal_speed, matches, ..none }
}

fn push<T: NetworkRecord>(results: &mut Results, key: &RunKey, record: &T) {
    results.networks.push(T::KIND, key.clone(), to_value(record).expect("JSON"));
}

fn identity() -> crate::features::Identity {
    serde_json::from_value(serde_json::json!("0".repeat(64))).expect("an identity is a text")
}

/// A small deviation that depends on seed and set.
fn deviation(seed: Seed, features: u32) -> f64 {
    ((seed.0 * 37 + u64::from(features)) % 11) as f64 / 11.0 - 0.5
}

fn run(key: &RunKey, &(_, features, .., loss): &SetFacts) -> RunRecord {
    let scale = if key.method == Method::Pqr { 40.0 } else { 1.0 };
    let last = scale * (loss + 0.000_3 * deviation(key.seed, features));
    // The largest set learns the samples by heart: from its best epoch on, its loss rises.
    let best = if features > 40_000 { 2 } else { 6 };
    let away = |epoch: u32| 1.0 / f64::from(epoch.min(best).pow(2)) - 1.0 / f64::from(best * best);
    let epochs = (1..=6).map(|epoch| EpochRecord {
        epoch,
        samples: u64::from(epoch) * 400_000,
        learning_rate: 0.001,
        train_loss: last * 0.98 * (1.0 + 0.8 / f64::from(epoch * epoch)),
        validation_loss: last * (1.0 + 0.6 * away(epoch) + 0.01 * f64::from(epoch.saturating_sub(best))),
        validation_accuracy: (key.method == Method::Pqr).then_some(0.6 + f64::from(epoch) / 50.0 - loss),
    });
    let dense = 64 + 128 * 32 + 32 + 33;
    RunRecord {
        key: key.clone(),
        identity: identity(),
        gpu: None,
        num_features: features,
        parameters: u64::from(features) * 64 + dense,
        trained_parameters: Some(u64::from(features * 3 / 4) * 64 + dense),
        training_samples: 400_000,
        distinct_samples: None,
        validation_samples: 20_000,
        best_epoch: best,
        validation_loss: last,
        baseline_loss: scale * 0.05,
        epochs: epochs.collect(),
    }
}

fn updates(&(name, features, active, update, cache, refresh, refreshes, _): &SetFacts) -> UpdatesRecord {
    let mean = MoveCounts {
        added: update / 2.0,
        removed: update / 2.0,
        refreshes,
        rows_update: update,
        rows_refresh: refresh,
        rows_cache: cache,
    };
    UpdatesRecord {
        name: name.into(),
        identity: identity(),
        num_features: features,
        games: 500,
        positions: 40_000,
        moves: 40_000,
        active_mean: active,
        active_max: (active * 1.5) as u64,
        density: active / f64::from(features),
        mover: mean,
        other: mean,
        mean,
        legal: None,
    }
}

fn activity(key: &RunKey, &(name, features, ..): &SetFacts) -> ActivityRecord {
    let layer = LayerActivity {
        layer: "l1".into(),
        neurons: 64,
        active: 0.31 + 0.02 * deviation(key.seed, features),
        saturated: 0.04 + 0.005 * deviation(key.seed, features),
        never_active: (features % 5) as usize,
    };
    ActivityRecord { name: name.into(), identity: identity(), positions: 20_000, layers: vec![layer], buckets: vec![] }
}

fn error(key: &RunKey, &(name, features, ..): &SetFacts) -> ErrorRecord {
    ErrorRecord {
        name: name.into(),
        identity: identity(),
        positions: 20_000,
        mean: 0.002_1 + 0.000_2 * deviation(key.seed, features),
        p99: 0.009,
        max: 0.02,
        within_tolerance: 0.9995 + 0.000_1 * deviation(key.seed, features),
        tolerance: 0.03,
        accumulator_overflows: 0,
    }
}

fn wrong_sign(key: &RunKey, &(name, features, ..): &SetFacts) -> WrongSignRecord {
    let wrong = 1_900 + (100.0 * deviation(key.seed, features)) as u64;
    WrongSignRecord { name: name.into(), identity: identity(), positions: 20_000, left_out: 150, wrong }
}

fn speed(&(name, _, active, update, ..): &SetFacts) -> SpeedRecord {
    let split = |total: f64| TimeBreakdown {
        features: 0.2 * total,
        bookkeeping: Some(0.1 * total),
        rows: 0.5 * total,
        forward: 0.2 * total,
    };
    let entry = |strategy: &str, back_end: &str, evaluations_per_second: f64| SpeedEntry {
        strategy: strategy.into(),
        back_end: back_end.into(),
        evaluations_per_second,
        interval: evaluations_per_second / 90.0,
        noisy: false,
        nanoseconds: Some(split(1e9 / evaluations_per_second)),
        rows: 5.0,
        row_bytes: 512,
    };
    let entries = vec![
        entry("lazy", "scalar", 4e5 / update),
        entry("lazy", "avx2", 4e6 / update),
        entry("refresh", "avx2", 2e7 / active),
    ];
    let digest = |name: &str| format!("{name:0>16}");
    let (first, _, first_active, first_update, ..) = SETS[0];
    let fastest = |active: f64, update: f64| (4e6 / update).max(2e7 / active);
    let ratio = fastest(active, update) / fastest(first_active, first_update);
    let beside = SpeedBeside {
        digest: digest(first),
        speed: SpeedRatio { ratio, low: ratio - ratio / 90.0, high: ratio + ratio / 90.0 },
    };
    let arranged = FtPermutedSpeed { positions: 20_000, entries: vec![entry("lazy", "avx2", 5e6 / update)] };
    SpeedRecord {
        name: name.into(),
        identity: identity(),
        encoder: Some(EncoderKind::Interpreter),
        network: Some(format!("eval-{name}-seed1/network.safetensors")),
        digest: digest(name),
        positions: 20_000,
        entries,
        best: None,
        known_lines: Vec::new(),
        ft_permuted: Some(arranged),
        beside: (name != first).then_some(beside),
        machine: None,
    }
}

/// Makes the turns of a network beside the first one noisy: half-width of the interval as a share.
pub(super) fn make_noisy(record: &mut SpeedRecord, share: f64) {
    let SpeedBeside { speed, .. } = record.beside.as_mut().expect("timed beside the first");
    (speed.low, speed.high) = ((1.0 - share) * speed.ratio, (1.0 + share) * speed.ratio);
}
