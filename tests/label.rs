//! Scoring positions with an engine: good and faulty engines, journals, and runs that are killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod common;
mod engines;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engines::{Script, stockfish};
use fsbench::chess::uci_move;
use fsbench::data::{Eval, Record, Sample};
use fsbench::pipeline::ScorerIdentity;
use fsbench::pipeline::label::{FailReason, LabelError, LabelSettings, Labelling, RunCounts, label};
use fsbench::pipeline::uci::{EngineSpec, SearchLimit, Workers};
use fsbench::units::{Centipawn, Ply};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess, EnPassantMode, Position};
use tempfile::TempDir;

/// Answers with a score that depends on the position: 100 times the length of the FEN's board, plus the rule-50
/// counter.
const ANSWER: &str = r#"set -- $fen
    echo "info depth 1 score cp $((${#1} * 100 + $5)) pv e2e3"; echo "bestmove e2e3""#;

fn position(fen: &str) -> Chess {
    fen.parse::<Fen>().unwrap().into_position(CastlingMode::Standard).unwrap()
}

fn record(position: Chess, ply: u16) -> Record {
    let sample = Sample { position, game: 0, ply: Ply(ply), mv: None, score: None, result: None };
    Record::pack(&sample).unwrap()
}

/// 90 records of 60 positions, in each of which e2e3 is legal; every second position is repeated at another ply.
fn records() -> Vec<Record> {
    let boards = ["7k/8/8/8/8/8/4P3/K7", "8/6pk/8/8/8/8/4P3/K7", "8/8/7k/p7/8/1p6/4P3/K7"];
    let fen = |number: usize| format!("{} w - - {} 90", boards[number % 3], number / 3);
    let distinct = (0..60).map(|number| record(position(&fen(number)), 180));
    distinct.chain((0..60).step_by(2).map(|number| record(position(&fen(number)), 210))).collect()
}

fn expected_score(record: &Record) -> i16 {
    let fen = Fen::from_position(&record.position().unwrap(), EnPassantMode::Legal).to_string();
    let fields: Vec<&str> = fen.split(' ').collect();
    fields[0].len() as i16 * 100 + fields[4].parse::<i16>().unwrap()
}

/// A folder with an engine.
struct Fixture {
    folder: TempDir,
    settings: LabelSettings,
    workers: Workers,
}

/// The outcome of a labelling: for each record a score and a move.
type Labelled = (Vec<Option<(Eval, String)>>, Labelling, RunCounts);

impl Fixture {
    fn new(script: &Script) -> Fixture {
        let folder = TempDir::new().unwrap();
        let engine = EngineSpec::new(script.write(&folder.path().join("engine")));
        let workers = Workers { concurrency: 1, answer_timeout: Duration::from_secs(10) };
        Fixture { folder, settings: LabelSettings::new(engine, SearchLimit::Depth(9)), workers }
    }

    fn answering(on_go: &str) -> Fixture {
        Fixture::new(&Script::new(on_go))
    }

    fn with_short_timeout(mut self) -> Fixture {
        self.workers.answer_timeout = Duration::from_millis(700);
        self
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("x.fsd.journal")
    }

    fn label(&self, records: &[Record]) -> Result<Labelled, LabelError> {
        let labels = label(records, &self.settings, &self.workers, &self.journal(), "abc", &mut |_| {})?;
        let found = records.iter().enumerate().map(|(index, record)| {
            let label = labels.get(index)?;
            let [mut applied, mut scored] = [*record; 2];
            label.apply(&mut applied);
            let applied = applied.unpack().unwrap();
            assert_eq!(applied.mv, label.best_move(&applied.position));
            assert_eq!(applied.score, Some(label.score));
            label.apply_score(&mut scored);
            assert_eq!((scored.score(), scored.unpack().unwrap().mv), (Some(label.score), None));
            Some((label.eval(), uci_move(applied.mv.unwrap())))
        });
        let found = found.collect();
        let labelling = labels.labelling.clone();
        let counts = labels.counts;
        labels.remove_journal();
        assert!(!self.journal().exists());
        Ok((found, labelling, counts))
    }
}

fn check_error(outcome: Result<Labelled, LabelError>, message: &str) {
    let error = outcome.map(drop).unwrap_err().to_string();
    assert!(error.contains(message), "{error:?} lacks {message:?}");
}

