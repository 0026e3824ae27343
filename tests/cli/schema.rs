//! Checks documents against the JSON schemas that `fsbench schema` prints. Supports the keywords of JSON Schema 2020-12
//! that they use and panics at any other keyword, so that no rule is ignored.

use serde_json::{Map, Value};

/// The patterns of names that schemas have: numbers, the second with a sign.
const NUMBERS: [&str; 2] = [r"^\d+$", r"^-?\d+$"];

/// A parsed schema.
pub struct Schema {
    root: Value,
}

impl Schema {
    pub fn parse(text: &str) -> Schema {
        Schema { root: serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}")) }
    }

    pub fn root(&self) -> &Value {
        &self.root
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
                // The formats name the widths of numbers.
                "$schema" | "title" | "description" | "$defs" | "format" | "default" => {}
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
                "const" if value != rule => complain(format!("{value} is not {rule}")),
                "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                    complain(format!("{value} is below {rule}"));
                }
                "maximum" if value.as_f64() > rule.as_f64() && value.is_number() => {
                    complain(format!("{value} is above {rule}"));
                }
                "minItems" if value.as_array().is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap()) => {
                    complain(format!("fewer than {rule} items"));
                }
                "maxItems" if value.as_array().is_some_and(|items| (items.len() as u64) > rule.as_u64().unwrap()) => {
                    complain(format!("more than {rule} items"));
                }
                "minLength"
                    if value.as_str().is_some_and(|text| (text.chars().count() as u64) < rule.as_u64().unwrap()) =>
                {
                    complain(format!("shorter than {rule}"));
                }
                "maxLength"
                    if value.as_str().is_some_and(|text| (text.chars().count() as u64) > rule.as_u64().unwrap()) =>
                {
                    complain(format!("longer than {rule}"));
                }
                "enum" | "const" | "minimum" | "maximum" | "minItems" | "maxItems" | "minLength" | "maxLength" => {}
                "anyOf" | "oneOf" => {
                    let matches = |schema: &&Value| {
                        let mut problems = Vec::new();
                        self.check(schema, value, at, &mut problems);
                        problems.is_empty()
                    };
                    let matching = rule.as_array().unwrap().iter().filter(matches).count();
                    if matching == 0 {
                        complain(format!("{value} matches none of the allowed schemas"));
                    }
                    if keyword == "oneOf" && matching > 1 {
                        complain(format!("{value} matches {matching} of the schemas, one of which is allowed"));
                    }
                }
                "prefixItems" => {
                    for (index, (rule, item)) in
                        rule.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten()).enumerate()
                    {
                        self.check(rule, item, &format!("{at}/{index}"), problems);
                    }
                }
                "items" => {
                    assert!(!rules.contains_key("prefixItems"), "{at}: items after others are not supported");
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
                "properties" | "additionalProperties" | "patternProperties" => {}
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
        let patterns = rules.get("patternProperties").and_then(Value::as_object);
        let unknown = |pattern: &&String| !NUMBERS.contains(&pattern.as_str());
        assert_eq!(patterns.and_then(|patterns| patterns.keys().find(unknown)), None, "{at}: an unknown pattern");
        let matches = |pattern: &str, name: &str| {
            let unsigned = name.strip_prefix('-').filter(|_| pattern == NUMBERS[1]).unwrap_or(name);
            !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
        };
        for (name, value) in object {
            let path = format!("{at}/{name}");
            let of_pattern = patterns.into_iter().flatten().find(|(pattern, _)| matches(pattern, name));
            let of_pattern = of_pattern.map(|(_, schema)| schema);
            match (known.and_then(|known| known.get(name)).or(of_pattern), rules.get("additionalProperties")) {
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
                "kind": { "oneOf": [{ "const": "x" }, { "type": "string", "enum": ["x", "y"] }] },
                "pair": { "prefixItems": [{ "type": "integer", "maximum": 9 }, { "type": "string" }], "maxItems": 2 },
                "by_number": { "patternProperties": { r"^\d+$": { "type": "integer" } }, "additionalProperties": false },
                "by_sign": { "patternProperties": { r"^-?\d+$": { "type": "integer" } }, "additionalProperties": false },
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
    let with = |field: &str, value: Value| {
        let mut document = serde_json::json!({ "name": "a", "sizes": [1] });
        document[field] = value;
        document
    };
    check(with("kind", "y".into()), &[]);
    check(with("kind", "x".into()), &["/kind: \"x\" matches 2 of the schemas, one of which is allowed"]);
    check(with("kind", "z".into()), &["/kind: \"z\" matches none of the allowed schemas"]);
    check(with("pair", serde_json::json!([9, "b"])), &[]);
    check(
        with("pair", serde_json::json!([10, 2, 3])),
        &["/pair/0: 10 is above 9", "/pair/1: 2 is not of type string", "/pair: more than 2 items"],
    );
    check(with("by_number", serde_json::json!({ "7": 1 })), &[]);
    check(with("by_sign", serde_json::json!({ "-7": 1, "7": 1 })), &[]);
    check(with("by_number", serde_json::json!({ "-7": 1 })), &["/by_number/-7: the schema has no such field"]);
    check(with("by_number", serde_json::json!({ "7": "a" })), &["/by_number/7: \"a\" is not of type integer"]);
    check(with("by_number", serde_json::json!({ "x": 1 })), &["/by_number/x: the schema has no such field"]);
}
