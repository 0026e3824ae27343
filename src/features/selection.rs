//! Selections: some indices of a definition's block sum, renumbered from 0 in the order they are listed. The key
//! `select` reads one from a file; [`FeatureSet::select`] makes one from a set.

use std::sync::Arc;

use super::analysis;
use super::definition;
use super::error::{ExpressionText, FeatureError, SourceText};
use super::library::DefinitionFile;
use super::set::FeatureSet;
use super::spec::{BlockSpec, DROPPED};
use super::syntax::Span;

/// Most features a definition may have before selection: the renumbering is a table.
const MAX_BEFORE: u32 = 1 << 24;

/// The selected indices in their new order, each with its span in the text.
pub struct Selection {
    indices: Vec<(u32, Span)>,
    text: ExpressionText,
}

impl Selection {
    /// Reads a file with one index per line; empty lines and text after `#` are skipped.
    ///
    /// # Errors
    /// When the file cannot be read or a line holds no index.
    pub fn read(file: &DefinitionFile) -> Result<Selection, FeatureError> {
        let text = ExpressionText { source: SourceText::new(file.origin(), &*file.text()?), offset: 0 };
        let content = text.source.text.clone();
        let mut indices = Vec::new();
        let mut line_start = 0;
        for line in content.split_inclusive('\n') {
            let uncommented = line.split('#').next().unwrap_or_default();
            let start = line_start + uncommented.len() - uncommented.trim_start().len();
            let word = uncommented.trim();
            line_start += line.len();
            if !word.is_empty() {
                let span = start..start + word.len();
                let index = word.parse().map_err(|_| text.at(format!("`{word}` is no index"), span.clone()))?;
                indices.push((index, span));
            }
        }
        Selection { indices, text }.nonempty()
    }

    /// Parses what [`Selection::ranges`] prints.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(content: &str, text: ExpressionText) -> Result<Selection, FeatureError> {
        let mut indices = Vec::new();
        let mut word_start = 0;
        for word in content.split_inclusive(' ') {
            let range = word.trim();
            let span = word_start..word_start + range.len();
            word_start += word.len();
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let error = || text.at(format!("`{range}` is no range of indices"), span.clone());
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { return Err(error()) };
            if first > last || last >= MAX_BEFORE {
                return Err(error());
            }
            indices.extend((first..=last).map(|index| (index, span.clone())));
            if indices.len() > MAX_BEFORE as usize {
                return Err(error());
            }
        }
        Selection { indices, text }.nonempty()
    }

    fn nonempty(self) -> Result<Selection, FeatureError> {
        if self.indices.is_empty() { Err(self.text.at("no index is selected", 0..0)) } else { Ok(self) }
    }

    /// Renumbers the blocks of a definition with `size` features; returns the number of features selected.
    ///
    /// # Errors
    /// When an index is not below `size` or is listed twice, or when `size` is too large.
    pub fn apply(&self, blocks: &mut [BlockSpec], size: u64) -> Result<u32, FeatureError> {
        if size > u64::from(MAX_BEFORE) {
            let message = format!("a selection is made from at most {MAX_BEFORE} features; here are {size}");
            return Err(self.text.at(message, 0..0));
        }
        let mut renumbered = vec![DROPPED; size as usize];
        for (new, (index, span)) in self.indices.iter().enumerate() {
            let Some(slot) = renumbered.get_mut(*index as usize) else {
                let message = format!("index {index} is selected, and the definition has {size} features");
                return Err(self.text.at(message, span.clone()));
            };
            if *slot != DROPPED {
                return Err(self.text.at(format!("index {index} is selected twice"), span.clone()));
            }
            *slot = new as u32;
        }
        for block in blocks {
            let renumber = |element: u32| match block.index_of(element) {
                Some(index) => renumbered[index as usize],
                None => DROPPED,
            };
            block.renumbering = Some((0..block.product.size).map(renumber).collect::<Arc<[u32]>>());
            block.offset = 0;
        }
        Ok(self.indices.len() as u32)
    }

    /// The indices in order, separated by spaces; consecutive ones as `first-last`.
    pub fn ranges(&self) -> String {
        ranges(self.indices.iter().map(|(index, _)| *index))
    }
}

/// First and last index of every run of consecutive indices.
pub fn index_ranges(indices: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in indices {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    ranges
}

/// Indices in order, separated by spaces; consecutive ones as `first-last`.
pub(super) fn ranges(indices: impl IntoIterator<Item = u32>) -> String {
    let range = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    index_ranges(indices).into_iter().map(range).collect::<Vec<_>>().join(" ")
}

impl FeatureSet {
    /// The set with only these features, renumbered in this order.
    ///
    /// # Errors
    /// When the list is empty, holds an index twice or an index that does not exist, or the set is too large to select
    /// from.
    pub fn select(&self, indices: &[u32]) -> Result<FeatureSet, FeatureError> {
        let indices = ranges(indices.iter().copied());
        let text = definition::of_selection(self.name(), self.about(), self.definition(), indices)?;
        FeatureSet::from_definition(&text)
    }

    /// The features that are not proved dead, ascending: no other row can ever matter.
    pub fn not_dead(&self) -> Vec<u32> {
        let dead = analysis::dead(self);
        (0..self.num_features()).filter(|index| dead.binary_search(index).is_err()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{Board, Perspective};

    #[test]
    fn a_selection_is_the_complete_set_renumbered() {
        let complete = FeatureSet::resolve("piece").expect("shipped");
        let indices = complete.not_dead();
        assert_eq!(indices.len(), 768 - 32);
        let set = complete.select(&indices).expect("a set");
        assert_eq!((set.name(), set.about(), set.num_features()), (complete.name(), complete.about(), 736));
        assert_ne!(set.identity(), complete.identity());
        let board = Board::default();
        let active = set.reference(&board, Perspective::Black).into_iter().map(|index| indices[index as usize]);
        assert_eq!(active.collect::<Vec<_>>(), complete.reference(&board, Perspective::Black));
        assert!([&[][..], &[768], &[3, 3]].into_iter().all(|indices| complete.select(indices).is_err()));
        let nested = set.select(&[5, 4]).expect("a selection of a selection");
        assert_eq!(nested.num_features(), 2);
    }
}
