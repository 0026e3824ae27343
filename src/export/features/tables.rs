//! Constant tables of the generated file, one for each content.

use std::collections::HashMap;

use super::dialect::NumberType;
use crate::export::Language;

/// Entries of up to two dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Content {
    number: NumberKey,
    /// Number of rows; 1 for a table of one dimension.
    rows: usize,
    entries: Vec<i64>,
}

/// [`NumberType`] as a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum NumberKey {
    U8,
    U16,
    U32,
    I32,
}

impl NumberKey {
    fn of(entries: &[i64]) -> NumberKey {
        let least = entries.iter().min().copied().unwrap_or(0);
        let most = entries.iter().max().copied().unwrap_or(0);
        match (least, NumberType::for_values(most.max(0) as u64)) {
            (..0, _) => NumberKey::I32,
            (_, NumberType::U8) => NumberKey::U8,
            (_, NumberType::U16) => NumberKey::U16,
            _ => NumberKey::U32,
        }
    }

    fn number(self) -> NumberType {
        match self {
            NumberKey::U8 => NumberType::U8,
            NumberKey::U16 => NumberType::U16,
            NumberKey::U32 => NumberType::U32,
            NumberKey::I32 => NumberType::I32,
        }
    }
}

/// The tables that the generated functions have asked for.
#[derive(Debug, Default)]
pub struct Tables {
    known: HashMap<Content, String>,
    names: Vec<String>,
    text: String,
}

impl Tables {
    /// A table of one dimension. `name` is made unique by a number if need be.
    pub fn list(&mut self, language: Language, name: &str, entries: &[i64], about: &str) -> String {
        self.add(language, name, 1, entries, about)
    }

    /// A table of `rows` rows of equal length.
    pub fn rows(&mut self, language: Language, name: &str, rows: usize, entries: &[i64], about: &str) -> String {
        self.add(language, name, rows, entries, about)
    }

    /// Signed entries, whatever their values: for tables that are compared with −1.
    pub fn signed(&mut self, language: Language, name: &str, entries: &[i64], about: &str) -> String {
        self.add_of(language, name, Content { number: NumberKey::I32, rows: 1, entries: entries.to_vec() }, about)
    }

    /// Entries of `u32`, whatever their values.
    pub fn words_of_32(&mut self, language: Language, name: &str, entries: &[i64], about: &str) -> String {
        self.add_of(language, name, Content { number: NumberKey::U32, rows: 1, entries: entries.to_vec() }, about)
    }

    /// A table of bitboards or other words; its name.
    pub fn words(&mut self, language: Language, name: &str, words: &[u64], about: &str) -> String {
        let name = self.unique(name);
        let in_language = language.table(&name);
        let entries: Vec<String> = words.iter().map(|word| format!("{word:#018x}")).collect();
        self.text += &table_text(language, &in_language, NumberType::U64, 1, &entries, about);
        self.names.push(name);
        in_language
    }

    /// A table of three dimensions, of entries as text; its name.
    pub fn cube(
        &mut self,
        language: Language,
        name: &str,
        [outer, rows, length]: [usize; 3],
        number: NumberType,
        entries: &[String],
        about: &str,
    ) -> String {
        let name = self.unique(name);
        let in_language = language.table(&name);
        let kind = language.number(number);
        let (open, close) = if language == Language::Rust { ("[", "]") } else { ("{", "}") };
        self.text += &(language.doc(about).join("\n") + "\n");
        self.text += &match language {
            Language::Rust => {
                format!("#[rustfmt::skip]\nstatic {in_language}: [[[{kind}; {length}]; {rows}]; {outer}] = [\n")
            }
            Language::C => format!("static const {kind} {in_language}[{outer}][{rows}][{length}] = {{\n"),
        };
        for plane in entries.chunks(rows * length) {
            self.text += &format!("    {open}\n");
            for row in plane.chunks(length) {
                self.text += &format!("        {open}{}{close},\n", row.join(", "));
            }
            self.text += &format!("    {close},\n");
        }
        self.text += &format!("{close};\n\n");
        self.names.push(name);
        in_language
    }

    fn unique(&self, name: &str) -> String {
        let plain = name.to_uppercase().replace('-', "_");
        std::iter::once(plain.clone())
            .chain((2..).map(|at| format!("{plain}_{at}")))
            .find(|name| !self.names.contains(name))
            .unwrap_or_default()
    }

    fn add(&mut self, language: Language, name: &str, rows: usize, entries: &[i64], about: &str) -> String {
        let content = Content { number: NumberKey::of(entries), rows, entries: entries.to_vec() };
        self.add_of(language, name, content, about)
    }

    fn add_of(&mut self, language: Language, name: &str, content: Content, about: &str) -> String {
        let number = content.number.number();
        if let Some(name) = self.known.get(&content) {
            return name.clone();
        }
        let unique = self.unique(name);
        let in_language = language.table(&unique);
        self.text += &table_text(language, &in_language, number, content.rows, &content.entries, about);
        self.names.push(unique);
        self.known.insert(content, in_language.clone());
        in_language
    }

    /// The tables' definitions.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A definition of a table, with a line of description.
pub fn table_text(
    language: Language,
    name: &str,
    number: NumberType,
    rows: usize,
    entries: &[impl ToString],
    about: &str,
) -> String {
    let length = entries.len() / rows.max(1);
    let kind = language.number(number);
    let mut out = language.doc(about).join("\n") + "\n";
    let square = rows == 1;
    match language {
        Language::Rust => {
            out += "#[rustfmt::skip]\n";
            let shape = if square { format!("[{kind}; {length}]") } else { format!("[[{kind}; {length}]; {rows}]") };
            out += &format!("static {name}: {shape} = [\n");
        }
        Language::C => {
            let shape = if square { format!("[{length}]") } else { format!("[{rows}][{length}]") };
            out += &format!("static const {kind} {name}{shape} = {{\n");
        }
    }
    let (open, close) = if language == Language::Rust { ("[", "]") } else { ("{", "}") };
    for row in entries.chunks(length.max(1)) {
        if !square {
            out += &format!("    {open}\n");
        }
        out += &entries_text(row, if square { "    " } else { "        " });
        if !square {
            out += &format!("    {close},\n");
        }
    }
    out + close + ";\n\n"
}

/// Entries in lines of at most 120 columns, eight to the line where they fit.
fn entries_text(entries: &[impl ToString], indent: &str) -> String {
    let texts: Vec<String> = entries.iter().map(ToString::to_string).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(1);
    let per_line = match (120 - indent.len()) / (width + 2) {
        16.. => 16,
        8.. => 8,
        4.. => 4,
        _ => 1,
    };
    let mut out = String::new();
    for line in texts.chunks(per_line) {
        let line: Vec<String> = line.iter().map(|text| format!("{text:>width$}")).collect();
        out += &format!("{indent}{},\n", line.join(", "));
    }
    out
}
