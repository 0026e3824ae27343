//! Scores of samples by a network: as `eval` scores them, the same for any number of threads and after interruptions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use common::{random_game, random_net, start_of_each_kind};
use fsbench::alpha_beta::{PlayingNetwork, RecordScorer};
use fsbench::data::{Eval, Fsd, Record, Sample};
use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
use fsbench::features::FeatureSet;
use fsbench::net::{Scheme, quantise};
use fsbench::pipeline::build::LabelJob;
use fsbench::pipeline::label::{EngineLabels, FailReason, LabelError, LabelScorer, NetworkScorer, label_by_network};
use fsbench::pipeline::uci::SearchLimit;
use fsbench::pipeline::{BuildJob, BuildOptions, Manifest, ScorerIdentity, WeightedInput, build};
use fsbench::units::Ply;
use shakmaty::san::SanPlus;
use shakmaty::{Chess, Position};
use tempfile::TempDir;

fn network() -> PlayingNetwork {
    let set = FeatureSet::resolve("piece").unwrap();
    let net = random_net(set.num_features(), 16, &[8], 3);
    PlayingNetwork { model: Model::new(&quantise(&net, &Scheme::stockfish()).unwrap()), set }
}

fn scorer(limit: Option<SearchLimit>) -> RecordScorer {
    RecordScorer::new(network(), "0123456789abcdef".into(), limit, 8).unwrap()
}

fn record(position: &Chess, ply: u16, mv: Option<shakmaty::Move>, score: Option<i16>) -> Record {
    Record::pack(&Sample { position: position.clone(), game: 0, ply: Ply(ply), mv, score, result: None }).unwrap()
}

/// The positions of games of standard chess and of Chess960, some of them left out, so that lines break off.
fn records(games: u64, plies: usize) -> Vec<Record> {
    let mut records = Vec::new();
    for game in 0..games {
        let mut position = start_of_each_kind(game);
        for ply in 0..plies {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            let mv = moves[(ply * 7 + game as usize * 5) % moves.len()];
            if !(ply + game as usize).is_multiple_of(11) {
                records.push(record(&position, ply as u16, Some(mv), None));
            }
            position.play_unchecked(mv);
        }
    }
    records
}

fn scores(labels: &EngineLabels, records: &[Record]) -> Vec<Option<i16>> {
    (0..records.len()).map(|index| labels.get(index).map(|label| label.score)).collect()
}

struct Run {
    folder: TempDir,
}

impl Run {
    fn new() -> Run {
        Run { folder: TempDir::new().unwrap() }
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("x.journal")
    }

    fn label(
        &self,
        records: &[Record],
        scorer: &dyn NetworkScorer,
        threads: usize,
    ) -> Result<EngineLabels, LabelError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| label_by_network(records, scorer, &self.journal(), "abc", &mut |_| {}))
    }
}

#[test]
fn static_scores_are_those_of_eval() {
    let mut records = records(30, 120);
    assert!(records.iter().any(Record::has_chess960_rights) && records.len() > 2048);
    let illegal: Record = bytemuck::Zeroable::zeroed();
    records[7] = illegal;
    records[2050] = illegal;
    // The first piece's code stands for no piece.
    bytemuck::bytes_of_mut(&mut records[2051])[8] |= 7;
    let PlayingNetwork { set, model } = network();
    let mut evaluator = Evaluator::new(&set, &model, Strategy::Refresh, BackEnd::best()).unwrap();
    let mut eval = |record: &Record| {
        let position = record.position().ok()?;
        evaluator.set(position.board());
        Some(evaluator.evaluate(position.turn()).score_cp.0 as i16)
    };
    let expected: Vec<_> = records.iter().map(&mut eval).collect();
    assert!(expected.iter().flatten().collect::<std::collections::HashSet<_>>().len() > 100, "scores vary");
    for threads in [1, 2, 5] {
        let labels = Run::new().label(&records, &scorer(None), threads).unwrap();
        assert!(scores(&labels, &records) == expected, "{threads} threads");
        assert_eq!(labels.labelling.failed, [(FailReason::NotLegal, 3)].into());
        assert_eq!(labels.labelling.examples.iter().map(|failed| failed.record).collect::<Vec<_>>(), [7, 2050, 2051]);
        assert_eq!((labels.labelling.limit, labels.labelling.positions), (None, records.len() as u64));
        let ScorerIdentity::Network(network) = &labels.labelling.engine else { panic!("a network scored") };
        assert_eq!((network.network.as_str(), &network.search), ("0123456789abcdef", &None));
    }
}

