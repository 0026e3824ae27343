//! Sets with fewer features: the same definition under a selection.

use super::analysis;
use super::error::{FeatureError, SourceText};
use super::selection::ranges;
use super::set::FeatureSet;

/// The name of the whole set inside a reduced one's definition.
const WHOLE: &str = "whole";

impl FeatureSet {
    /// The set with these features only, renumbered in this order.
    ///
    /// # Errors
    /// When none is listed, one twice, or one that does not exist, or the set is too large to select from.
    pub fn keeping(&self, kept: &[u32]) -> Result<FeatureSet, FeatureError> {
        let text = |key: &str, value: &str| (key.to_owned(), toml::Value::String(value.to_owned()));
        let whole: toml::Table = toml::from_str(self.definition())
            .map_err(|error| SourceText::new(self.name(), self.definition()).error(error.message(), 0..0, None))?;
        let mut table = toml::Table::from_iter([
            text("name", self.name()),
            text("features", WHOLE),
            text("selected", &ranges(kept.iter().copied())),
        ]);
        table.extend(self.about().map(|about| text("about", about)));
        let definitions = toml::Table::from_iter([(WHOLE.to_owned(), toml::Value::Table(whole))]);
        table.insert("definitions".into(), toml::Value::Table(definitions));
        FeatureSet::from_definition(&table.to_string())
    }

    /// The features that are not proved dead, ascending: the rows that can ever matter.
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
    fn a_reduced_set_is_the_whole_one_renumbered() {
        let whole = FeatureSet::resolve("piece").expect("shipped");
        let kept = whole.not_dead();
        assert_eq!(kept.len(), 768 - 32);
        let set = whole.keeping(&kept).expect("a set");
        assert_eq!((set.name(), set.about(), set.num_features()), (whole.name(), whole.about(), 736));
        assert_ne!(set.identity(), whole.identity());
        let board = Board::default();
        let expected = whole.reference(&board, Perspective::Black);
        let back: Vec<u32> =
            set.reference(&board, Perspective::Black).into_iter().map(|index| kept[index as usize]).collect();
        assert_eq!(back, expected);
        assert!(whole.keeping(&[]).is_err() && whole.keeping(&[768]).is_err() && whole.keeping(&[3, 3]).is_err());
        let twice = set.keeping(&[5, 4]).expect("a set of a reduced set");
        assert_eq!(twice.num_features(), 2);
    }
}
