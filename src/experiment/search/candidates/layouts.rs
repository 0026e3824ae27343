//! Layouts of king buckets: by name, as tables or merged from king squares, fitted to the half of the board on which
//! the own king stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chess::Mirror;
use crate::features::{BucketTable, Composition, Summand};
use crate::settings::SettingError;

/// A layout of king buckets
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a layout, as kb4, a table of buckets, or { merged = 8 }")]
pub enum KingLayout {
    /// kb2, kb4, kb8 or kb16, "none", or the name of a set with one table of buckets
    Named(String),
    /// The table
    Table(BucketTable),
    /// Buckets merged from the king squares of a network
    Merged(MergedSquares),
}

/// Buckets merged from the king squares of a network
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedSquares {
    /// Number of buckets
    pub merged: usize,
}

/// A layout that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    /// The layout in words, as in `4 king buckets (kb4)`.
    pub words: String,
    pub axis: KingAxis,
}

/// What a block reads of the own king's square.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KingAxis {
    Nothing,
    Square,
    /// A number for every square.
    Buckets(Vec<i32>),
}

impl KingLayout {
    /// The layout number `at` of the list, for an incumbent with this mirror.
    ///
    /// # Errors
    /// When there is no such set, it has no table or several, or the table has a mistake.
    pub(super) fn read(
        &self,
        at: usize,
        mirror: Mirror,
        merged: &[(MergedSquares, Vec<i32>)],
    ) -> Result<Layout, SettingError> {
        let problem = |message: String| SettingError::new("king_buckets", message);
        let (name, table) = match self {
            KingLayout::Named(name) if name == "none" => {
                return Ok(Layout { words: "no king buckets".into(), axis: KingAxis::Nothing });
            }
            KingLayout::Merged(squares) => {
                let lacking = || problem(format!("no network has king squares to merge into {}", squares.merged));
                let (_, table) = merged.iter().find(|(known, _)| known == squares).ok_or_else(lacking)?;
                ("merged".to_owned(), table.clone())
            }
            KingLayout::Named(name) => (name.clone(), named_table(name).map_err(problem)?),
            KingLayout::Table(table) => {
                let name = format!("layout {at}");
                let bucket = table.bucket(&name, mirror).map_err(|why| problem(format!("{name} {why}")))?;
                (name, bucket.table.to_vec())
            }
        };
        let count = table.iter().max().map_or(0, |largest| largest + 1);
        if count < 2 {
            return Err(problem(format!("{name} has one bucket; write \"none\" for a set without king buckets")));
        }
        Ok(Layout { words: format!("{count} king buckets ({name})"), axis: KingAxis::Buckets(table) })
    }
}

impl MergedSquares {
    /// # Errors
    /// If nothing is left to merge, or to tell apart.
    pub(super) fn check(self) -> Result<(), SettingError> {
        if (2..64).contains(&self.merged) {
            return Ok(());
        }
        let message = format!("king squares are merged into 2 to 63 buckets, not {}", self.merged);
        Err(SettingError::new("king_buckets", message))
    }

    /// Some layout with as many buckets, for counting candidates.
    pub(super) fn example(self) -> Vec<i32> {
        let number = |square: usize| square % self.merged;
        (0..64).map(|square| number(square) as i32).collect()
    }
}

/// The only table of a set.
fn named_table(name: &str) -> Result<Vec<i32>, String> {
    let set = match name.strip_prefix("kb") {
        Some(count) if count.parse::<u32>().is_ok() => format!("chess768-{name}-hm"),
        _ => name.to_owned(),
    };
    let composition = Composition::load(&set)
        .map_err(|error| format!("there is no layout {name}: {error}; known are kb2 to kb16"))?;
    let mut tables: Vec<&Vec<i32>> = Vec::new();
    for summand in &composition.summands {
        let blocks = match summand {
            Summand::Block(block) => std::slice::from_ref(block),
            Summand::Selection { blocks, .. } => blocks,
        };
        tables.extend(blocks.iter().flat_map(|block| block.buckets.values()));
    }
    tables.dedup();
    match tables[..] {
        [table] => Ok(table.clone()),
        _ => Err(format!("{name} has {} tables of buckets; the set of a layout has one", tables.len())),
    }
}

/// A table of the own king's squares for a mirror: what it says of half a board holds for the other half too, and the
/// half on which the king never stands is left out. Numbers that are then unused go.
pub(super) fn fitted(table: &[i32], mirror: Mirror) -> Vec<i32> {
    let is_left = |square: usize| square % 8 < 4;
    let is_empty = |left: bool| (0..64).all(|square| is_left(square) != left || table[square] < 0);
    let one_half = is_empty(true) != is_empty(false);
    let number = |square: usize| {
        let stands = match mirror {
            Mirror::None => true,
            Mirror::KingLeft => is_left(square),
            Mirror::KingRight => !is_left(square),
        };
        match table[square] {
            _ if !stands => -1,
            number if number < 0 && one_half => table[square ^ 7],
            number => number,
        }
    };
    let numbers: Vec<i32> = (0..64).map(number).collect();
    let mut used: Vec<i32> = numbers.iter().copied().filter(|number| *number >= 0).collect();
    used.sort_unstable();
    used.dedup();
    let renumbered = |number: i32| used.binary_search(&number).map_or(-1, |at| at as i32);
    numbers.into_iter().map(renumbered).collect()
}