#[test]
fn searches_do_not_depend_on_threads_or_order() {
    let mut records = records(4, 20);
    let repeated = records[3];
    records.push(repeated);
    for limit in [SearchLimit::Nodes(300), SearchLimit::Depth(2)] {
        let scorer = scorer(Some(limit));
        let one = Run::new().label(&records, &scorer, 1).unwrap();
        let expected = scores(&one, &records);
        assert!(expected.iter().all(Option::is_some));
        assert_eq!((one.labelling.repeated, one.labelling.limit), (1, Some(limit)));
        for threads in [2, 5] {
            assert_eq!(scores(&Run::new().label(&records, &scorer, threads).unwrap(), &records), expected);
        }
        let backwards: Vec<Record> = records.iter().rev().copied().collect();
        let mut found = scores(&Run::new().label(&backwards, &scorer, 2).unwrap(), &backwards);
        found.reverse();
        assert_eq!(found, expected);
        let position = records[0].position().unwrap();
        let answer = scorer.search().unwrap()(&position).unwrap();
        assert_eq!(Some(answer.eval.centipawns()), expected[0]);
        assert_eq!(one.get(0).unwrap().best_move(&position), Some(answer.best));
    }
}

#[test]
fn scores_are_kept_in_a_journal() {
    let records = records(2, 30);
    for limit in [None, Some(SearchLimit::Nodes(100))] {
        let run = Run::new();
        let scorer = scorer(limit);
        let first = run.label(&records, &scorer, 2).unwrap();
        let expected = scores(&first, &records);
        let resumed = first.counts.searched;
        drop(first);
        // As if it were killed while it wrote its last line.
        let text = fs::read_to_string(run.journal()).unwrap();
        let lost = u64::from(text.lines().count() > 2);
        let kept = if lost > 0 { &text[..text.len() - 3] } else { &text[..] };
        fs::write(run.journal(), kept).unwrap();
        let second = run.label(&records, &scorer, 2).unwrap();
        assert_eq!((second.counts.resumed, second.counts.searched), (resumed - lost, lost));
        assert_eq!(scores(&second, &records), expected);
        drop(second);
        let other = RecordScorer::new(network(), "other".into(), limit, 8).unwrap();
        let error = run.label(&records, &other, 1).map(drop).unwrap_err();
        let message = error.to_string();
        let was = "engine.network was \"0123456789abcdef\", is now \"other\"";
        assert!(error.is_request() && message.contains(was), "{message}");
        let damaged = fs::read_to_string(run.journal()).unwrap().replacen("\n0 ", "\n1 ", 1);
        fs::write(run.journal(), damaged).unwrap();
        let message = run.label(&records, &scorer, 1).map(drop).unwrap_err().to_string();
        assert!(message.contains("is damaged: its checksum does not match"), "{message}");
    }
}

#[test]
fn what_cannot_score_is_refused() {
    let records = records(1, 5);
    let check = |limit, message: &str| {
        let error = Run::new().label(&records, &scorer(Some(limit)), 1).map(drop).unwrap_err();
        assert!(error.is_request() && error.to_string().contains(message), "{error}");
    };
    check(SearchLimit::Nodes(0), "at least one node");
    check(SearchLimit::MoveTime(5), "limited by nodes or depth");
    let PlayingNetwork { model, .. } = network();
    let other = PlayingNetwork { set: FeatureSet::resolve("half-kp").unwrap(), model };
    let refused = RecordScorer::new(other, String::new(), None, 8).unwrap_err().to_string();
    assert!(refused.contains("768"), "{refused}");
}

