//! A TOML file as one value, and where its keys and values are written.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::units::SortedMap;

/// The tables and values of a TOML file. A path names a key with the tables and places in arrays above it, as
/// `runs.0.train.decay`.
pub struct Document {
    root: Value,
    places: SortedMap<String, KeySpan>,
}

/// The bytes of the text that a key and its value take; for an element of an array, both are the element's.
#[derive(Clone)]
struct KeySpan {
    key: Range<usize>,
    value: Range<usize>,
}

impl Document {
    /// # Errors
    /// If the text is no TOML.
    pub fn parse(text: &str) -> Result<Document, Error> {
        Document::new(DeTable::parse(text)?)
    }

    /// # Errors
    /// If a number is too large.
    pub fn new(root: Spanned<DeTable<'_>>) -> Result<Document, Error> {
        let mut places = SortedMap::new();
        add_table(&mut places, "", root.get_ref());
        Ok(Document { root: Value::deserialize(toml::Deserializer::from(root))?, places })
    }

    /// The whole file.
    #[must_use]
    pub const fn root(&self) -> &Value {
        &self.root
    }

    /// Whether the file has this key.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// The byte at which a key is written; the byte of the nearest table around it if the file does not have the key.
    #[must_use]
    pub fn byte_of_key(&self, path: &str) -> usize {
        self.span_of_key(path).start
    }

    /// The byte at which a key's value begins, as [`Document::byte_of_key`].
    #[must_use]
    pub fn byte_of_value(&self, path: &str) -> usize {
        self.span_of_value(path).start
    }

    /// The bytes of a key, or of the nearest table around it.
    #[must_use]
    pub fn span_of_key(&self, path: &str) -> Range<usize> {
        match self.nearest(path) {
            Some((found, place)) if found == path => place.key.clone(),
            Some((_, place)) => place.value.clone(),
            None => 0..0,
        }
    }

    /// The bytes of a key's value, or of the nearest table around it.
    #[must_use]
    pub fn span_of_value(&self, path: &str) -> Range<usize> {
        match self.nearest(path) {
            Some((_, place)) => place.value.clone(),
            None => 0..0,
        }
    }

    /// The longest beginning of a path that the file has.
    fn nearest<'a>(&self, path: &'a str) -> Option<(&'a str, &KeySpan)> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some((path, place));
            }
            path = path.rsplit_once('.')?.0;
        }
    }
}

fn add_table(places: &mut SortedMap<String, KeySpan>, path: &str, table: &DeTable<'_>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        add(places, path, key.span(), value);
    }
}

fn add(places: &mut SortedMap<String, KeySpan>, path: String, key: Range<usize>, value: &Spanned<DeValue<'_>>) {
    match value.get_ref() {
        DeValue::Table(table) => add_table(places, &path, table),
        DeValue::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                add(places, format!("{path}.{index}"), element.span(), element);
            }
        }
        _ => {}
    }
    places.insert(path, KeySpan { key, value: value.span() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_found() {
        let text = "name = 'x'\n[train]\nl1 = 8\n[[runs]]\nsets = ['a', 'b']\ntrain = { decay = 2 }\n";
        let document = Document::parse(text).expect("a document");
        let at = |byte: usize| text[byte..].chars().next();
        assert_eq!([at(document.byte_of_key("name")), at(document.byte_of_value("name"))], [Some('n'), Some('\'')]);
        assert_eq!(&text[document.byte_of_key("train.l1")..][..6], "l1 = 8");
        assert_eq!(&text[document.byte_of_key("runs.0.sets.1")..][..3], "'b'");
        assert_eq!(&text[document.byte_of_key("runs.0.train.decay")..][..5], "decay");
        assert_eq!(&text[document.span_of_key("runs.0.train.decay")], "decay");
        assert_eq!(&text[document.span_of_value("runs.0.sets")], "['a', 'b']");
        // A key that is missing, or a part of a value.
        assert_eq!(&text[document.byte_of_key("train.epochs")..][..7], "[train]");
        assert_eq!(&text[document.byte_of_value("runs.0.train.decay.x")..][..1], "2");
        assert_eq!(document.byte_of_key("other"), 0);
        assert!(document.contains("runs.0.sets") && !document.contains("runs.1"));
    }
}
