//! Checks documents against the JSON schemas of `src/record/schemas`. Supports the keywords of JSON Schema 2020-12 that
//! they use and panics at any other keyword, so that no rule is ignored.

use std::path::Path;

use serde_json::{Map, Value};

/// A parsed schema file.
pub struct Schema {
    root: Value,
}

impl Schema {
    pub fn of(name: &str) -> Schema {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/record/schemas").join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let root = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Schema { root }
    }

    /// Lists a document's errors, each with its JSON pointer.
    pub fn problems(&self, document: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        self.check(&self.root, document, "", &mut problems);
        problems
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
        let rules = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return problems.push(format!("{at}: no value is allowed here")),
            Value::Object(rules) => rules,
            _ => panic!("{at}: a schema is an object or a boolean"),
        };
        for (keyword, rule) in rules {
            let mut complain = |why: String| problems.push(format!("{}: {why}", if at.is_empty() { "/" } else { at }));
            match keyword.as_str() {
                "$schema" | "title" | "description" | "$defs" => {}
                "$ref" => self.check(self.resolve_reference(rule), value, at, problems),
                "type" => {
                    let names: Vec<&str> = match rule {
                        Value::String(name) => vec![name],
                        names => names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect(),
                    };
                    if !names.iter().any(|name| has_type(value, name)) {
                        complain(format!("{value} is not of type {}", names.join(" or ")));
                    }
                }
                "enum" if !rule.as_array().unwrap().contains(value) => {
                    complain(format!("{value} is not one of {rule}"));
                }
                "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                    complain(format!("{value} is below {rule}"));
                }
                "minItems" if value.as_array().is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap()) => {
                    complain(format!("fewer than {rule} items"));
                }
                "enum" | "minimum" | "minItems" => {}
                "anyOf" => {
                    let matches = |schema: &Value| {
                        let mut problems = Vec::new();
                        self.check(schema, value, at, &mut problems);
                        problems.is_empty()
                    };
                    if !rule.as_array().unwrap().iter().any(matches) {
                        complain(format!("{value} matches none of the allowed schemas"));
                    }
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}/{index}"), problems);
                    }
                }
                "required" => {
                    let Some(object) = value.as_object() else { continue };
                    let missing = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                    for name in missing.filter(|name| !object.contains_key(*name)) {
                        complain(format!("`{name}` is missing"));
                    }
                }
                "properties" | "additionalProperties" => {}
                other => panic!("{at}: the keyword `{other}` is not supported"),
            }
        }
        if let Some(object) = value.as_object() {
            self.check_properties(rules, object, at, problems);
        }
    }

    fn check_properties(
        &self,
        rules: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        problems: &mut Vec<String>,
    ) {
        let known = rules.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            let path = format!("{at}/{name}");
            match (known.and_then(|known| known.get(name)), rules.get("additionalProperties")) {
                (Some(schema), _) => self.check(schema, value, &path, problems),
                (None, Some(Value::Bool(false))) => problems.push(format!("{path}: the schema has no such field")),
                (None, Some(schema)) => self.check(schema, value, &path, problems),
                (None, None) => {}
            }
        }
    }

    fn resolve_reference(&self, reference: &Value) -> &Value {
        let path = reference.as_str().unwrap();
        let pointer = path.strip_prefix('#').unwrap_or_else(|| panic!("{path} is not in the same file"));
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{path} does not exist"))
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

#[test]
fn errors_are_found() {
    let schema = Schema {
        root: serde_json::json!({
            "type": "object",
            "required": ["name", "sizes"],
            "additionalProperties": false,
            "properties": {
                "name": { "enum": ["a", "b"] },
                "sizes": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/size" } },
                "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "by_reason": { "type": "object", "additionalProperties": { "type": "integer" } },
            },
            "$defs": { "size": { "type": "integer", "minimum": 1 } },
        }),
    };
    let check = |document: Value, expected: &[&str]| assert_eq!(schema.problems(&document), expected, "{document}");
    check(serde_json::json!({ "name": "a", "sizes": [1, 2], "note": null, "by_reason": { "x": 3 } }), &[]);
    check(serde_json::json!([]), &["/: [] is not of type object"]);
    check(serde_json::json!({ "name": "c" }), &["/: `sizes` is missing", "/name: \"c\" is not one of [\"a\",\"b\"]"]);
    check(serde_json::json!({ "name": "a", "sizes": [] }), &["/sizes: fewer than 1 items"]);
    check(
        serde_json::json!({ "name": "a", "sizes": [0, 1.5], "more": 1 }),
        &["/sizes/0: 0 is below 1", "/sizes/1: 1.5 is not of type integer", "/more: the schema has no such field"],
    );
    check(
        serde_json::json!({ "name": "a", "sizes": [1], "note": 3, "by_reason": { "x": "y" } }),
        &["/note: 3 matches none of the allowed schemas", "/by_reason/x: \"y\" is not of type integer"],
    );
}
