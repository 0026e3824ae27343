//! The examples of src/features/LANGUAGE.md hold.
//!
//! A fenced `toml` block is a definition file. Its lines that start with `#=` state facts, one each:
//!
//! ```text
//! #= 768 features              likewise `64 contexts`, `32 dead`, `768 virtual inputs`
//! #= white BOARD: 58 144 731   active features for White (or black), ascending; BOARD as in a FEN
//! #= BOARD e1d1: no refresh    or `refresh for white`, `refresh for black`: the perspectives that White's move refreshes
//! #= feature 144: TEXT         the feature in words
//! #= stride role(P): 2         the stride of an axis of the only block
//! #= lossless: yes             likewise `no`, `unknown`
//! #= identity of NAME          or `not identity of NAME`
//! #= warning: TEXT             one of the warnings
//! #= error: TEXT               the first line of the error begins so
//! ```
//!
//! A fenced `text` block with a file name behind `text` is a file beside the definitions that follow.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use fsbench::chess::{Board, BoardChange, Chess, Perspective, PieceBoard};
use fsbench::features::analysis::{Analysis, Budget, Lossless};
use fsbench::features::{Factors, FeatureSet, LANGUAGE_REFERENCE};
use shakmaty::fen::Fen;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Position};
use tempfile::TempDir;

/// A fenced block of the reference.
struct Fence {
    /// Line number of its first line.
    line: usize,
    /// What stands behind the backticks: language and, after a space, perhaps a file name.
    info: &'static str,
    text: String,
}

fn fences() -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut inside = false;
    for (number, line) in LANGUAGE_REFERENCE.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(info) if !inside => fences.push(Fence { line: number + 2, info, text: String::new() }),
            None if inside => fences.last_mut().unwrap().text += &format!("{line}\n"),
            _ => {}
        }
        inside ^= line.starts_with("```");
    }
    assert!(!inside, "the last fence is open");
    fences
}

#[test]
fn examples_hold() {
    let folder = TempDir::new().unwrap();
    let mut failures = Vec::new();
    let mut examples = 0;
    for Fence { line, info, text } in fences() {
        match info.split_once(' ').unwrap_or((info, "")) {
            ("text", "") => {}
            ("text", name) => fs::write(folder.path().join(name), text).unwrap(),
            ("toml", _) => {
                let path = folder.path().join("example.toml");
                fs::write(&path, &text).unwrap();
                let facts: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#= ")).collect();
                assert!(!facts.is_empty(), "the example in line {line} states no fact");
                let differences = facts.into_iter().filter_map(|fact| difference(&path, fact));
                failures.extend(differences.map(|difference| format!("LANGUAGE.md:{line}: {difference}")));
                examples += 1;
            }
            (language, _) => panic!("line {line}: a fence of {language}"),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(examples > 50, "{examples} examples found");
}

/// How the definition at `path` differs from a stated fact.
fn difference(path: &Path, fact: &str) -> Option<String> {
    let set = FeatureSet::resolve(path.to_str().unwrap());
    let actual = match (set.and_then(|set| Factors::of(&set).map(|_| set)), fact.strip_prefix("error: ")) {
        (Ok(set), None) => actual(&set, fact),
        (Ok(_), Some(_)) => "no error".to_owned(),
        (Err(error), None) => error.to_string(),
        (Err(error), Some(expected)) => match error.to_string().lines().next() {
            Some(line) if line.starts_with(expected) => fact.to_owned(),
            line => format!("error: {}", line.unwrap_or_default()),
        },
    };
    (actual != fact).then(|| format!("stated `{fact}`, found `{actual}`"))
}

/// The true form of a fact about a set.
fn actual(set: &FeatureSet, fact: &str) -> String {
    let (subject, stated) = fact.split_once(": ").unwrap_or((fact, ""));
    let words: Vec<&str> = subject.split(' ').collect();
    match words[..] {
        [_, noun @ ("feature" | "features")] => format!("{} {noun}", set.num_features()),
        [_, noun @ ("context" | "contexts")] => format!("{} {noun}", set.contexts()),
        [_, "dead"] => format!("{} dead", Analysis::of(set, |_, _| {}).tally().dead),
        [_, "virtual", "inputs"] => format!("{} virtual inputs", Factors::of(set).unwrap().unwrap().size),
        ["white", board] => format!("{subject}: {}", active(set, board, Perspective::White)),
        ["black", board] => format!("{subject}: {}", active(set, board, Perspective::Black)),
        ["feature", index] => match set.describe(index.parse().unwrap()) {
            Some(feature) => format!("{subject}: {}", feature.values),
            None => "no such feature".to_owned(),
        },
        ["stride", axis] => {
            let axis = set.blocks()[0].axes().iter().find(|known| known.name == axis).unwrap();
            format!("{subject}: {}", axis.stride)
        }
        ["lossless"] => format!("lossless: {}", Lossless::of(set).word()),
        ["identity", "of", name] | ["not", "identity", "of", name] => {
            let equal = FeatureSet::resolve(name).unwrap().identity() == set.identity();
            format!("{}identity of {name}", if equal { "" } else { "not " })
        }
        ["warning"] => {
            let warnings = set.warnings(&Analysis::of(set, |_, _| {}), Budget::STEPS);
            if warnings.iter().any(|warning| warning == stated) { fact.to_owned() } else { format!("{warnings:?}") }
        }
        [board, mv] => format!("{subject}: {}", refreshed(set, board, mv)),
        _ => "a fact of unknown form".to_owned(),
    }
}

fn active(set: &FeatureSet, board: &str, pov: Perspective) -> String {
    let board = Board::from_ascii_board_fen(board.as_bytes()).unwrap();
    let expected = set.reference(&board, pov);
    let mut active = Vec::new();
    set.encoder().encode(&board, pov, &mut active);
    active.sort_unstable();
    assert_eq!(active, expected, "{}", set.definition());
    active.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn refreshed(set: &FeatureSet, board: &str, mv: &str) -> String {
    let fen: Fen = format!("{board} w - - 0 1").parse().unwrap();
    let before: Chess = fen.into_position(CastlingMode::Standard).unwrap();
    let mv = mv.parse::<UciMove>().unwrap().to_move(&before).unwrap();
    let change = BoardChange::of(mv, before.turn());
    let after = change.applied_to(before.board());
    let [before, after] = [before.board(), &after].map(PieceBoard::of);
    let refreshes = |pov| set.encoder().refreshes(&before, &after, pov);
    match (refreshes(Perspective::White), refreshes(Perspective::Black)) {
        (false, false) => "no refresh".to_owned(),
        (true, false) => "refresh for white".to_owned(),
        (false, true) => "refresh for black".to_owned(),
        (true, true) => "refresh for both".to_owned(),
    }
}

/// The reference mentions every key, axis, source and word of the language.
#[test]
fn every_word_is_explained() {
    let words: HashSet<&str> = LANGUAGE_REFERENCE.split(|c: char| !c.is_ascii_alphabetic()).collect();
    let language = "name about features black flip rotate mirror none king left right multiplicity set bag buckets \
                    factor select square file rank diagonal antidiagonal role color bucket count reserved pieces moves \
                    attacks targets next east north northeast northwest for in if and or not abs own their pawn knight \
                    bishop rook queen king";
    for word in language.split_whitespace() {
        assert!(words.contains(word), "{word}");
    }
}
