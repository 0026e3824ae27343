//! Serialises to JSON text, on one line or indented.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::Error;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use serde_json::{Result, Value};

/// A value as JSON on one line.
///
/// # Errors
/// When the value has no JSON form.
pub fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    String::from_utf8(to_bytes(value)?).map_err(Error::custom)
}

/// As [`to_text`], in bytes.
///
/// # Errors
/// As [`to_text`].
pub fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    write(value, Layout::OneLine)
}

/// A value as indented JSON.
///
/// # Errors
/// As [`to_text`].
pub fn to_indented<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    String::from_utf8(write(value, Layout::Indented(PrettyFormatter::new()))?).map_err(Error::custom)
}

/// A value as a tree. It goes through text: a serialiser that makes trees would be a second one for each type.
///
/// # Errors
/// As [`to_text`].
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    serde_json::from_slice(&to_bytes(value)?)
}

fn write<T: Serialize + ?Sized>(value: &T, layout: Layout) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, layout))?;
    Ok(text)
}

/// Both of serde_json's layouts in one type.
enum Layout {
    OneLine,
    Indented(PrettyFormatter<'static>),
}

/// Calls the layout's formatter.
macro_rules! formatter_methods {
    ($($method:ident($($argument:ident: $kind:ty)?))*) => {
        $(fn $method<W: Write + ?Sized>(&mut self, writer: &mut W $(, $argument: $kind)?) -> io::Result<()> {
            match self {
                Layout::OneLine => CompactFormatter.$method(writer $(, $argument)?),
                Layout::Indented(formatter) => formatter.$method(writer $(, $argument)?),
            }
        })*
    };
}

impl Formatter for Layout {
    formatter_methods! {
        begin_array() end_array() begin_array_value(first: bool) end_array_value()
        begin_object() end_object() begin_object_key(first: bool) begin_object_value() end_object_value()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_those_of_serde_json() {
        let check = |value: Value| {
            assert_eq!(to_text(&value).expect("text"), serde_json::to_string(&value).expect("text"));
            assert_eq!(to_indented(&value).expect("text"), serde_json::to_string_pretty(&value).expect("text"));
            assert_eq!(to_value(&value).expect("a tree"), value);
        };
        check(json!({ "b": [], "a": {}, "list": [1, -2, 0.1, "\u{1}é\"", null, true], "map": { "x": [[{}], 1e300] } }));
        check(json!(u64::MAX));
        check(Value::Null);
        assert_eq!(to_value(&(f64::NAN, 0.1 + 0.2)).expect("a tree"), json!([null, 0.1 + 0.2]));
        assert_eq!(to_text(&BTreeMap::from([(3, 'x')])).expect("text"), "{\"3\":\"x\"}");
        assert!(to_text(&BTreeMap::from([([1], 2)])).is_err());
    }
}
