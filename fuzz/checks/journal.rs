//! Journals, the lines of games and of labels, and a run's metrics.

use std::path::Path;

use fsbench::chess::Chess;
use fsbench::data::{Record, Sample};
use fsbench::output::checked::{in_envelope, open_envelope, with_line_sum};
use fsbench::pipeline::{Journal, label};
use fsbench::train::EpochMetrics;
use fsbench::train::run_dir::{METRICS, RunDir};
use fsbench::units::Ply;
#[cfg(feature = "report")]
use fsbench::{generate, play::PlayedGame};

use super::file;

/// Lines survive a second opening, and an entry that is accepted is written back as it was read. The input is read as
/// it is, and with the checksum of each line repaired, as a journal and as the metrics of a run.
pub fn journal(bytes: &[u8]) {
    for bytes in [bytes, &repaired(bytes)] {
        read_twice(bytes);
        metrics(bytes);
    }
}

/// The first line of a journal of matches, if the input begins so; else a journal's of generated games.
fn head_of(bytes: &[u8]) -> serde_json::Value {
    if bytes.starts_with(br#"{"journal":"match""#) {
        serde_json::json!({ "journal": "match", "version": 1, "about": { "seed": 7 } })
    } else {
        serde_json::json!({ "journal": "generate", "version": 1, "settings": { "seed": 7 } })
    }
}

fn read_twice(bytes: &[u8]) {
    let path = file("x.journal", bytes);
    let head = head_of(bytes);
    let start = Chess::default();
    let sample = Sample { position: start, game: 0, ply: Ply(0), mv: None, score: None, result: None };
    let records = [Record::pack(&sample).expect("the initial position")];
    let read = |path: &Path| {
        let mut lines = Vec::new();
        let journal = Journal::open(path, "games", &head, &mut |_, line| {
            #[cfg(feature = "report")]
            check_game(line);
            let _ = label::read_entry(line, &records);
            lines.push(line.to_owned());
            Ok(())
        });
        journal.map(|journal| (journal, lines))
    };
    let Ok((mut journal, mut lines)) = read(&path) else { return };
    journal.append("one more").expect("there is room");
    drop(journal);
    lines.push("one more".into());
    assert_eq!(read(&path).expect("opened before").1, lines);
}

/// The lines with the right checksums, in an envelope or at their end.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let stored = line.strip_suffix(b"\n").and_then(|stored| str::from_utf8(stored).ok());
        let Some(stored) = stored else {
            all.extend(line);
            continue;
        };
        let repaired = match open_envelope(stored) {
            Ok((content, _)) => in_envelope(content),
            Err(_) => with_line_sum(stored.rsplit_once(' ').map_or(stored, |(text, _)| text)),
        };
        all.extend(repaired.bytes().chain([b'\n']));
    }
    all
}

#[cfg(feature = "report")]
fn check_game(line: &str) {
    let Ok(game) = PlayedGame::from_journal(line) else { return };
    let again = PlayedGame::from_journal(&game.to_journal().expect("JSON")).expect("just written");
    assert_eq!(again, game);
    let names = ["first".to_owned(), "second".to_owned()];
    // A journal's owner compares the players with its schedule before it writes games.
    if game.white.max(game.black) < names.len() {
        let _ = game.pgn(&names);
        let _ = generate::pgn_of(&game, Some(&names));
    }
    let _ = generate::samples_of(&game);
}

fn metrics(bytes: &[u8]) {
    let path = file(METRICS, bytes);
    let run_dir = RunDir::open(path.parent().expect("in a folder")).expect("the folder exists");
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(!bytes.ends_with(b"\n"));
    let Ok(metrics) = run_dir.truncate_metrics(lines as u32) else { return };
    for epoch in metrics {
        let again: EpochMetrics =
            serde_json::from_str(&serde_json::to_string(&epoch).expect("JSON")).expect("just written");
        assert_eq!(again, epoch);
    }
}
