//! `feature_set.rs` and `feature_set.h`: a definition's encoder as source without dependencies.
//!
//! Blocks of single pieces become sums (`pieces`); all others are written from the programs that fsbench's own encoder
//! runs (`programs`). Both are functions that append to a list, and lines of the public functions `active` and `delta`,
//! whose templates stand beside this file. `contexts` writes the refresh rule, `sections` picks what the functions call.

mod contexts;
mod pieces;
mod programs;
mod sections;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::template::TemplateValues;
use super::{ExportError, Language, MAX_TABLE_ENTRIES};
use crate::features::code::SourceLanguage;
use crate::features::piece_sums::PieceSums;
use crate::features::{Block, FeatureSet};

use contexts::Contexts;
use sections::Sections;
use tables::Tables;

/// The text of `feature_set.rs` or `feature_set.h`.
///
/// # Errors
/// When the definition needs large tables.
pub fn source(set: &FeatureSet, language: Language) -> Result<String, ExportError> {
    let (sums, others): (Vec<_>, Vec<_>) =
        set.blocks().iter().map(|block| (block, PieceSums::of(block))).partition(|(_, sums)| sums.is_some());
    let mut writer = FeaturesWriter { language, tables: Tables::default(), functions: Vec::new(), parts: 0 };
    let mut parts: Vec<FeaturePart<'_>> = Vec::new();
    for (block, sums) in sums {
        parts.extend(sums.map(|sums| writer.piece_part(block, &sums)));
    }
    let others: Vec<&Block> = others.into_iter().map(|(block, _)| block).collect();
    parts.extend(writer.program_part(&others));
    let entries = writer.tables.entries();
    if entries > MAX_TABLE_ENTRIES {
        return Err(ExportError::LargeTables { name: set.name().to_owned(), entries, most: MAX_TABLE_ENTRIES });
    }
    Ok(writer.file(set, &parts))
}

/// Some blocks of a set, as lines of the public functions.
struct FeaturePart<'a> {
    blocks: Vec<&'a Block>,
    /// Lines that append the active features of `board` to `out`.
    active: Vec<String>,
    /// Lines that append the features that `removed` and `added` name, while the context of the blocks stays.
    kept: Vec<String>,
    /// What must hold for these besides the context.
    condition: Option<&'static str>,
    /// Lines before both, and those that do the same for any boards with both kings.
    before: Vec<String>,
    any: Vec<String>,
    /// Whether `kept` may list an index as removed and as added.
    may_cancel: bool,
}

/// A file in the making.
struct FeaturesWriter {
    language: Language,
    tables: Tables,
    functions: Vec<String>,
    /// Blocks written as functions so far.
    parts: usize,
}

impl Language {
    const fn source(self) -> SourceLanguage {
        match self {
            Language::Rust => SourceLanguage::Rust,
            Language::C => SourceLanguage::C,
        }
    }

    /// One of two texts.
    const fn choose<T: Copy>(self, rust: T, c: T) -> T {
        match self {
            Language::Rust => rust,
            Language::C => c,
        }
    }

    /// A function's name.
    fn function(self, name: &str) -> String {
        format!("{}{name}", self.choose("", "fsb_"))
    }

    /// `if condition {`.
    fn when(self, condition: &str) -> String {
        self.choose(format!("if {condition} {{").as_str(), format!("if ({condition}) {{").as_str()).to_owned()
    }

    /// A comment on what follows.
    fn doc(self, text: &str) -> String {
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        match (self, &lines[..]) {
            (Language::Rust, _) => lines.iter().map(|line| format!("/// {line}")).collect::<Vec<_>>().join("\n"),
            (Language::C, [only]) => format!("/* {} */", only.replace("*/", "* /")),
            (Language::C, _) => {
                let inner: String = lines.iter().map(|line| format!(" * {}\n", line.replace("*/", "* /"))).collect();
                format!("/*\n{inner} */")
            }
        }
    }
}

