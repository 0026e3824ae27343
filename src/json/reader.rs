//! Deserialises from a [`Value`], with errors that name the path of the value at fault. Each visitor gets the one kind of
//! value that it asks for, so little code is compiled for each type.

use std::cell::Cell;
use std::fmt::{self, Display, Formatter};

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

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
    /// An error about the value at a path.
    #[must_use]
    pub fn of_value(path: &str, message: &str) -> ReadError {
        ReadError { path: path.into(), is_key: false, message: message.into(), has_path: true }
    }

    /// An error about a key of the table at a path.
    #[must_use]
    pub fn of_key(table: &str, key: &str, message: String) -> ReadError {
        let path = Path::Key(&Path::Start(table), key).to_string();
        ReadError { path, is_key: true, message, has_path: true }
    }

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
pub fn from_value<T: DeserializeOwned>(value: &Value, path: &str) -> Result<T, ReadError> {
    T::deserialize(At { value, path: Path::Start(path) })
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

impl<'a> At<'a, '_> {
    fn wrong_type(self, expected: &dyn Expected) -> ReadError {
        let found = match self.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::String(text) => Unexpected::Str(text),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        <ReadError as de::Error>::invalid_type(found, expected).at(self.path)
    }

    /// The variant of an enum: a text, or a table whose only key is the variant's name.
    fn variant(&self) -> Option<Variant<'a, '_>> {
        let (name, value) = match self.value {
            Value::String(name) => (name, None),
            Value::Object(keys) if keys.len() == 1 => keys.iter().next().map(|(name, value)| (name, Some(value)))?,
            _ => return None,
        };
        Some(Variant { name, value, path: &self.path })
    }
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
            Value::Array(_) => return self.deserialize_seq(visitor),
            Value::Object(_) => return self.deserialize_map(visitor),
        };
        result.map_err(|error: ReadError| error.at(self.path))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::String(text) = self.value else { return Err(self.wrong_type(&visitor)) };
        visitor.visit_borrowed_str(text).map_err(|error: ReadError| error.at(self.path))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::Array(values) = self.value else { return Err(self.wrong_type(&visitor)) };
        let next = Cell::new(0);
        let value = visitor.visit_seq(Elements { values, next: &next, path: &self.path });
        let value = value.map_err(|error: ReadError| error.at(self.path))?;
        if next.get() < values.len() { Err(too_long(values.len(), self.path)) } else { Ok(value) }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::Object(keys) = self.value else { return Err(self.wrong_type(&visitor)) };
        let entries = Entries { entries: keys.iter(), value: None, path: &self.path };
        visitor.visit_map(entries).map_err(|error: ReadError| error.at(self.path))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self).map_err(|error: ReadError| error.at(self.path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let Some(variant) = self.variant() else { return Err(self.wrong_type(&visitor)) };
        visitor.visit_enum(variant).map_err(|error: ReadError| error.at(self.path))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
    }
}

fn too_long(length: usize, path: Path<'_>) -> ReadError {
    <ReadError as de::Error>::invalid_length(length, &"fewer elements").at(path)
}

struct Elements<'a, 'p> {
    values: &'a [Value],
    next: &'p Cell<usize>,
    path: &'p Path<'p>,
}

impl<'a, 'p> Elements<'a, 'p> {
    fn next(&self) -> Option<At<'a, 'p>> {
        let index = self.next.get();
        let value = self.values.get(index)?;
        self.next.set(index + 1);
        Some(At { value, path: Path::Index(self.path, index) })
    }
}

impl<'de> SeqAccess<'de> for Elements<'de, '_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        match self.next() {
            Some(element) => seed.deserialize(element).map(Some),
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len() - self.next.get())
    }
}

struct Entries<'a, 'p> {
    entries: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
    path: &'p Path<'p>,
}

impl<'a> Entries<'a, '_> {
    fn next_key(&mut self) -> Option<&'a str> {
        let (key, value) = self.entries.next()?;
        self.value = Some((key, value));
        Some(key)
    }

    /// The value of the key that was read last.
    fn value(&mut self) -> Result<At<'a, '_>, ReadError> {
        let Some((key, value)) = self.value.take() else { return Err(de::Error::custom("a value without a key")) };
        Ok(At { value, path: Path::Key(self.path, key) })
    }
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some(key) = self.next_key() else { return Ok(None) };
        match seed.deserialize(Name(key)) {
            Ok(read) => Ok(Some(read)),
            Err(error) => Err(error.at_key(Path::Key(self.path, key))),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        seed.deserialize(self.value()?)
    }
}

