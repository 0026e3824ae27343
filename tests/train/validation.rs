//! Losses of a validation, game by game, against a direct computation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fsbench::chess::Perspective;
use fsbench::data::{Fsd, Method, Split, in_split};
use fsbench::features::FeatureSet;
use fsbench::measure::{validation, wrong_sign};
use fsbench::net::{NetFile, forward, forward_integer, load_float};
use fsbench::record::{ClassLosses, LossSums, ValidationRecord};
use fsbench::train::{Silent, TrainConfig, TrainOutcome, TrainingRun, run_dir};

use super::fixture::{PROGRAM, Workspace, with};

fn validated(workspace: &Workspace, config: &TrainConfig, name: &str) -> (TrainOutcome, ValidationRecord) {
    let outcome = workspace.run(config, name, false, &mut Silent).expect("trained");
    let path = workspace.path(name);
    let run = TrainingRun { service: Some(Path::new(PROGRAM)), ..TrainingRun::new(config, &path) };
    (outcome, validation(&run, &|| false).expect("validated"))
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1e-3), "{what}: {found} instead of {expected}");
}

#[test]
fn losses_by_game_equal_a_direct_computation() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Eval), |settings| settings.epochs = 2);
    let (outcome, record) = validated(&workspace, &config, "run");
    assert_eq!((record.samples, record.accuracy), (outcome.validation_samples, None));
    close(record.loss, outcome.validation_loss, "the validation's mean");

    let (net, _) = load_float(&workspace.path("run").join(run_dir::BEST)).expect("the best network");
    let set = FeatureSet::resolve("piece").expect("shipped");
    let scheme = config.scheme().expect("known");
    let net = net.on_grid(&scheme);
    let data = Fsd::open(config.data.only().expect("one file")).expect("samples");
    let mut games: BTreeMap<u32, (u32, f64)> = BTreeMap::new();
    let mut plies: BTreeMap<u32, (u32, f64)> = BTreeMap::new();
    for record in data.records() {
        let game = record.game();
        if !in_split(config.settings.split_seed, 0.2, game, Split::Validation) {
            continue;
        }
        let sample = record.unpack().expect("a sample");
        let stm = Perspective::of(record.turn());
        let [own, other] = [stm, stm.other()].map(|pov| set.reference(board(&sample), pov));
        let out = f64::from(forward(&net, &scheme, 0, &own, &other)) * f64::from(scheme.nnue2score) * 100.0
            / f64::from(scheme.pawn_value);
        let target = 1.0 / (1.0 + (-f64::from(sample.score.expect("scored")) / 410.0).exp());
        let loss = (1.0 / (1.0 + (-out / 361.0).exp()) - target).abs().powf(2.6);
        let add = |sums: &mut (u32, f64)| *sums = (sums.0 + 1, sums.1 + loss);
        add(games.entry(game).or_default());
        if (40..60).contains(&sample.ply.0) {
            add(plies.entry(game % ClassLosses::GROUPS).or_default());
        }
    }
    let check = |found: &[LossSums], expected: &BTreeMap<u32, (u32, f64)>| {
        assert!(found.iter().map(|sums| (sums.game, sums.samples)).eq(expected.iter().map(|(g, (n, _))| (*g, *n))));
        for sums in found {
            close(f64::from(sums.loss), expected[&sums.game].1, "a game's sum");
        }
    };
    assert!(games.len() > 4, "{games:?}");
    check(&record.losses.games, &games);
    let class = record.losses.classes.iter().find(|class| (&class.by[..], &class.part[..]) == ("ply", "40-59"));
    check(&class.expect("positions of that phase").groups, &plies);
    // Every breakdown divides the same samples.
    for by in ["pieces left", "ply", "material", "score", "king", "kings"] {
        let own = record.losses.classes.iter().filter(|class| class.by == by);
        let samples: u32 = own.flat_map(|class| &class.groups).map(|group| group.samples).sum();
        assert_eq!(u64::from(samples), record.samples, "{by}");
    }
}

fn board(sample: &fsbench::data::Sample) -> &fsbench::chess::Board {
    use shakmaty::Position;
    sample.position.board()
}

/// Against the forward pass by definition, position by position.
#[test]
fn wrong_signs_equal_a_direct_count() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Eval), |settings| settings.epochs = 1);
    workspace.run(&config, "run", false, &mut Silent).expect("trained");
    let file = NetFile::load(&workspace.path("run").join(run_dir::NETWORK)).expect("the network");
    let set = FeatureSet::resolve("piece").expect("shipped");
    let data = Fsd::open(config.data.only().expect("one file")).expect("samples");
    for limit in [None, Some(3)] {
        let mut games = BTreeSet::new();
        let [mut positions, mut left_out, mut wrong] = [0; 3];
        for record in data.records() {
            let game = record.game();
            if !in_split(config.settings.split_seed, 0.2, game, Split::Validation)
                || limit.is_some_and(|limit| games.len() as u64 == limit && !games.contains(&game))
            {
                continue;
            }
            games.insert(game);
            let sample = record.unpack().expect("a sample");
            let stm = Perspective::of(record.turn());
            let [own, other] = [stm, stm.other()].map(|pov| set.reference(board(&sample), pov));
            let evaluation = file.net.scheme.score(forward_integer(&file.net, 0, &own, &other));
            match sample.score.expect("scored") {
                0 => left_out += 1,
                score => {
                    positions += 1;
                    let has_same_sign = evaluation != 0 && (evaluation > 0) == (score > 0);
                    wrong += u64::from(!has_same_sign);
                }
            }
        }
        let record = wrong_sign(&file, &config, limit).expect("measured");
        assert_eq!((record.positions, record.left_out, record.wrong), (positions, left_out, wrong), "{limit:?}");
        assert!(wrong > 0 && wrong < positions && left_out > 0, "{record:?}");
        assert_eq!(record.share(), Some(wrong as f64 / positions as f64));
    }
    let without = wrong_sign(&file, &config, Some(0)).expect("measured");
    assert_eq!((without.positions, without.share()), (0, None));
}

/// The shares of pqr add up to the run's. A run of a large split does not keep its losses: validated again, with
/// another number of threads, the network gives the same bits.
#[test]
fn validations_are_reproducible() {
    let workspace = Workspace::new();
    let config = with(&workspace.config(Method::Pqr), |settings| settings.epochs = 1);
    let (outcome, record) = validated(&workspace, &config, "run");
    close(record.loss, outcome.validation_loss, "the validation's mean");
    let accuracy = outcome.best().and_then(|best| best.validation_accuracy).expect("pqr");
    close(record.accuracy.expect("pqr"), accuracy, "accuracy");
    std::fs::remove_file(workspace.path("run").join(run_dir::LOSSES)).expect("kept");
    let one_thread = with(&config, |settings| settings.threads = Some(1));
    let path = workspace.path("run");
    let run = TrainingRun { service: Some(Path::new(PROGRAM)), ..TrainingRun::new(&one_thread, &path) };
    assert_eq!(validation(&run, &|| false).expect("validated"), record);
    // Only a `.fsd` file knows the games of its samples.
    let pgn = TrainConfig { data: workspace.path("games.pgn").into(), ..config };
    let run = TrainingRun { service: Some(Path::new(PROGRAM)), ..TrainingRun::new(&pgn, &path) };
    assert!(validation(&run, &|| false).expect_err("no samples").to_string().contains("games.pgn"));
}