impl FeaturesWriter {
    fn file(mut self, set: &FeatureSet, parts: &[FeaturePart<'_>]) -> String {
        let language = self.language;
        let contexts = Contexts::of(&set.blocks().iter().collect::<Vec<_>>());
        let mut values = TemplateValues::default();
        values.set("CONTEXT", contexts.function(&mut self, "context", true));
        let mut delta = Vec::new();
        // Whether every move may list an index as removed and as added, and whether some do.
        let cancels = parts.iter().any(|part| part.may_cancel || part.kept.is_empty());
        let mut repeats = false;
        for (number, part) in parts.iter().enumerate() {
            let own = Contexts::of(&part.blocks);
            let mut conditions = Vec::new();
            let is_compared = own.count > 1 && !part.kept.is_empty();
            if is_compared && parts.len() == 1 {
                conditions.push(format!("!{}(pov, kings_before, kings_after)", language.function("refresh")));
            } else if is_compared {
                let name = format!("context_{}", number + 1);
                let function = own.function(&mut self, &name, false);
                self.functions.push(function);
                let of =
                    |time: &str| format!("{}(pov, kings_{time}[pov], kings_{time}[pov ^ 1])", language.function(&name));
                let same = format!("same_{}", number + 1);
                delta.push(format!("{} {same} = {}", language.choose("let", "const bool"), of("before")));
                delta.push(format!("    == {};", of("after")));
                conditions.push(same);
            }
            conditions.extend(part.condition.map(str::to_owned));
            delta.extend(part.before.iter().cloned());
            if part.kept.is_empty() {
                delta.extend(part.any.iter().cloned());
            } else if conditions.is_empty() {
                delta.extend(part.kept.iter().cloned());
            } else {
                delta.push(language.when(&conditions.join(" && ")));
                delta.extend(part.kept.iter().cloned());
                delta.push("} else {".to_owned());
                delta.extend(part.any.iter().cloned());
                if !cancels {
                    repeats = true;
                    delta.push("repeats = true;".to_owned());
                }
                delta.push("}".to_owned());
            }
        }
        let reads_kings = delta.iter().any(|line| line.contains("kings_"));
        values.flag("empty", parts.is_empty());
        values.flag("kings", reads_kings);
        values.flag("cancels", cancels);
        values.flag("repeats", repeats);
        let active: Vec<String> = parts.iter().flat_map(|part| part.active.iter().cloned()).collect();
        values.set("ACTIVE", indented(&active, 1));
        values.set("DELTA", indented(&delta, 1));
        values.set("FUNCTIONS", self.functions.iter().map(|text| format!("{text}\n")).collect::<String>());
        let name = match language {
            Language::Rust => format!("{:?}", set.name()),
            Language::C => c_string(set.name()),
        };
        values.set("NAME", name);
        values.set("IDENTITY", format!("{:?}", set.identity().to_string()));
        values.set("FEATURES", set.num_features());
        values.set("MAX_ACTIVE", set.max_active().max(1));
        values.set("CONTEXTS", contexts.count.max(1));
        for later in ["ABOUT", "PRELUDE", "HELPERS", "TABLES"] {
            values.set(later, "");
        }
        let template = language.choose(include_str!("feature_set.rs.template"), include_str!("feature_set.h.template"));
        let code = values.render(template);
        let tables = self.tables.text(language, &code);
        let Sections { prelude, helpers } = Sections::needed(language, &format!("{code}{tables}"));
        values.set("ABOUT", about(set, language));
        values.set("PRELUDE", prelude);
        values.set("HELPERS", helpers);
        values.set("TABLES", tables);
        format!("{}\n", values.render(template).trim_end())
    }
}

/// A string literal of C, which is UTF-8 as C compilers take it.
fn c_string(text: &str) -> String {
    let escaped = |letter: char| match letter {
        '"' | '\\' => format!("\\{letter}"),
        // No trigraphs.
        '?' => "\\?".to_owned(),
        letter if letter.is_control() => {
            letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Lines as text without an end, indented by so many steps and one more for every open bracket.
fn indented(lines: &[String], depth: usize) -> String {
    let mut depth = depth;
    let mut texts = Vec::new();
    for line in lines {
        if line.starts_with('}') {
            depth = depth.saturating_sub(1);
        }
        texts.push(format!("{}{line}", "    ".repeat(depth)));
        if line.ends_with('{') {
            depth += 1;
        }
    }
    texts.join("\n")
}

/// The file's purpose, its licence and the definition, as the comment at its head.
fn about(set: &FeatureSet, language: Language) -> String {
    let title = set.about().map_or_else(|| set.name().to_owned(), |about| format!("{}: {about}", set.name()));
    let title = title.replace(char::is_control, " ");
    let definition: Vec<String> = set.definition().trim_end().lines().flat_map(wrapped).collect();
    let notice = "Written by `fsbench export` from the definition below. This file belongs to whoever exported it, to \
                  use, change and\ndistribute under any terms, without any warranty. The licence of fsbench does not \
                  apply to it.";
    let head = format!("The input features {title}.\n\n{notice}\n\n");
    let (text, start) = match language {
        Language::Rust => (format!("{head}```toml\n{}\n```", definition.join("\n")), "//! "),
        Language::C => {
            let definition: Vec<String> = definition.iter().map(|line| format!("    {line}")).collect();
            (format!("{head}{}", definition.join("\n")).replace("*/", "* /"), " * ")
        }
    };
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{}", format!("{start}{line}").trim_end());
    }
    language.choose(out.trim_end(), format!("/*\n{out} */").as_str()).to_owned()
}

/// A long line of the definition (a selection's indices) in several.
fn wrapped(line: &str) -> Vec<String> {
    const WIDTH: usize = 112;
    let mut lines = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = lines.len() - 1;
        if lines[last].len() + word.len() > WIDTH && !lines[last].is_empty() {
            lines.push(String::new());
        }
        let last = lines.len() - 1;
        lines[last] += word;
    }
    lines
}
