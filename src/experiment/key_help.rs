//! The help on the keys of an experiment file, as `fsbench run --help` prints it: the JSON schema of the file's
//! structs, whose descriptions are their doc comments, laid out for a terminal.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::toml_file::TomlFile;
use crate::text::wrapped;

/// Help on a table of the file.
pub(super) struct TableHelp {
    /// Its headers without the outer brackets; several if they have the same keys. Empty for the keys above all tables.
    pub(super) tables: Vec<String>,
    purpose: String,
    pub(super) keys: Vec<KeyHelp>,
}

pub(super) struct KeyHelp {
    pub(super) key: String,
    /// As TOML or in words; empty if there is none, or the meaning says it.
    default: String,
    meaning: String,
}

/// Every table, in the order of an experiment file.
pub(super) fn key_tables() -> Vec<TableHelp> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<TomlFile>();
    let root = schema.to_value();
    let mut tables = HelpTables { definitions: &root["$defs"], found: Vec::new() };
    tables.add("", false, "", &root);
    tables.found.into_iter().map(|(_, help)| help).collect()
}

struct HelpTables<'a> {
    definitions: &'a Value,
    /// Each with the name of its definition.
    found: Vec<(String, TableHelp)>,
}

impl HelpTables<'_> {
    /// Adds the table at `path`, or the list of tables, and then the tables in it.
    fn add(&mut self, path: &str, is_list: bool, name: &str, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let own_header = header(path, is_list);
        if let Some((_, same)) = self.found.iter_mut().find(|(other, _)| other == name) {
            same.tables.push(own_header);
            return;
        }
        let mut keys = Vec::new();
        let mut inner = Vec::new();
        for (key, property) in properties {
            let mut meaning = first_sentence(property);
            let mut default = default_of(schema, key, property);
            if let Some((definition, table, is_list)) = self.table_of(property) {
                if meaning.is_empty() {
                    meaning = first_sentence(&table);
                }
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let see = header(&path, is_list);
                meaning += &format!(": a table, see [{see}]");
                default.retain(|_| schema_requires(schema, key));
                inner.push((path, is_list, definition, table));
            } else {
                meaning += &values(&self.choices(property), &meaning);
            }
            keys.push(KeyHelp { key: key.clone(), default, meaning });
        }
        let purpose = first_sentence(schema);
        self.found.push((name.to_owned(), TableHelp { tables: vec![own_header], purpose, keys }));
        for (path, is_list, name, table) in inner {
            self.add(&path, is_list, &name, &table);
        }
    }

    /// The definition of a property that is a table, with its name, and whether the property is a list of such tables.
    fn table_of(&self, property: &Value) -> Option<(String, Value, bool)> {
        if let Some(items) = property.get("items") {
            return self.table_of(items).map(|(name, table, _)| (name, table, true));
        }
        for schema in alternatives(property) {
            let Some(name) = definition_name(schema) else { continue };
            let table = &self.definitions[name];
            if table["properties"].is_object() {
                return Some((name.to_owned(), table.clone(), false));
            }
        }
        None
    }

    /// The words that a property may be.
    fn choices(&self, property: &Value) -> Vec<String> {
        let mut words = Vec::new();
        for schema in alternatives(property) {
            let schema = definition_name(schema).map_or(schema, |name| &self.definitions[name]);
            for word in schema["enum"].as_array().into_iter().flatten() {
                words.extend(word.as_str().map(str::to_owned));
            }
            for variant in schema["oneOf"].as_array().into_iter().flatten() {
                words.extend(variant["const"].as_str().map(str::to_owned));
                for word in variant["enum"].as_array().into_iter().flatten() {
                    words.extend(word.as_str().map(str::to_owned));
                }
            }
        }
        words
    }
}

/// A table's header without the outer brackets.
fn header(path: &str, is_list: bool) -> String {
    if is_list { format!("[{path}]") } else { path.to_owned() }
}

/// A schema, or the alternatives that it consists of.
fn alternatives(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array() {
        Some(alternatives) => alternatives.iter().collect(),
        None => vec![schema],
    }
}

fn definition_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn schema_requires(schema: &Value, key: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key))
}

fn default_of(schema: &Value, key: &str, property: &Value) -> String {
    match property.get("default") {
        _ if schema_requires(schema, key) => "required".into(),
        None | Some(Value::Null) => String::new(),
        Some(Value::Array(values)) if values.is_empty() => String::new(),
        Some(Value::Array(values)) => {
            format!("[{}]", values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        Some(Value::Object(keys)) if keys.is_empty() => String::new(),
        Some(value) => value.to_string(),
    }
}

/// The first sentence of the description. "et al." ends none.
fn first_sentence(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let paragraph = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let mut ends = paragraph.match_indices(". ").map(|(at, _)| at);
    let end = ends.find(|at| !paragraph[..*at].ends_with(" al")).unwrap_or(paragraph.len());
    paragraph[..end].trim_end_matches('.').to_owned()
}

/// The words in brackets, unless the meaning names them.
fn values(words: &[String], meaning: &str) -> String {
    let named = words.iter().filter(|word| meaning.contains(word.as_str())).count();
    if words.is_empty() || named >= 2 { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// The width of the help text. Clap would wrap longer lines at the terminal's width, but not indent the continuation.
const WIDTH: usize = 80;
/// Spaces before a key.
const INDENT: usize = 4;
/// Width of the column of keys.
pub(super) const KEY_WIDTH: usize = 20;

/// The help text, one paragraph per key.
#[must_use]
pub fn text() -> String {
    let mut out = String::from("Keys of an experiment file (TOML; experiments/quickstart.toml is an example):\n");
    for TableHelp { tables, purpose, keys } in key_tables() {
        let headers: Vec<String> = tables.iter().filter(|table| !table.is_empty()).map(|t| format!("[{t}]")).collect();
        let heading = match headers.join(", ") {
            headers if headers.is_empty() => purpose,
            headers => format!("{headers}: {purpose}"),
        };
        out += &format!("\n{}\n", wrapped(&heading, INDENT / 2, INDENT, WIDTH).join("\n"));
        for KeyHelp { key, default, meaning } in keys {
            let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
            let lines = wrapped(&format!("{meaning}{default}"), INDENT + KEY_WIDTH, INDENT + KEY_WIDTH, WIDTH);
            let meaning = lines.join("\n");
            out += &format!("{:INDENT$}{key:<KEY_WIDTH$}{}\n", "", meaning.trim_start());
        }
    }
    out
}
