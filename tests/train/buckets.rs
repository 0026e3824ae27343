//! Output buckets by an expression: learnt, resumed, exported and measured.

use std::fmt::Write as _;

use fsbench::chess::Perspective;
use fsbench::data::{Fsd, Method, Split, in_split};
use fsbench::net::{BucketRule, NetFile, forward, load_float};
use fsbench::train::{Silent, TrainConfig, run_dir};
use fsbench::units::Seed;
use rand::RngExt;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Color, Position, Rank};

use super::common::networks::{ReferenceBuckets, expression_buckets};
use super::fixture::{StopAt, Workspace, error_of, with};
use super::shapes::check_export;

const ZONED: &str = "features = \"square(P) * role(P) * color(P) for P in pieces\"\nmirror = \"king-left\"\n\
     [buckets]\nzones = ";

/// Kings on the first rank, and all others.
const FIRST_RANK: &str = "[0,0,0,0, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1, 1,1,1,1]";

fn by_rule(config: &TrainConfig, rule: &str) -> TrainConfig {
    with(config, |settings| settings.shape_options.bucket_rule = BucketRule::from(rule.to_owned()))
}

/// Random games in which a knight is worth three pawns while the own king is at home, and minus three when it is not.
fn planted_games() -> String {
    let mut pgn = String::new();
    for game in 0..60 {
        let mut rng = Seed(5).stream("planted games", game);
        let mut position = Chess::default();
        pgn.push_str("[Event \"test\"]\n[Result \"1/2-1/2\"]\n\n");
        for _ in 0..120 {
            let moves = position.legal_moves();
            if moves.len() < 2 {
                break;
            }
            let san = SanPlus::from_move_and_play_unchecked(&mut position, moves[rng.random_range(0..moves.len())]);
            let board = position.board();
            let turn = position.turn();
            let king = board.king_of(turn).expect("a king");
            let is_home = king.rank() == turn.fold_wb(Rank::First, Rank::Eighth);
            let knights = |color| (board.by_color(color) & board.knights()).count() as f64;
            let own = (knights(turn) - knights(turn.other())) * if is_home { 3.0 } else { -3.0 };
            let white = if turn == Color::White { own } else { -own };
            write!(pgn, "{san} {{ [%eval {white:.2}] }} ").expect("a string grows");
        }
        pgn.push_str("1/2-1/2\n\n");
    }
    pgn
}

#[test]
fn buckets_by_king_zone_learn_a_planted_difference() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("games.pgn"), planted_games()).expect("written");
    let set = workspace.path("zoned.toml");
    std::fs::write(&set, format!("{ZONED}{FIRST_RANK}")).expect("written");
    let config = TrainConfig { set: set.display().to_string(), ..workspace.config(Method::Eval) };
    let config = with(&config, |settings| {
        settings.epoch_samples = None;
        settings.epochs = 12;
        settings.decay = 0.9;
        settings.hidden = vec![];
        settings.scheme = Some("simple".into());
    });
    let loss = |config: &TrainConfig, name: &str| {
        workspace.run(config, name, false, &mut Silent).expect("trained").validation_loss
    };
    let one = loss(&config, "one");
    let constant = loss(&by_rule(&config, "role(K, king)"), "constant");
    let zones = loss(&by_rule(&config, "bucket(K, zones)"), "zones");
    assert_eq!(one, constant, "a rule of one bucket changes nothing");
    assert!(zones < 0.7 * one, "{zones} {one}");
    check_export(&workspace, "zones");
}

