//! The sections of the constant texts that a file needs.

use crate::export::Language;
use crate::features::code::mentions;

/// The marker before the names that a section defines: functions with an opening bracket.
const MARKER: &str = "//# ";

/// What a file needs: for its functions, and what of that reads its types.
pub struct Sections {
    pub prelude: String,
    pub helpers: String,
}

impl Sections {
    /// The sections that `code` uses, with those that they use themselves.
    pub fn needed(language: Language, code: &str) -> Sections {
        let prelude = sections(language.source().prelude());
        let helpers = sections(language.choose(include_str!("helpers.rs.txt"), include_str!("helpers.c.txt")));
        let all: Vec<(&str, &str)> = prelude.iter().chain(&helpers).copied().collect();
        let mut used = vec![false; all.len()];
        let mut pending = vec![code];
        while let Some(code) = pending.pop() {
            for (at, (names, text)) in all.iter().enumerate() {
                if !used[at] && names.split(' ').any(|name| uses(code, name)) {
                    used[at] = true;
                    pending.push(text);
                }
            }
        }
        let text = |range: std::ops::Range<usize>| -> String {
            range.filter(|at| used[*at]).map(|at| format!("{}\n\n", all[at].1.trim_end())).collect()
        };
        Sections { prelude: text(0..prelude.len()), helpers: text(prelude.len()..all.len()) }
    }
}

/// Names and text of each section.
fn sections(text: &str) -> Vec<(&str, &str)> {
    text.split(MARKER).skip(1).filter_map(|section| section.split_once('\n')).collect()
}

fn uses(code: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    match name.strip_suffix('(') {
        Some(_) => code.match_indices(name).any(|(at, _)| !code[..at].ends_with(is_part)),
        None => mentions(code, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_brings_those_that_it_uses() {
        let Sections { prelude, helpers } = Sections::needed(Language::C, "fsb_cancel(added, removed);");
        assert!(helpers.contains("void fsb_sort") && !helpers.contains("fsb_orient"), "{helpers}");
        assert!(prelude.is_empty(), "{prelude}");
        let Sections { prelude, helpers } = Sections::needed(Language::Rust, "rook(1, 2); Pieces::of(board)");
        for name in ["fn rook(", "fn along(", "struct Pieces", "fn of("] {
            assert!(prelude.contains(name) || helpers.contains(name), "{name}: {prelude}{helpers}");
        }
        assert!(!helpers.contains("fn cancel("));
    }
}
