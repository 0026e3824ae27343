//! `[loop]`: what is played, trained and accepted, by made-up networks.

use super::*;
use crate::record::{GateVerdict, LoopRecord, StageSeconds};

const LOOP: &str = r#"
[match]
nodes = 100
pairs = 20
[loop]
iterations = 4
nodes      = 50
games      = 10
window     = 700
elo1       = 100
warm_start = true
"#;

/// One row without data, and a loop.
fn text(changes: &[(&str, &str)]) -> String {
    let (rows, _) = TEXT.split_once("[[runs]]").expect("rows");
    let rows = rows.replace("data  = \"games.pgn\"\n", "").replace("seeds = [1, 2]", "seeds = [1]");
    let text = format!("{rows}[[runs]]\nmethod = \"eval\"\nsets = [\"piece\"]\n{LOOP}");
    changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// Iterations 1 and 3 are better than what was there, iteration 2 is worse, iteration 4 the same as 3.
fn executor() -> FakeExecutor {
    let merits = vec![
        (["iteration 1", "iteration 1"], 0.9),
        (["iteration 2", "iteration 2"], 0.95),
        (["iteration 3", "iteration 4"], 0.8),
    ];
    FakeExecutor { merits, ..FakeExecutor::default() }
}

fn record(results: &Results) -> &LoopRecord {
    results.learning_loop.as_ref().expect("a loop")
}

/// The record without what the clock says.
fn timeless(record: &LoopRecord) -> LoopRecord {
    let mut record = LoopRecord { seconds: StageSeconds::default(), ..record.clone() };
    for one in &mut record.iterations {
        one.seconds = 0.0;
        one.games.iter_mut().for_each(|games| games.seconds = 0.0);
        one.training.iter_mut().for_each(|training| training.seconds = 0.0);
        one.gate.iter_mut().for_each(|gate| gate.seconds = 0.0);
    }
    record.last.iter_mut().for_each(|last| last.seconds = 0.0);
    record
}

#[test]
fn a_network_that_wins_the_gate_plays_the_next_games() {
    let folder = ExperimentFolder::new();
    let mut executor = executor();
    let results = folder.run(&text(&[]), &mut executor).expect("done");
    let record = record(&results);
    let verdicts: Vec<_> = record.iterations.iter().filter_map(|one| one.gate.as_ref()?.verdict).collect();
    use GateVerdict::{Accepted, Rejected, Undecided};
    assert_eq!(verdicts, [Accepted, Rejected, Accepted, Undecided]);
    let players: Vec<u32> = record.iterations.iter().map(|one| one.player).collect();
    assert_eq!(players, [0, 1, 1, 3]);
    assert_eq!(record.start, "material values, on piece");
    assert_eq!(record.stopped.as_deref(), Some("iteration 4 was the last"));
    let last = record.last.as_ref().expect("played");
    assert_eq!((last.player, last.opponent, last.verdict), (3, 1, None));

    // 600 positions an iteration: the last two have 700 or more.
    let trained: Vec<_> = record.iterations.iter().filter_map(|one| one.training.as_ref()).collect();
    assert_eq!(
        trained.iter().map(|one| (one.first, one.positions)).collect::<Vec<_>>(),
        [(1, 600), (1, 1_200), (2, 1_200), (3, 1_200)]
    );
    // The start has another shape, so that the first training begins with random weights; later ones do not.
    assert_eq!(executor.starts.len(), 1);
    assert!(executor.calls.contains_key("games of iteration-001 by start of piece"));
    assert!(executor.calls.contains_key("games of iteration-002 by "), "{:?}", executor.calls);

    let out = folder.options().out;
    for file in ["start.safetensors", "iteration-004/games.binpack", "iteration-004/network.safetensors", "loop.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert_eq!(Results::load(&out).expect("saved").learning_loop, results.learning_loop);
}

#[test]
fn a_loop_goes_on_wherever_it_was_interrupted() {
    let whole = ExperimentFolder::new();
    let mut all = executor();
    let expected = whole.run(&text(&[]), &mut all).expect("done");
    let calls: u32 = all.calls.values().sum();
    let folder = ExperimentFolder::new();
    for left in 0..calls {
        let mut killed = FakeExecutor { calls_left: Some(1), ..executor() };
        let is_killed = folder.run(&text(&[]), &mut killed).is_err();
        assert_eq!(is_killed, left + 1 < calls, "{left} of {calls}");
    }
    let mut last = executor();
    let results = folder.run(&text(&[]), &mut last).expect("done");
    assert!(last.calls.is_empty(), "{:?}", last.calls);
    assert_eq!(timeless(record(&results)), timeless(record(&expected)));

    // More iterations go on with the same ones; other settings are another loop.
    let more = text(&[("iterations = 4", "iterations = 5")]);
    let results = folder.run(&more, &mut last).expect("done");
    assert_eq!(record(&results).iterations.len(), 5);
    assert_eq!(last.calls.get("train piece Eval 1"), Some(&1));
    let other = folder.run(&text(&[("games      = 10", "games = 11")]), &mut executor()).expect_err("another loop");
    assert!(other.to_string().contains("holds a loop with other settings"), "{other}");
    let options = RunnerOptions { fresh: true, ..folder.options() };
    let replaced = folder.experiment(&text(&[("games      = 10", "games = 11")])).expect("read");
    Runner::run(&replaced, &mut executor(), &options, &mut RecordingMonitor::default()).expect("replaced");
}

#[test]
fn lost_files_are_made_again() {
    let folder = ExperimentFolder::new();
    let two = text(&[("iterations = 4", "iterations = 2")]);
    folder.run(&two, &mut executor()).expect("done");
    let games = folder.options().out.join("iteration-002/games.binpack");
    let content = std::fs::read(&games).expect("there");
    std::fs::remove_file(&games).expect("removed");
    let mut again = executor();
    folder.run(&two, &mut again).expect("done");
    assert_eq!(std::fs::read(&games).expect("there"), content);
    assert_eq!(again.calls.values().sum::<u32>(), 1, "{:?}", again.calls);
}

/// A loop that goes on looks at its finished steps first; its record stays as it is meanwhile.
#[test]
fn the_record_of_a_resumed_loop_stays() {
    let folder = ExperimentFolder::new();
    folder.run(&text(&[]), &mut executor()).expect("done");
    let file = folder.options().out.join("loop.json");
    let whole = std::fs::read_to_string(&file).expect("there");
    // As in a folder without its trainings: the first game fails.
    let other = ExperimentFolder::new();
    std::fs::create_dir_all(&other.options().out).expect("made");
    std::fs::write(other.options().out.join("loop.json"), &whole).expect("written");
    let mut failing = FakeExecutor { calls_left: Some(1), ..executor() };
    other.run(&text(&[]), &mut failing).map(|_| ()).expect_err("it fails");
    let kept: LoopRecord = crate::record::read_json(&other.options().out.join("loop.json")).expect("a record");
    assert_eq!(kept, crate::record::read_json(&file).expect("a record"));
}

#[test]
fn two_loops_in_one_folder_are_refused() {
    let folder = ExperimentFolder::new();
    let out = folder.options().out;
    std::fs::create_dir_all(&out).expect("made");
    let lock = crate::output::file_lock::FileLock::of_folder(&out).expect("free");
    let error = folder.run(&text(&[]), &mut executor()).expect_err("locked").to_string();
    assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    drop(lock);
    folder.run(&text(&[]), &mut executor()).expect("done");
}

#[test]
fn games_begin_where_the_table_says() {
    let played = |keys: &str| {
        let folder = ExperimentFolder::new();
        std::fs::write(folder.folder.path().join("book.epd"), "4k3/8/8/8/8/8/8/4K2R w K -\n").expect("written");
        let one = text(&[("iterations = 4", "iterations = 1"), ("games      = 10", &format!("{keys}\ngames = 10"))]);
        folder.run(&one, &mut executor()).expect("done");
        let name = if keys.contains("chess960") { "games.vf" } else { "games.binpack" };
        std::fs::read_to_string(folder.options().out.join("iteration-001").join(name)).expect("there")
    };
    assert!(played("").ends_with("None, (8, 9), within 1000"));
    assert!(played("chess960 = true\nopening_bound = 300").ends_with("Some(Chess960), (8, 9), within 300"));
    assert!(played("double_chess960 = true\nrandom_plies = [2, 4]").contains("Some(DoubleChess960), (2, 4)"));
    let book = played("openings = \"book.epd\"");
    assert!(book.contains("book.epd") && book.contains("(1, 4)"), "{book}");
}

#[test]
fn hours_end_a_loop() {
    let folder = ExperimentFolder::new();
    // A made-up training takes two seconds.
    let results = folder.run(&text(&[("iterations = 4", "hours = 0.0011")]), &mut executor()).expect("done");
    assert_eq!(record(&results).iterations.len(), 2);
    assert_eq!(record(&results).stopped.as_deref(), Some("the 0.0011 hours are over"));
}

#[test]
fn what_cannot_be_a_loop_is_refused() {
    let folder = ExperimentFolder::new();
    let refused = |changes: &[(&str, &str)], expected: &str| {
        let error = folder.run(&text(changes), &mut executor()).expect_err(expected);
        assert!(error.to_string().contains(expected) && error.is_request(), "{error}");
        assert!(!folder.options().out.join("iteration-001").exists());
    };
    refused(&[("iterations = 4\n", "")], "give iterations = 20, hours = 8 or both");
    refused(&[("nodes      = 50\n", "")], "give nodes = 5000 or soft_nodes = 5000");
    refused(&[("nodes      = 50\n", "nodes = 50\nsoft_nodes = 50\n")], "give nodes = 5000 or soft_nodes = 5000");
    refused(&[("games      = 10\n", "")], "give games = 2000 or positions = 200_000");
    refused(&[("games      = 10", "random_plies = [9, 8]\ngames = 10")], "the smaller number first");
    refused(&[("games      = 10", "random_plies = [8, 400]\ngames = 10")], "must not exceed 300");
    refused(&[("games      = 10", "random_plies = [0, 0]\ngames = 10")], "an opening gives the same game again");
    refused(&[("games      = 10", "opening_plies = 8\ngames = 10")], "opening_plies has no effect without openings");
    refused(&[("seeds = [1]", "from_unit = \"cp\"\nseeds = [1]")], "[loop] and from_unit cannot stand together");
    refused(
        &[("games      = 10", "openings = \"book.epd\"\nchess960 = true\ngames = 10")],
        "chess960 and double_chess960",
    );
    refused(&[("elo1       = 100", "elo0 = 100\nelo1 = 50")], "elo0 must be below elo1");
    refused(&[("seeds = [1]", "seeds = [1, 2]")], "one row with one set, and one seed");
    refused(&[("sets = [\"piece\"]", "sets = [\"piece\", \"compact\"]")], "one row with one set, and one seed");
    refused(&[("method = \"eval\"", "method = \"pqr\"")], "learns by eval alone");
    refused(&[("seeds = [1]", "data = \"games.pgn\"\nseeds = [1]")], "[loop] and data cannot stand together");
    refused(&[("nodes = 100", "equal_cost = 100")], "the gate is a match at equal nodes");
    refused(&[("[match]\nnodes = 100\npairs = 20\n", "")], "write [match] with nodes");
    // The fewest pairs that accept anything are named, and suffice.
    let error = folder.run(&text(&[("elo1       = 100", "elo1 = 1")]), &mut executor()).expect_err("undecidable");
    let error = error.to_string();
    assert!(error.contains("the gate can accept no network") && error.contains("[match] has 20 pairs"), "{error}");
    let needed = error.split_once("at least ").and_then(|(_, rest)| rest.split_once(' ')).expect("a number").0;
    folder
        .experiment(&text(&[("elo1       = 100", "elo1 = 1"), ("pairs = 20", &format!("pairs = {needed}"))]))
        .expect("enough");
    std::fs::write(folder.folder.path().join("empty.epd"), "").expect("written");
    refused(&[("games      = 10", "openings = \"empty.epd\"\ngames = 10")], "no playable opening");
    refused(&[("nodes = 100", "openings = \"empty.epd\"\nnodes = 100")], "no playable opening");
    refused(&[("games      = 10", "openings = \"none.epd\"\ngames = 10")], "no file none.epd");
}
