//! `select`: the indices of a definition's block sum that are kept, renumbered from 0 in the order they are listed.

use std::sync::Arc;

use super::error::{ExpressionText, FeatureError, SourceText};
use super::library::Found;
use super::spec::{BlockSpec, DROPPED};
use super::syntax::Span;

/// Most features a definition may have before selection: the renumbering is a table.
const MAX_BEFORE: u32 = 1 << 24;

/// Kept indices in their new order, and where each is written.
pub struct Selection {
    indices: Vec<(u32, Span)>,
    text: ExpressionText,
}

impl Selection {
    /// From a file with one index a line; empty lines and what follows `#` are passed over.
    ///
    /// # Errors
    /// When the file cannot be read or a line holds no index.
    pub fn read(file: &Found) -> Result<Selection, FeatureError> {
        let text = ExpressionText { source: SourceText::new(file.origin(), &*file.text()?), offset: 0 };
        let content = text.source.text.clone();
        let mut indices = Vec::new();
        let mut at = 0;
        for line in content.split_inclusive('\n') {
            let written = line.split('#').next().unwrap_or_default();
            let start = at + written.len() - written.trim_start().len();
            let word = written.trim();
            at += line.len();
            if !word.is_empty() {
                let span = start..start + word.len();
                let index = word.parse().map_err(|_| text.at(format!("`{word}` is no index"), span.clone()))?;
                indices.push((index, span));
            }
        }
        Selection { indices, text }.nonempty()
    }

    /// From the form that [`Selection::ranges`] gives.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(content: &str, text: ExpressionText) -> Result<Selection, FeatureError> {
        let mut indices = Vec::new();
        let mut at = 0;
        for word in content.split_inclusive(' ') {
            let range = word.trim();
            let span = at..at + range.len();
            at += word.len();
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let wrong = || text.at(format!("`{range}` is no range of indices"), span.clone());
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { return Err(wrong()) };
            if first > last || last >= MAX_BEFORE {
                return Err(wrong());
            }
            indices.extend((first..=last).map(|index| (index, span.clone())));
            if indices.len() > MAX_BEFORE as usize {
                return Err(wrong());
            }
        }
        Selection { indices, text }.nonempty()
    }

    fn nonempty(self) -> Result<Selection, FeatureError> {
        match self.indices.is_empty() {
            true => Err(self.text.at("no index is selected", 0..0)),
            false => Ok(self),
        }
    }

    /// Renumbers the blocks of a definition with `size` features; gives the number of features left.
    ///
    /// # Errors
    /// When an index is not below `size` or is listed twice, or there are too many features to choose from.
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
            block.kept = Some((0..block.product.size).map(renumber).collect::<Arc<[u32]>>());
            block.offset = 0;
        }
        Ok(self.indices.len() as u32)
    }

    /// The indices in order, runs as `first-last`, between blanks.
    pub fn ranges(&self) -> String {
        ranges(self.indices.iter().map(|(index, _)| *index))
    }
}

/// Runs of indices that follow on each other, first and last.
pub fn runs(indices: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(index) => *last = index,
            _ => runs.push((index, index)),
        }
    }
    runs
}

/// As [`Selection::ranges`].
pub fn ranges(indices: impl IntoIterator<Item = u32>) -> String {
    let run = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs(indices).into_iter().map(run).collect::<Vec<_>>().join(" ")
}
