//! Constant tables of a file, one for each content.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::export::Language;
use crate::features::code::{Table, mentions};

#[derive(Debug, Default)]
pub struct Tables {
    known: HashMap<Table, String>,
    /// Name, content and what it is, in the order of the file.
    all: Vec<(String, Table, String)>,
}

impl Tables {
    /// The name of a table in the language; equal ones have one. `about`: what it is, if its name is not enough.
    pub fn name(&mut self, language: Language, base: &str, table: &Table, about: &str) -> String {
        if let Some(name) = self.known.get(table) {
            return name.clone();
        }
        let base = format!("{}{base}", language.choose("", "FSB_"));
        let is_taken = |name: &String| self.all.iter().any(|(other, ..)| other == name);
        let name = std::iter::once(base.clone())
            .chain((2..).map(|number| format!("{base}_{number}")))
            .find(|name| !is_taken(name))
            .unwrap_or_default();
        self.all.push((name.clone(), table.clone(), about.to_owned()));
        self.known.insert(table.clone(), name.clone());
        name
    }

    /// [`Tables::name`] of a table of a program.
    pub fn of_program(&mut self, language: Language, table: &Table) -> String {
        let base = match table {
            Table::Bytes(_) => "BYTES",
            Table::Words(_) => "ROWS",
            Table::Bitboards(_) => "MASKS",
        };
        self.name(language, base, table, "")
    }

    /// The numbers in all tables.
    pub fn entries(&self) -> usize {
        self.all.iter().map(|(_, table, _)| table.len()).sum()
    }

    /// The definitions of the tables that `code` mentions.
    pub fn text(&self, language: Language, code: &str) -> String {
        let mut out = String::new();
        for (name, table, about) in self.all.iter().filter(|(name, ..)| mentions(code, name)) {
            if !about.is_empty() {
                let _ = writeln!(out, "{}", language.doc(about));
            }
            let _ = writeln!(out, "{}", language.source().table(name, table));
        }
        out
    }
}

/// Numbers in a table as narrow as they allow.
pub fn narrow(numbers: &[u32]) -> Table {
    match numbers.iter().map(|number| u8::try_from(*number)).collect::<Result<Vec<u8>, _>>() {
        Ok(bytes) => Table::Bytes(bytes.into()),
        Err(_) => Table::Words(numbers.into()),
    }
}
