//! Deserialises from a [`Value`], with errors that name the path of the value at fault.

use std::fmt::{self, Display, Formatter};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The path of the value or key at fault, as `runs.0.train.decay`.
    pub path: String,
    /// Whether the key itself is wrong, rather than its value.
    pub is_key: bool,
    pub message: String,
    has_path: bool,
}

impl ReadError {
    /// Adds the path, unless a value further inside has added its own.
    fn at(self, path: Path<'_>) -> ReadError {
        if self.has_path { self } else { ReadError { path: path.to_string(), has_path: true, ..self } }
    }

    fn at_key(self, path: Path<'_>) -> ReadError {
        ReadError { is_key: true, ..self }.at(path)
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: Display>(message: T) -> ReadError {
        ReadError { path: String::new(), is_key: false, message: message.to_string(), has_path: false }
    }
}

/// Reads a value, which is called `path` in errors.
///
/// # Errors
/// If it is no `T`.
pub fn read<T: DeserializeOwned>(value: &Value, path: &str) -> Result<T, ReadError> {
    T::deserialize(At { value, path: Path::Start(path) })
}

/// Reads a table whose keys belong to several structs.
pub struct TableParts<'a> {
    keys: &'a Map<String, Value>,
    path: &'a str,
    names: Vec<&'static str>,
}

impl<'a> TableParts<'a> {
    /// # Errors
    /// If the value is no table.
    pub fn new(value: &'a Value, path: &'a str) -> Result<TableParts<'a>, ReadError> {
        match value {
            Value::Object(keys) => Ok(TableParts { keys, path, names: Vec::new() }),
            _ => Err(<ReadError as de::Error>::custom("it must be a table").at(Path::Start(path))),
        }
    }

    /// Reads the struct whose fields are some of the keys.
    ///
    /// # Errors
    /// If a value does not fit its field.
    pub fn part<T: DeserializeOwned>(&mut self) -> Result<T, ReadError> {
        let names = field_names::<T>();
        self.names.extend(names);
        let own = self.keys.iter().filter(|(key, _)| names.contains(&key.as_str()));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        read(&Value::Object(own), self.path)
    }

    /// Checks that every key belongs to one of the structs.
    ///
    /// # Errors
    /// If one does not.
    pub fn finish(self) -> Result<(), ReadError> {
        let Some(key) = self.keys.keys().find(|key| !self.names.contains(&key.as_str())) else { return Ok(()) };
        let message = unknown_field(key, &self.names);
        let path = Path::Start(self.path);
        Err(<ReadError as de::Error>::custom(message).at_key(Path::Key(&path, key)))
    }
}

/// The message about a key that is none of these.
#[must_use]
pub fn unknown_field(key: &str, names: &[&str]) -> String {
    format!("unknown field `{key}`, expected one of `{}`", names.join("`, `"))
}

/// The names that a struct's fields have in files.
#[must_use]
pub fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It fails once it has the names.
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ReadError> {
        Err(de::Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, ReadError> {
        *self.0 = fields;
        Err(de::Error::custom("only the names are asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The path of a value.
#[derive(Copy, Clone)]
enum Path<'a> {
    Start(&'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Path::Start(path) => f.write_str(path),
            Path::Key(Path::Start(""), key) => f.write_str(key),
            Path::Key(table, key) => write!(f, "{table}.{key}"),
            Path::Index(array, index) => write!(f, "{array}.{index}"),
        }
    }
}

/// A value with its path.
#[derive(Copy, Clone)]
struct At<'a, 'p> {
    value: &'a Value,
    path: Path<'p>,
}

impl<'de> Deserializer<'de> for At<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let result = match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(values) => visitor.visit_seq(Elements { values, next: 0, path: &self.path }),
            Value::Object(keys) => visitor.visit_map(KeyAccess { entries: keys.iter(), value: None, path: &self.path }),
        };
        result.map_err(|error| error.at(self.path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self).map_err(|error| error.at(self.path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let result = match self.value {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Value::Object(keys) => {
                let entries = KeyAccess { entries: keys.iter(), value: None, path: &self.path };
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            _ => return self.deserialize_any(visitor),
        };
        result.map_err(|error: ReadError| error.at(self.path))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Elements<'a, 'p> {
    values: &'a [Value],
    next: usize,
    path: &'p Path<'p>,
}

impl<'de> SeqAccess<'de> for Elements<'de, '_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(value) = self.values.get(self.next) else { return Ok(None) };
        let path = Path::Index(self.path, self.next);
        self.next += 1;
        seed.deserialize(At { value, path }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len() - self.next)
    }
}

struct KeyAccess<'a, 'p> {
    entries: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
    path: &'p Path<'p>,
}

impl<'de> MapAccess<'de> for KeyAccess<'de, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        let read = seed.deserialize(BorrowedStrDeserializer::<ReadError>::new(key));
        read.map(Some).map_err(|error| error.at_key(Path::Key(self.path, key)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some((key, value)) = self.value.take() else { return Err(de::Error::custom("a value without a key")) };
        seed.deserialize(At { value, path: Path::Key(self.path, key) })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Plain,
        Sized(u8),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        width: f64,
        kinds: Vec<Kind>,
        #[serde(default)]
        pair: Option<(u8, i16)>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Other {
        name: String,
    }

    #[test]
    fn values_are_read() {
        let value = json!({ "width": 3, "kinds": ["plain", { "sized": 4 }], "pair": [1, -2] });
        let expected = Inner { width: 3.0, kinds: vec![Kind::Plain, Kind::Sized(4)], pair: Some((1, -2)) };
        assert_eq!(read::<Inner>(&value, "t"), Ok(expected));
        assert_eq!(read::<Option<u8>>(&Value::Null, ""), Ok(None));
    }

    #[test]
    fn errors_name_the_path() {
        let check = |value: Value, path: &str, is_key: bool, message: &str| {
            let error = read::<Inner>(&value, "t").expect_err("wrong");
            assert_eq!((error.path.as_str(), error.is_key), (path, is_key), "{error}");
            assert!(error.message.contains(message), "{error}");
        };
        check(json!({ "kinds": [] }), "t", false, "missing field `width`");
        check(json!({ "width": "x" }), "t.width", false, "expected f64");
        check(json!({ "width": 1, "kinds": ["plain", "round"] }), "t.kinds.1", false, "unknown variant `round`");
        check(json!({ "width": 1, "kinds": [{ "sized": 300 }] }), "t.kinds.0.sized", false, "300");
        check(json!({ "width": 1, "kinds": [], "pair": [1] }), "t.pair", false, "length 1");
        check(json!({ "width": 1, "hight": 2 }), "t.hight", true, "unknown field `hight`");
        check(json!(3), "t", false, "expected struct");
    }

    #[test]
    fn a_table_has_the_keys_of_its_parts() {
        let both = |value: &Value| {
            let mut table = TableParts::new(value, "t")?;
            let parts = (table.part::<Inner>()?, table.part::<Other>()?);
            table.finish().map(|()| parts)
        };
        let (inner, other) = both(&json!({ "name": "x", "kinds": [], "width": 1 })).expect("both");
        assert_eq!((inner.width, other.name.as_str()), (1.0, "x"));
        let error = both(&json!({ "kinds": [], "width": 1, "nam": 3 })).expect_err("unknown");
        assert_eq!((error.path.as_str(), error.is_key), ("t.nam", true));
        assert!(error.message.ends_with("expected one of `width`, `kinds`, `pair`, `name`"), "{error}");
        assert_eq!(both(&json!([])).expect_err("no table").to_string(), "t: it must be a table");
    }
}
