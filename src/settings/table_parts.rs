//! Tables of which several structs read a part each.

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::json::{ReadError, from_value};

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
            _ => Err(ReadError::of_value(path, "it must be a table")),
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
        from_value(&Value::Object(own), self.path)
    }

    /// Checks that every key belongs to one of the structs.
    ///
    /// # Errors
    /// If one does not.
    pub fn finish(self) -> Result<(), ReadError> {
        let Some(key) = self.keys.keys().find(|key| !self.names.contains(&key.as_str())) else { return Ok(()) };
        Err(ReadError::of_key(self.path, key, unknown_field(key, &self.names)))
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its keys matter")]
    struct Inner {
        width: f64,
        kinds: Vec<String>,
        pair: Option<(u8, i16)>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Other {
        name: String,
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