/// A key, or the name of an enum's variant. JSON's keys are texts; those of a map by numbers are numbers as text.
struct Name<'a>(&'a str);

impl<'de> Name<'de> {
    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let Ok(number) = self.0.parse() {
            visitor.visit_u64(number)
        } else if let Ok(number) = self.0.parse() {
            visitor.visit_i64(number)
        } else {
            visitor.visit_borrowed_str(self.0)
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.integer(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.0)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_enum(Variant { name: self.0, value: None, path: &Path::Start("") })
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Variant<'a, 'p> {
    name: &'a str,
    /// `None` for a variant that is written as its name alone.
    value: Option<&'a Value>,
    path: &'p Path<'p>,
}

impl<'a> Variant<'a, '_> {
    fn value(&self) -> Result<At<'a, '_>, ReadError> {
        match self.value {
            Some(value) => Ok(At { value, path: Path::Key(self.path, self.name) }),
            None => Err(de::Error::custom(format!("`{}` needs a value, as in {{ {} = … }}", self.name, self.name))),
        }
    }
}

impl<'de, 'p> EnumAccess<'de> for Variant<'de, 'p> {
    type Error = ReadError;
    type Variant = Variant<'de, 'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Variant<'de, 'p>), ReadError> {
        Ok((seed.deserialize(Name(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.value {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(self.value()?.wrong_type(&"the name alone")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.value()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.value()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.value()?.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::from_value;
    use crate::units::SortedMap;

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

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Name {
        West,
    }

    #[test]
    fn values_are_read() {
        let value = json!({ "width": 3, "kinds": ["plain", { "sized": 4 }], "pair": [1, -2] });
        let expected = Inner { width: 3.0, kinds: vec![Kind::Plain, Kind::Sized(4)], pair: Some((1, -2)) };
        assert_eq!(from_value::<Inner>(&value, "t"), Ok(expected));
        assert_eq!(from_value::<Option<u8>>(&Value::Null, ""), Ok(None));
    }

    #[test]
    fn errors_name_the_path() {
        let check = |value: Value, path: &str, is_key: bool, message: &str| {
            let error = from_value::<Inner>(&value, "t").expect_err("wrong");
            assert_eq!((error.path.as_str(), error.is_key), (path, is_key), "{error}");
            assert!(error.message.contains(message), "{error}");
        };
        check(json!({ "kinds": [] }), "t", false, "missing field `width`");
        check(json!({ "width": "x" }), "t.width", false, "expected f64");
        check(json!({ "width": 1, "kinds": ["plain", "round"] }), "t.kinds.1", false, "unknown variant `round`");
        check(json!({ "width": 1, "kinds": [{ "sized": 300 }] }), "t.kinds.0.sized", false, "300");
        check(json!({ "width": 1, "kinds": [], "pair": [1] }), "t.pair", false, "length 1");
        check(json!({ "width": 1, "hight": 2 }), "t.hight", true, "unknown field `hight`");
        check(json!({ "width": 1, "kinds": [], "pair": [1, 2, 3] }), "t.pair", false, "length 3");
        check(json!({ "width": 1, "kinds": ["sized"] }), "t.kinds.0", false, "`sized` needs a value");
        check(json!({ "width": 1, "kinds": [{ "plain": 1 }] }), "t.kinds.0.plain", false, "expected the name alone");
        check(json!({ "width": 1, "kinds": [{ "plain": null, "sized": 1 }] }), "t.kinds.0", false, "enum Kind");
        check(json!(3), "t", false, "expected struct");
        check(json!([1, []]), "t", false, "expected struct");
    }

    #[test]
    fn keys_may_be_numbers_and_variants() {
        let numbers: SortedMap<i16, u8> = from_value(&json!({ "-3": 1, "40": 2 }), "").expect("numbers");
        assert_eq!(numbers, SortedMap::from([(-3, 1), (40, 2)]));
        let names: SortedMap<Name, u8> = from_value(&json!({ "west": 1 }), "").expect("names");
        assert_eq!(names, SortedMap::from([(Name::West, 1)]));
        let check = |key: &str, message: &str| {
            let error = from_value::<SortedMap<u8, u8>>(&json!({ key: 1 }), "t").expect_err("no number");
            assert_eq!((error.path, error.is_key), (format!("t.{key}"), true));
            assert!(error.message.contains(message), "{}", error.message);
        };
        check("x", "invalid type: string \"x\", expected u8");
        check("300", "invalid value: integer `300`, expected u8");
    }
}