#[test]
fn every_record_gets_the_score_of_its_position() {
    let records = records();
    let log = r#"echo "$fen" >> "$0.log"; [ "$fresh" = 1 ] || exit 9; fresh=0"#;
    let go = format!("{log}; {ANSWER}");
    let mut fixture = Fixture::new(&Script { on_new_game: "fresh=1", ..Script::new(&go) });
    for concurrency in [1, 2, 3] {
        fixture.workers.concurrency = concurrency;
        let (found, labelling, counts) = fixture.label(&records).unwrap();
        for (record, found) in records.iter().zip(found) {
            assert_eq!(found, Some((Eval::Score(Centipawn(expected_score(record).into())), "e2e3".into())));
        }
        assert_eq!((labelling.positions, labelling.repeated), (60, 30));
        assert!(labelling.failed.is_empty() && labelling.reproducible);
        assert_eq!(counts, RunCounts { searched: 60, resumed: 0, engines_lost: 0 });
        let log = fixture.folder.path().join("engine.log");
        let mut searched: Vec<_> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
        searched.sort();
        searched.dedup();
        assert_eq!(searched.len(), 60);
        // The lowest move number possible with this counter.
        assert!(searched.contains(&"7k/8/8/8/8/8/4P3/K7 w - - 19 11".to_owned()), "{searched:?}");
        fs::remove_file(log).unwrap();
    }
}

#[test]
fn positions_that_cannot_be_searched_are_counted() {
    let illegal: Record = bytemuck::Zeroable::zeroed();
    let mated = record(position("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"), 1);
    let records = [records()[0], illegal, mated, illegal, records()[1]];
    let (found, labelling, counts) = Fixture::answering(ANSWER).label(&records).unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, false, true]);
    assert_eq!(labelling.failed, [(FailReason::NotLegal, 1), (FailReason::NoLegalMove, 1)].into());
    assert_eq!(labelling.examples.iter().map(|failed| failed.record).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((labelling.positions, labelling.repeated, counts.searched), (4, 1, 2));
}

#[test]
fn mates_and_options_are_recorded() {
    let script = Script {
        on_uci: r#"echo "option name Hash type spin default 16 min 1 max 32"; echo "option name Style type string""#,
        ..Script::new("echo info score mate 3; echo bestmove e2e3")
    };
    let mut fixture = Fixture::new(&script);
    fixture.settings.engine.options = vec![("style".into(), "wild".into())];
    let (found, labelling, _) = fixture.label(&records()).unwrap();
    assert_eq!(found[3], Some((Eval::Mate(3), "e2e3".into())));
    let ScorerIdentity::Uci(engine) = &labelling.engine else { panic!("an engine") };
    assert_eq!(engine.options, [("Style".to_owned(), "wild".to_owned())].into());
    assert_eq!((engine.name.as_str(), engine.hash), ("Fake 1", Some(8)));

    fixture.settings.engine.options = vec![("Stile".into(), "wild".into())];
    check_error(fixture.label(&records()), "has no option \"Stile\"; it has: Style, Hash");
    fixture.settings.engine = EngineSpec { hash: 64, options: Vec::new(), ..fixture.settings.engine };
    check_error(fixture.label(&records()), "cannot set Hash to \"64\": it goes from 1 to 32");
    fixture.settings.limit = SearchLimit::Depth(0);
    check_error(fixture.label(&records()), "at least one node");
}

/// Scores in any order of words, and of engines that report bounds only.
#[test]
fn odd_info_lines_are_understood() {
    let check = |info: &str, expected: i32| {
        let (found, labelling, _) =
            Fixture::answering(&format!("{info}; echo bestmove e2e3")).label(&records()).unwrap();
        assert_eq!(found[3], Some((Eval::Score(Centipawn(expected)), "e2e3".into())), "{info}");
        assert!(labelling.failed.is_empty());
    };
    check("echo info depth 3 seldepth 4 pv e2e3 score cp 25 nodes 100 nps 1000", 25);
    check("echo info depth 1 score cp -98 lowerbound nodes 32 pv e2e3", -98);
    check("echo info depth 1 score cp 7; echo info depth 2 score -INFINITE nodes 5", 7);
    check("echo info depth 1 score cp 7; echo info depth 2 score cp 90 upperbound", 7);
    check("printf '  info\\tdepth 3  score  cp 25 \\n'", 25);
    check("echo info depth 3 score cp 25", 25);
}

