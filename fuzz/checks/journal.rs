//! Journals, and the entries of generated games and of labels.

use std::path::Path;

use fsbench::chess::Chess;
use fsbench::data::{Record, Sample};
use fsbench::pipeline::generate::FinishedGame;
use fsbench::pipeline::{Journal, label};
use fsbench::units::Ply;

use super::file;

/// Lines survive a second opening, and an entry that is accepted is written back as it was read. The input is read as it
/// is, and with the checksum of each line repaired.
pub fn journal(bytes: &[u8]) {
    read_twice(bytes);
    read_twice(&repaired(bytes));
}

fn read_twice(bytes: &[u8]) {
    let path = file("x.journal", bytes);
    let head = serde_json::json!({ "journal": "generate", "version": 1, "settings": { "seed": 7 } });
    let start = Chess::default();
    let sample = Sample { position: start, game: 0, ply: Ply(0), mv: None, score: None, result: None };
    let records = [Record::pack(&sample).expect("the initial position")];
    let read = |path: &Path| {
        let mut lines = Vec::new();
        let journal = Journal::open(path, "games", &head, &mut |_, line| {
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

/// The checksums as src/pipeline/journal.rs describes them.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(stored) = line.strip_suffix(b"\n") else {
            all.extend(line);
            continue;
        };
        let object = stored.strip_suffix(b"\"}");
        let rest = object.unwrap_or(stored);
        let rest = &rest[..rest.len().saturating_sub(8)];
        let rest = rest.strip_suffix(if object.is_some() { &b",\"crc32\":\""[..] } else { b" " }).unwrap_or(rest);
        let text = [rest, if object.is_some() { b"}" } else { b"" }].concat();
        let sum = format!("{:08x}", crc32fast::hash(&text));
        all.extend(rest);
        all.extend(
            match object {
                Some(_) => format!(",\"crc32\":\"{sum}\"}}\n"),
                None => format!(" {sum}\n"),
            }
            .bytes(),
        );
    }
    all
}

fn check_game(line: &str) {
    let Ok(game) = FinishedGame::from_entry(line) else { return };
    let again = FinishedGame::from_entry(&game.to_entry().expect("JSON")).expect("just written");
    assert_eq!(again, game);
    game.pgn(None);
    let _ = fsbench::pipeline::generate::samples_of(&game);
}