/// The result of each game.
type Results = [&'static str; GAMES];

const GAMES: usize = 20;

/// Builds games with these results, in which the comments after most plies say (ply mod 5) − 2 pawns.
fn build_games(results: &Results, labels: Option<&LabelJob>, threads: usize) -> (Vec<Record>, Manifest) {
    let folder = TempDir::new().unwrap();
    let games = folder.path().join("games.pgn");
    let game = |(seed, result): (u64, &&str)| {
        let mut position = Chess::default();
        let mut text = format!("[Event \"test\"]\n[Result \"{result}\"]\n\n");
        for (ply, mv) in random_game(seed, 60).into_iter().enumerate() {
            text += &SanPlus::from_move_and_play_unchecked(&mut position, mv).to_string();
            text += &if ply % 7 == 3 { " ".into() } else { format!(" {{ [%eval {}.0] }} ", (ply % 5) as i64 - 2) };
        }
        text + result + "\n\n"
    };
    fs::write(&games, (0..).zip(results).map(game).collect::<String>()).unwrap();
    let inputs = [WeightedInput::file(&games)];
    let options = BuildOptions::default();
    let out = folder.path().join("x.fsd");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let job = BuildJob { labels, ..BuildJob::new(&inputs, &out, &options) };
    let manifest = pool.install(|| build(&job, &mut |_| {})).unwrap();
    let records = Fsd::open(&out).unwrap().records().to_vec();
    assert!(!folder.path().join("x.fsd.journal").exists());
    (records, manifest)
}

#[test]
fn a_build_is_scored_mixed_and_fitted() {
    let job = || LabelJob::new(LabelScorer::Network(Arc::new(scorer(None))));
    let open = ["*"; GAMES];
    let (records, manifest) = build_games(&open, Some(&job()), 1);
    assert!(records.len() > 500 && records.iter().all(|record| record.score().is_some() && record.has_move()));
    let labelling = manifest.labelling.unwrap();
    assert_eq!((labelling.keep_score, labelling.wdl), (0.0, None));
    for threads in [2, 5] {
        let (other, _) = build_games(&open, Some(&job()), threads);
        assert!(records == other, "{threads} threads");
    }

    // Who is ahead in the network's eyes wins, so that results follow scores.
    let mut ahead = [0i64; GAMES];
    for record in &records {
        let sign = if record.ply().0.is_multiple_of(2) { 1 } else { -1 };
        ahead[record.game() as usize] += sign * i64::from(record.score().unwrap());
    }
    let results = ahead.map(|sum| if sum > 0 { "1-0" } else { "0-1" });
    let (earlier, _) = build_games(&results, None, 1);
    let place = |record: &Record| (record.game(), record.ply().0);
    let earlier: BTreeMap<_, _> = earlier.iter().map(|record| (place(record), record.score().unwrap())).collect();
    assert!(earlier.len() > 500 && earlier.len() < records.len(), "{}", earlier.len());
    let mixing = LabelJob { keep_score: 0.3, fits_results: true, ..job() };
    let (mixed, manifest) = build_games(&results, Some(&mixing), 2);
    assert_eq!(mixed.len(), records.len());
    for (mixed, new) in mixed.iter().zip(&records) {
        assert_eq!(place(mixed), place(new));
        let new = f64::from(new.score().unwrap());
        let expected = earlier.get(&place(mixed)).map_or(new, |earlier| 0.3 * f64::from(*earlier) + 0.7 * new);
        assert!((f64::from(mixed.score().unwrap()) - expected).abs() <= 0.5 + 1e-9, "{:?}: {expected}", place(mixed));
    }
    let labelling = manifest.labelling.unwrap();
    assert_eq!(labelling.keep_score, 0.3);
    let fit = labelling.wdl.unwrap();
    assert!(fit.samples == records.len() as u64 && fit.b > 0.0, "{fit:?}");
}

#[test]
fn mixed_scores_are_weighted_means() {
    let position = Chess::default();
    let records = [record(&position, 0, None, None)];
    let labels = Run::new().label(&records, &scorer(None), 1).unwrap();
    let label = labels.get(0).unwrap();
    let new = f64::from(label.score);
    for (earlier, keep) in [(-250i16, 0.3), (17, 0.5), (999, 0.0)] {
        let expected = keep * f64::from(earlier) + (1.0 - keep) * new;
        assert_eq!(f64::from(label.mixed(earlier, keep).score), expected.round(), "{earlier} {keep}");
    }
    let mate = Eval::Mate(3).centipawns();
    assert_eq!(f64::from(label.mixed(mate, 0.5).score), ((30_000.0 + new) / 2.0).round());
}
