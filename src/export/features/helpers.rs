//! The sections of the constant text that a file needs.

use std::fmt::Write;

use super::dialect::{NumberType, mentions};
use super::tables::table_text;
use crate::export::Language;

const HELPERS_RS: &str = include_str!("../prelude/helpers.rs.txt");
const HELPERS_C: &str = include_str!("../prelude/helpers.c.txt");

/// The marker before a section's name.
const MARKER: &str = "//# ";

/// The text of the sections whose functions `code` calls, with those that they call themselves, in the order of the
/// file.
pub fn needed(language: Language, code: &str) -> String {
    let text = if language == Language::Rust { HELPERS_RS } else { HELPERS_C };
    let sections: Vec<(&str, &str)> =
        text.split(MARKER).skip(1).filter_map(|section| section.split_once('\n')).collect();
    let defined: Vec<Vec<String>> = sections.iter().map(|(_, text)| definitions(text)).collect();
    let mut used = vec![false; sections.len()];
    let mut pending = vec![code];
    while let Some(code) = pending.pop() {
        for (at, names) in defined.iter().enumerate() {
            if !used[at] && names.iter().any(|name| is_needed(code, name)) {
                used[at] = true;
                pending.push(sections[at].1);
            }
        }
    }
    let mut out = String::new();
    for ((_, text), _) in sections.iter().zip(&used).filter(|(_, used)| **used) {
        out += text.trim_end();
        out += "\n\n";
    }
    out
}

/// Whether the code calls a function or names a type or a constant, whose names have capitals or are `fsb_view`.
fn is_needed(code: &str, name: &str) -> bool {
    let is_function = !name.contains(char::is_uppercase) && name != "fsb_view";
    if is_function { calls(code, name) } else { mentions(code, name) }
}

fn calls(code: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(&format!("{name}(")).any(|(at, _)| !code[..at].ends_with(is_part))
}

/// The names that a section defines.
fn definitions(section: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let mut names = Vec::new();
    for line in section.lines() {
        let rust = ["fn ", "struct ", "const "].into_iter().find_map(|start| line.strip_prefix(start));
        if let Some(rest) = rust {
            names.push(word(rest));
        }
        if let Some(rest) = line.strip_prefix("static inline ").filter(|line| line.ends_with('{')) {
            let name = rest.split('(').next().unwrap_or_default();
            names.push(name.rsplit([' ', '*']).next().unwrap_or_default().to_owned());
        }
        if let Some(rest) = line.strip_prefix("} ").or_else(|| line.strip_prefix("#define ")) {
            names.push(word(rest));
        }
    }
    names
}

/// The tables of the board's geometry that `code` mentions.
pub fn geometry(language: Language, code: &str) -> String {
    let mut out = String::new();
    let [rays, reach, starts] = ["RAYS", "REACH", "REACH_START"].map(|name| language.table(name));
    let hex = |words: &[u64]| words.iter().map(|word| format!("{word:#018x}")).collect::<Vec<String>>();
    if mentions(code, &rays) {
        let about =
            "The squares beyond a square: east, north, northeast, northwest, west, south, southwest, southeast.";
        let words: Vec<u64> = STEPS.into_iter().flat_map(|step| (0..64).map(move |at| ray(at, step, 7))).collect();
        let _ = write!(out, "{}", table_text(language, &rays, NumberType::U64, 8, &hex(&words), about));
    }
    if mentions(code, &reach) || mentions(code, &starts) {
        let words: Vec<u64> = (0..7).flat_map(|kind| (0..64).map(move |at| reached(kind, at))).collect();
        let about = "The squares that a piece attacks on an empty board: own pawn, knight, bishop, rook, queen, king, \
            their pawn.";
        out += &table_text(language, &reach, NumberType::U64, 7, &hex(&words), about);
        if mentions(code, &starts) {
            let mut entries = Vec::new();
            for kind in words.chunks(64) {
                let mut before = 0;
                for word in kind {
                    entries.push(before);
                    before += word.count_ones();
                }
            }
            let about = "The number of attacked squares of all squares before, for the same pieces.";
            out += &table_text(language, &starts, NumberType::U16, 7, &entries, about);
        }
    }
    out
}

/// Change of file and rank.
type StepBy = (i32, i32);

const STEPS: [StepBy; 8] = [(1, 0), (0, 1), (1, 1), (-1, 1), (-1, 0), (0, -1), (-1, -1), (1, -1)];
const KNIGHT: [StepBy; 8] = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];

fn ray(from: u32, (files, ranks): StepBy, most: usize) -> u64 {
    let mut file = from as i32 % 8 + files;
    let mut rank = from as i32 / 8 + ranks;
    let mut bits = 0;
    for _ in 0..most {
        if !(0..8).contains(&file) || !(0..8).contains(&rank) {
            break;
        }
        bits |= 1u64 << (file + 8 * rank);
        file += files;
        rank += ranks;
    }
    bits
}

/// What `reach` numbers: pawns stand on ranks 2 to 7.
pub fn reached(kind: u32, from: u32) -> u64 {
    let all = |steps: &[StepBy], most: usize| steps.iter().fold(0, |bits, step| bits | ray(from, *step, most));
    let pawn = |forward: i32| if (8..56).contains(&from) { all(&[(-1, forward), (1, forward)], 1) } else { 0 };
    let straight = [STEPS[0], STEPS[1], STEPS[4], STEPS[5]];
    let oblique = [STEPS[2], STEPS[3], STEPS[6], STEPS[7]];
    match kind {
        0 => pawn(1),
        1 => all(&KNIGHT, 1),
        2 => all(&oblique, 7),
        3 => all(&straight, 7),
        4 => all(&STEPS, 7),
        5 => all(&STEPS, 1),
        _ => pawn(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_brings_those_that_it_calls() {
        let text = needed(Language::C, "fsb_cancel(added, removed);");
        assert!(text.contains("static inline void fsb_sort") && !text.contains("fsb_view"), "{text}");
        let text = needed(Language::Rust, "moves(view, 0, 1, 2)");
        for name in ["fn attacks(", "fn slide(", "struct View", "struct Bits", "fn oriented("] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(!text.contains("fn cancel("));
    }

    #[test]
    fn reaches_have_the_sizes_of_the_board() {
        let size = |kind| (0..64).map(|at| reached(kind, at).count_ones()).sum::<u32>();
        assert_eq!((0..7).map(size).collect::<Vec<_>>(), [84, 336, 560, 896, 1456, 420, 84]);
    }
}