/// The mean validation loss of the best network by the forward pass by definition and the reference encoders.
fn direct_loss(workspace: &Workspace, config: &TrainConfig, name: &str) -> f64 {
    let (net, checkpoint) = load_float(&workspace.path(name).join(run_dir::BEST)).expect("the best network");
    let set = checkpoint.origin.feature_set().expect("its set");
    let scheme = config.scheme().expect("known");
    let net = net.on_grid(&scheme);
    let buckets = ReferenceBuckets::new(&net.shape.buckets, &set);
    let data = Fsd::open(config.data.only().expect("one file")).expect("samples");
    let (mut sum, mut samples) = (0.0, 0);
    for record in data.records() {
        if !in_split(config.settings.split_seed, 0.2, record.game(), Split::Validation) {
            continue;
        }
        let sample = record.unpack().expect("a sample");
        let board = sample.position.board();
        let stm = Perspective::of(record.turn());
        let [own, other] = [stm, stm.other()].map(|pov| set.reference(board, pov));
        let out = f64::from(forward(&net, &scheme, buckets.of(board, record.turn()), &own, &other));
        let centipawns = out * f64::from(scheme.nnue2score) * 100.0 / f64::from(scheme.pawn_value);
        let target = 1.0 / (1.0 + (-f64::from(sample.score.expect("scored")) / 410.0).exp());
        sum += (1.0 / (1.0 + (-centipawns / 361.0).exp()) - target).abs().powf(2.6);
        samples += 1;
    }
    sum / f64::from(samples)
}

#[test]
fn trainer_and_reference_agree_on_the_bucket() {
    let workspace = Workspace::new();
    for (set, buckets) in expression_buckets() {
        let path = workspace.path("set.toml");
        std::fs::write(&path, set.definition()).expect("written");
        let config = TrainConfig { set: path.display().to_string(), ..workspace.config(Method::Eval) };
        let rule = buckets.rule.to_string();
        let outcome = workspace.run(&by_rule(&config, &rule), &rule, false, &mut Silent).expect("trained");
        let expected = direct_loss(&workspace, &config, &rule);
        let difference = (outcome.validation_loss - expected).abs();
        assert!(difference < 1e-5 * expected, "{rule}: {} {expected}", outcome.validation_loss);
    }
}

#[test]
fn a_rule_is_trained_resumed_and_exported() {
    let workspace = Workspace::new();
    for (method, rule, buckets) in
        [(Method::Eval, "count(7 for P in pieces if role(P) != pawn)", 8), (Method::Pqr, "file(K)", 8)]
    {
        let config = by_rule(&workspace.config(method), rule);
        let whole = format!("{method:?}-whole");
        let parts = format!("{method:?}-parts");
        workspace.run(&config, &whole, false, &mut Silent).expect("trained");
        workspace.run(&config, &parts, false, &mut StopAt::new(8)).expect_err("stopped");
        workspace.run(&config, &parts, true, &mut Silent).expect("trained");
        super::fixture::same_results(&workspace, &whole, &parts);
        let net = NetFile::load(&workspace.path(&whole).join(run_dir::NETWORK)).expect("a network").net;
        assert_eq!((net.shape.buckets.count, net.shape.buckets.rule.to_string()), (buckets, rule.to_owned()));
        check_export(&workspace, &whole);
    }
}

#[test]
fn wrong_rules_are_refused_before_anything_is_written() {
    let workspace = Workspace::new();
    let check = |more: &[&str], expected: &str| {
        let output = workspace.command("refused", more).output().expect("ran");
        let error = error_of(&output);
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
        assert!(!workspace.path("refused").exists());
    };
    check(&["--bucket-rule", "square(P) for P in pieces"], "gives 32 buckets in the position");
    check(&["--bucket-rule", "stokfish"], "`stokfish` is no bucket rule");
    check(&["--bucket-rule", "square(K)"], "1 to 32 output buckets, not 64");
    check(&["--bucket-rule", "file(K)", "--buckets", "4"], "has 8 output buckets, not 4");
}

/// A table that only the rule reads is no part of the set's identity, yet another one is another run.
#[test]
fn changed_tables_are_another_run() {
    let workspace = Workspace::new();
    let set = workspace.path("zoned.toml");
    let write = |zones: &str| std::fs::write(&set, format!("{ZONED}{zones}")).expect("written");
    write(FIRST_RANK);
    let config = TrainConfig { set: set.display().to_string(), ..workspace.config(Method::Eval) };
    let config = by_rule(&config, "bucket(K, zones)");
    workspace.run(&config, "run", false, &mut StopAt::new(8)).expect_err("stopped");
    write(&FIRST_RANK.replacen("0,0,0,0", "0,0,1,1", 1));
    let error = workspace.run(&config, "run", true, &mut Silent).expect_err("another run").to_string();
    assert!(error.contains("bucket tables"), "{error}");
    write(FIRST_RANK);
    workspace.run(&config, "run", true, &mut Silent).expect("the same run");
}
