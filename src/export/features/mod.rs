//! `feature_set.rs` and `feature_set.h`: a definition's encoder as source without dependencies.
//!
//! [`source`] writes a file. A block of single pieces becomes a sum of a few numbers (`pieces`), a family of threats
//! one table of bases (`threats`), any other block the nested loops of its definition (`block`, `count`). `expression`
//! writes axes, conditions and products, `selection` renumberings, `contexts` the refresh rule, `api` and `delta` the
//! public functions. `dialect` knows what Rust and C write differently, `scope` the variables, `tables` the constants;
//! `helpers` chooses the sections of the constant text in `prelude/`.

mod api;
mod block;
mod contexts;
mod count;
mod delta;
mod dialect;
mod evaluate;
mod expression;
mod helpers;
mod pieces;
mod scope;
mod selection;
mod tables;
mod threats;

use std::collections::HashMap;

use super::Language;
use crate::chess::Orientation;
use crate::features::FeatureSet;

use dialect::{FunctionParameter, NumberType};
use tables::Tables;

/// The text of `feature_set.rs` or `feature_set.h`.
pub fn source(set: &FeatureSet, language: Language) -> String {
    let mut generator = Generator::new(set, language);
    let forms = generator.forms();
    api::file(&mut generator, &forms)
}

/// How repeated indices of a block are dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Repeats {
    /// There are none, or they count.
    Kept,
    /// By a bitset of so many words over the elements.
    Seen(u32),
    /// By sorting.
    Sorted,
}

/// The form in which blocks are written. The functions append to a list.
#[derive(Clone, Debug)]
enum Form {
    /// `name(pieces, pov, king, out)` for any pieces of a board: the changes of a move are the features of the pieces
    /// that it takes away and brings, unless `key(pov, king)` changes. `is_distinct`: an index stands for one piece on
    /// one square.
    Pieces { name: String, key: Option<String>, is_distinct: bool },
    /// `name(view, other, among, same, out)`: the features of attackers on the squares `among` of the oriented board,
    /// without those that the other board has, too, with attacker and target on the squares `same`.
    Threats { name: String, orientation: Orientation },
    /// `name(view, out)` on the oriented board.
    View { name: String, orientation: Orientation },
}

/// A file being written.
struct Generator<'a> {
    set: &'a FeatureSet,
    language: Language,
    tables: Tables,
    /// The functions of blocks, counts and selections.
    functions: Vec<String>,
    /// Function heads with their lines, to find equal ones again.
    known: HashMap<Vec<String>, String>,
    /// Numbers given to names, by name.
    numbers: HashMap<String, u32>,
    /// Names within the function being written, by the expression that they stand for.
    named: HashMap<String, String>,
}

impl<'a> Generator<'a> {
    fn new(set: &'a FeatureSet, language: Language) -> Generator<'a> {
        Generator {
            set,
            language,
            tables: Tables::default(),
            functions: Vec::new(),
            known: HashMap::new(),
            numbers: HashMap::new(),
            named: HashMap::new(),
        }
    }

    /// Writes the blocks' functions.
    fn forms(&mut self) -> Vec<Form> {
        let mut forms = Vec::new();
        let blocks = self.set.blocks();
        let threats = threats::families(blocks);
        for (at, block) in blocks.iter().enumerate() {
            if let Some(family) = threats.iter().find(|family| family.blocks.contains(&at)) {
                if family.blocks[0] == at {
                    forms.push(self.threats(family));
                }
                continue;
            }
            if let Some(form) = self.piece_block(block) {
                forms.push(form);
                continue;
            }
            let name = self.numbered("block");
            let lines = self.generic_block(&name, block.spec());
            // A block without bindings has no features.
            if dialect::is_used(&self.language.function("push"), &lines)
                || dialect::is_used(&self.language.function("push_once"), &lines)
                || dialect::is_used(&self.language.function("push_rare"), &lines)
            {
                self.functions.push(dialect::indented(&lines));
                forms.push(Form::View { name, orientation: block.spec().orientation });
            }
        }
        forms
    }

    /// Whether several bindings of the block may yield one index that counts once.
    fn may_repeat(&self, spec: &crate::features::BlockSpec) -> bool {
        match self.set.blocks().iter().find(|block| std::ptr::eq(block.spec(), spec)) {
            Some(block) => block.may_repeat(),
            None => true,
        }
    }

    /// Forgets the names of expressions; returns them for [`Generator::end_function`].
    fn begin_function(&mut self) -> HashMap<String, String> {
        std::mem::take(&mut self.named)
    }

    fn end_function(&mut self, saved: HashMap<String, String>) {
        self.named = saved;
    }

    /// A name that no function has yet: `count_1`, `count_2`, …
    fn numbered(&mut self, name: &str) -> String {
        let number = self.numbers.entry(name.to_owned()).or_default();
        *number += 1;
        format!("{name}_{number}")
    }

    /// A name that no constant of this function has yet.
    fn fresh(&mut self, base: &str) -> String {
        let name = format!("{base}_{}", self.named.len());
        self.named.insert(format!("= {name}"), name.clone());
        name
    }

    /// The name of an expression within this function, and the expression.
    fn named(&mut self, text: &str, base: &str) -> (String, String) {
        if let Some(name) = self.named.get(text) {
            return (name.clone(), text.to_owned());
        }
        let name = format!("{base}_{}", self.named.len());
        self.named.insert(text.to_owned(), name.clone());
        (name, text.to_owned())
    }

    /// Adds a function unless the file has an equal one; its name.
    fn add_function(
        &mut self,
        base: &str,
        parameters: &[FunctionParameter],
        result: NumberType,
        lines: Vec<String>,
    ) -> String {
        let head = self.language.head("", parameters, Some(result));
        let mut key = vec![head];
        key.extend(lines.iter().cloned());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = self.numbered(base);
        let mut text = vec![self.language.head(&name, parameters, Some(result))];
        text.extend(lines);
        self.functions.push(dialect::indented(&text));
        self.known.insert(key, name.clone());
        name
    }
}
