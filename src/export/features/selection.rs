//! Selections: the function that turns an element of a block's product into an index, or `NONE`.

use super::Generator;
use super::dialect::{FunctionParameter, NumberType};
use crate::export::Language;
use crate::features::spec::DROPPED;

impl Generator<'_> {
    /// The name of the function `(element) -> index` of a renumbering, in which `DROPPED` becomes `NONE`.
    pub(super) fn selection(&mut self, renumbering: &[u32]) -> String {
        let kept: Vec<(u32, u32)> = renumbering
            .iter()
            .enumerate()
            .filter(|(_, index)| **index != DROPPED)
            .map(|(element, index)| (element as u32, *index))
            .collect();
        let ascends = kept.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1);
        let lines = match renumbering.len() {
            size if ascends && size <= kept.len() * 64 => self.by_rank(renumbering, &kept),
            size if kept.len() * 8 < size => self.by_search(&kept),
            _ => self.by_table(renumbering),
        };
        self.add_function(
            "select",
            &[FunctionParameter::Number("element".to_owned(), NumberType::U32)],
            NumberType::U32,
            lines,
        )
    }

    /// Indices that ascend with the elements: a bit per element, and the index of the first of every 64.
    fn by_rank(&mut self, renumbering: &[u32], kept: &[(u32, u32)]) -> Vec<String> {
        let words: Vec<u64> = renumbering
            .chunks(64)
            .map(|chunk| {
                let bits = chunk.iter().enumerate().filter(|(_, index)| **index != DROPPED);
                bits.fold(0u64, |word, (at, _)| word | 1 << at)
            })
            .collect();
        let mut before = kept.first().map_or(0, |(_, index)| i64::from(*index));
        let starts: Vec<i64> = words
            .iter()
            .map(|word| {
                let start = before;
                before += i64::from(word.count_ones());
                start
            })
            .collect();
        let language = self.language;
        let kept = self.tables.words(language, "selected", &words, "The elements that are features, a bit for each.");
        let start =
            self.tables.list(language, "selected_start", &starts, "The index of the first of every 64 elements.");
        let none = language.table("NONE");
        match language {
            Language::Rust => [
                "let (word, bit) = ((element / 64) as usize, 1u64 << (element % 64));".to_owned(),
                format!("if {kept}[word] & bit == 0 {{"),
                format!("return {none};"),
                "}".to_owned(),
                format!("{start}[word] as u32 + ({kept}[word] & (bit - 1)).count_ones()"),
                "}".to_owned(),
            ]
            .into(),
            Language::C => [
                "const uint64_t bit = (uint64_t)1 << (element % 64);".to_owned(),
                format!("const uint64_t word = {kept}[element / 64];"),
                "if ((word & bit) == 0) {".to_owned(),
                format!("return {none};"),
                "}".to_owned(),
                format!("return {start}[element / 64] + fsb_popcount(word & (bit - 1));"),
                "}".to_owned(),
            ]
            .into(),
        }
    }

    /// Few elements: a binary search.
    fn by_search(&mut self, kept: &[(u32, u32)]) -> Vec<String> {
        let language = self.language;
        let elements: Vec<i64> = kept.iter().map(|(element, _)| i64::from(*element)).collect();
        let indices: Vec<i64> = kept.iter().map(|(_, index)| i64::from(*index)).collect();
        let elements =
            self.tables.words_of_32(language, "selected", &elements, "The elements that are features, ascending.");
        let indices = self.tables.list(language, "selected_index", &indices, "Their indices.");
        let none = language.table("NONE");
        match language {
            Language::Rust => [
                format!("match {elements}.binary_search(&element) {{"),
                format!("Ok(at) => {indices}[at] as u32,"),
                format!("Err(_) => {none},"),
                "}".to_owned(),
                "}".to_owned(),
            ]
            .into(),
            Language::C => [
                format!("uint32_t low = 0, high = {};", kept.len()),
                "while (low < high) {".to_owned(),
                "const uint32_t middle = (low + high) / 2;".to_owned(),
                format!("if ({elements}[middle] < element) {{"),
                "low = middle + 1;".to_owned(),
                "} else {".to_owned(),
                "high = middle;".to_owned(),
                "}".to_owned(),
                "}".to_owned(),
                format!("const int is_kept = low < {} && {}[low] == element;", kept.len(), elements),
                format!("return is_kept ? {indices}[low] : {none};"),
                "}".to_owned(),
            ]
            .into(),
        }
    }

    /// The index of every element plus one, 0 where there is none.
    fn by_table(&mut self, renumbering: &[u32]) -> Vec<String> {
        let language = self.language;
        let entry = |index: &u32| if *index == DROPPED { 0 } else { i64::from(*index) + 1 };
        let entries: Vec<i64> = renumbering.iter().map(entry).collect();
        let about = "The index of every element plus one; 0 of elements that are no features.";
        let table = self.tables.list(language, "selected", &entries, about);
        // 0 − 1 is NONE.
        let line = match language {
            Language::Rust => format!("({table}[element as usize] as u32).wrapping_sub(1)"),
            Language::C => format!("return (uint32_t){table}[element] - 1u;"),
        };
        vec![line, "}".to_owned()]
    }
}