/// The engine misbehaves in one position: rule-50 counter 7 and a board of 22 characters.
#[test]
fn one_bad_position_does_not_stop_the_others() {
    let records = records();
    let bad = |trouble: &str| format!(r#"set -- $fen; if [ "$5 ${{#1}}" = "7 22" ]; then {trouble}; fi; {ANSWER}"#);
    let check = |trouble: &str, reason: FailReason, message: &str| {
        let (found, labelling, counts) =
            Fixture::answering(&bad(trouble)).with_short_timeout().label(&records).unwrap();
        assert_eq!(labelling.failed, [(reason, 1)].into(), "{trouble}");
        assert!(labelling.examples[0].message.contains(message), "{labelling:?}");
        assert_eq!((counts.searched, counts.engines_lost), (59, 2), "{trouble}");
        for (record, found) in records.iter().zip(found) {
            let is_bad = record.position().unwrap().halfmoves() == 7 && expected_score(record) == 2207;
            assert_eq!(found.is_none(), is_bad, "{trouble}");
        }
    };
    assert_eq!(records.iter().filter(|record| expected_score(record) == 2207).count(), 1);
    check("exit 3", FailReason::EngineEnded, "ended while searching (exit status: 3)");
    let said = "(exit status: 3); its last lines:\n  ";
    let check_said = |trouble: &str, line: &str| check(trouble, FailReason::EngineEnded, &format!("{said}{line}"));
    check_said("echo info string ERROR: no network; exit 3", "info string ERROR: no network");
    check_said("echo no weights >&2; exit 3", "no weights");
    check("while read -r more; do :; done", FailReason::EngineSilent, "no answer within 0.7 s while searching");
    check("while :; do echo info string x; done", FailReason::EngineSilent, "no answer within 0.7 s");
    check("echo bestmove e2e5", FailReason::EngineNonsense, "that move is illegal");
    check("echo bestmove e2e3", FailReason::EngineNonsense, "no score came with it");
    check("echo what; echo bestmove; echo bestmove e2e3", FailReason::EngineNonsense, "that is not a move");
}

#[test]
fn transient_failures_are_retried() {
    let records = records();
    let check = |script: Script, lost: u64| {
        let (found, labelling, counts) = Fixture::new(&script).label(&records).unwrap();
        assert!(found.iter().all(Option::is_some) && labelling.failed.is_empty());
        assert_eq!((counts.searched, counts.engines_lost), (60, lost), "{}", script.on_go);
    };
    check(Script::new(&format!("n=$((n + 1)); [ $n -gt 10 ] && exit 3; {ANSWER}")), 5);
    check(Script { on_uci: "sleep 1", ..Script::new(ANSWER) }, 0);
    check(Script::new(&format!("echo nonsense; echo info score; {ANSWER}; echo bestmove e2e4")), 0);
}

#[test]
fn an_engine_that_keeps_failing_ends_the_run() {
    let records = records();
    let check = |script: Script, message: &str| {
        let fixture = Fixture::new(&script).with_short_timeout();
        let begin = Instant::now();
        check_error(fixture.label(&records), message);
        assert!(begin.elapsed() < Duration::from_secs(60));
    };
    check(Script::new("exit 4"), "8 positions in a row could not be searched; the last one, ");
    check(Script::new("echo bestmove a1a1"), "8 positions in a row");
    check(Script { on_ready: ":", ..Script::new(ANSWER) }, "gave no answer within 0.7 s while setting options");
    check(Script { on_uci: "exit 5", ..Script::new(ANSWER) }, "ended while starting (exit status: 5)");
    // Ten answers, then only failures.
    let ten = format!(r#"echo x >> "$0.n"; [ $(wc -l < "$0.n") -gt 10 ] && exit 3; {ANSWER}"#);
    check(Script::new(&ten), "32 positions in a row could not be searched");
    check(Script::new(&ten), "; 10 finished positions are kept in");
    // The program file is deleted.
    let gone = format!(r#"n=$((n + 1)); [ $n -gt 10 ] && rm "$0" && exit 3; {ANSWER}"#);
    check(Script::new(&gone), "cannot start the engine");

    let few = Fixture::answering("exit 4");
    check_error(few.label(&records[..3]), "3 positions in a row could not be searched");
}

#[test]
fn the_next_run_searches_failed_positions_again() {
    let records = records();
    let fixture =
        Fixture::answering(&format!(r#"[ -e "$0.repaired" ] || {{ set -- $fen; [ $5 -gt 3 ] && exit 3; }}; {ANSWER}"#));
    check_error(fixture.label(&records), "32 positions in a row");
    fs::write(fixture.folder.path().join("engine.repaired"), "").unwrap();
    let (found, labelling, counts) = fixture.label(&records).unwrap();
    assert!(found.iter().all(Option::is_some) && labelling.failed.is_empty());
    assert_eq!((counts.resumed, counts.searched), (12, 48));
}

#[test]
fn the_journal_belongs_to_one_run() {
    let records = records();
    let go = format!(r#"echo x >> "$0.n"; [ ! -e "$0.repaired" ] && [ $(wc -l < "$0.n") -gt 10 ] && exit 3; {ANSWER}"#);
    let fixture = Fixture::answering(&go);
    check_error(fixture.label(&records), "10 finished positions");
    let kept = fs::read(fixture.journal()).unwrap();
    fs::write(fixture.folder.path().join("engine.repaired"), "").unwrap();
    let mut other = LabelSettings { limit: SearchLimit::Nodes(5), ..fixture.settings.clone() };
    let check = |settings: &LabelSettings, fingerprint: &str, message: &str| {
        let outcome = label(&records, settings, &fixture.workers, &fixture.journal(), fingerprint, &mut |_| {});
        let error = outcome.map(drop).unwrap_err();
        assert!(error.is_request() && error.to_string().contains(message), "{error}");
        assert_eq!(fs::read(fixture.journal()).unwrap(), kept);
    };
    check(
        &fixture.settings,
        "def",
        "holds 10 positions of an interrupted run with other settings (records.hash was \"abc\"",
    );
    check(&other, "abc", "limit.depth was 9, is now null; limit.nodes was null, is now 5");
    other = fixture.settings.clone();
    Script { name: "Fake 2", ..Script::new(&go) }.write(&fixture.folder.path().join("engine"));
    check(
        &other,
        "abc",
        "engine.name was \"Fake 1\", is now \"Fake 2\"; engine.program: the program's file has changed",
    );

    Script::new(&go).write(&fixture.folder.path().join("engine"));
    let labels = label(&records, &fixture.settings, &fixture.workers, &fixture.journal(), "abc", &mut |_| {}).unwrap();
    assert_eq!(labels.counts.resumed, 10);
    check_error(fixture.label(&records), "another process is writing the journal");
    drop(labels);

    let text = fs::read_to_string(fixture.journal()).unwrap();
    fs::write(fixture.journal(), text.replace("\n3 ", "\n3 x")).unwrap();
    check_error(fixture.label(&records), "is damaged: its checksum does not match");
}

const FOLDER: &str = "FSBENCH_TEST_LABEL_FOLDER";

/// The process that the next test starts and kills; not a test by itself.
#[test]
#[ignore = "started by a_killed_run_resumes_where_it_stopped"]
fn labelling_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let settings = LabelSettings::new(EngineSpec::new(folder.join("engine")), SearchLimit::Depth(9));
    let workers = Workers { concurrency: 2, ..Workers::default() };
    drop(label(&records(), &settings, &workers, &folder.join("x.fsd.journal"), "abc", &mut |_| {}).unwrap());
}

fn kill_after(folder: &Path, positions: usize) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "labelling_process", "--ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let lines = || fs::read_to_string(folder.join("x.fsd.journal")).unwrap_or_default().lines().count();
    while lines() < positions + 1 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "{} lines", lines());
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_run_resumes_where_it_stopped() {
    let records = records();
    let slow = format!(r#"echo "$fen" >> "$0.log"; sleep 0.02; {ANSWER}"#);
    let uninterrupted = Fixture::answering(&slow).label(&records).unwrap();
    let fixture = Fixture::answering(&slow);
    kill_after(fixture.folder.path(), 10);
    // As if it were killed while it wrote a line.
    let text = fs::read_to_string(fixture.journal()).unwrap();
    fs::write(fixture.journal(), &text[..text.len() - 3]).unwrap();
    kill_after(fixture.folder.path(), 30);
    let finished = fs::read_to_string(fixture.journal()).unwrap().lines().count() as u64 - 1;
    let (found, labelling, counts) = fixture.label(&records).unwrap();
    assert_eq!((found, labelling), (uninterrupted.0, uninterrupted.1));
    assert_eq!((counts.resumed, counts.searched), (finished, 60 - finished));
    // Searched again: two positions in progress at each of two kills, and the incomplete line's.
    let searched = fs::read_to_string(fixture.folder.path().join("engine.log")).unwrap().lines().count();
    assert!((60..=65).contains(&searched), "{searched}");
}

#[test]
fn stockfish_scores_do_not_depend_on_concurrency() {
    let Some(stockfish) = stockfish() else { return };
    let mut records = Vec::new();
    for (game, seed) in (0..5).zip(1..) {
        let mut position = Chess::default();
        for (ply, mv) in (0..).zip(common::random_game(seed, 60)) {
            position.play_unchecked(mv);
            if ply % 3 == game % 3 {
                records.push(record(position.clone(), ply + 1));
            }
        }
    }
    let run = |concurrency, limit| {
        let folder = TempDir::new().unwrap();
        let settings = LabelSettings::new(EngineSpec::new(&stockfish), limit);
        let workers = Workers { concurrency, ..Workers::default() };
        let fixture = Fixture { folder, settings, workers };
        fixture.label(&records).unwrap()
    };
    let (one, labelling, _) = run(1, SearchLimit::Depth(7));
    let ScorerIdentity::Uci(engine) = &labelling.engine else { panic!("an engine") };
    assert!(engine.name.contains("Stockfish") && engine.hash == Some(8));
    assert_eq!(labelling.failed.keys().filter(|reason| **reason != FailReason::NoLegalMove).count(), 0);
    assert!(one.iter().flatten().count() > 90);
    assert_eq!(one, run(3, SearchLimit::Depth(7)).0);
    assert_eq!(run(1, SearchLimit::Nodes(500)).0, run(2, SearchLimit::Nodes(500)).0);
}
