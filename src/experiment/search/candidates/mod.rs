//! The candidates of a search: an incumbent definition and the keys of `[search]` → the definitions to try.
//!
//! `grammar` generates blocks, `layouts` reads layouts of king buckets, `changes` applies every kind of change to the
//! incumbent. Which candidates split positions alike shows the measure [`crate::measure::screen`].

mod changes;
mod grammar;
mod layouts;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chess::Mirror;
use crate::features::{Composition, FeatureError, is_name};
use crate::settings::SettingError;
use crate::units::Seed;
use changes::{Change, FeatureImportance};

pub use grammar::{Grammar, GrammarAxis, GrammarSource};
pub use layouts::{KingLayout, MergedSquares};

/// A definition to try instead of the incumbent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The definition, as the command line takes it; empty if there is none.
    pub set: String,
    /// The change of the incumbent in words, as in `plus threat-roles`.
    pub change: String,
    pub kind: ChangeKind,
    /// Inputs per perspective.
    pub features: u32,
    /// Why there is no such definition.
    pub refused: Option<String>,
}

/// What a search knows of the incumbent's network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkFindings {
    /// A number for every feature, which `select` needs ([`crate::measure::ScreenGames::importance`]).
    pub importance: Option<Vec<f64>>,
    /// A number for every square, for each layout that is merged from king squares
    /// ([`crate::measure::merged_king_buckets`]).
    pub layouts: Vec<(MergedSquares, Vec<i32>)>,
}

/// The kind of a change.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Blocks are added.
    Add,
    /// Boards are mirrored otherwise.
    Mirror,
    /// Blocks get a layout of king buckets, another one or none.
    KingBuckets,
    /// A block is left out.
    Drop,
    /// Only some features of a block are kept.
    Select,
}

impl ChangeKind {
    /// As records and tables call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ChangeKind::Add => "add",
            ChangeKind::Mirror => "mirror",
            ChangeKind::KingBuckets => "king-buckets",
            ChangeKind::Drop => "drop",
            ChangeKind::Select => "select",
        }
    }
}

/// The changes of the incumbent that a search tries
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CandidateKeys {
    /// Blocks to add, each an expression, seen on the incumbent's board, or the name or path of a set, which keeps its
    /// own
    pub blocks: Vec<String>,
    /// Bounds within which further blocks to add are generated
    pub grammar: Option<Grammar>,
    /// Which half of the board the own king may be kept on: none, king-left (a to d), king-right
    pub mirror: Vec<Mirror>,
    /// Layouts of king buckets: kb2, kb4, kb8, kb16, another set's name, "none", a table as under [buckets], or
    /// { merged = 8 }, which merges the squares of the own king by what that changes in a network with rows for each of
    /// them; tried for all blocks and for each
    pub king_buckets: Vec<KingLayout>,
    /// Whether the incumbent is tried without each of its blocks
    pub drop: bool,
    /// Numbers of features to which a block may be reduced, those of greatest importance
    pub select: Vec<u32>,
}

impl CandidateKeys {
    /// Checks what needs no incumbent.
    ///
    /// # Errors
    /// When a block is listed twice, the grammar yields no block, a layout does not exist, or a block may be reduced to
    /// nothing.
    pub fn check(&self, seed: Seed) -> Result<(), SettingError> {
        if let Some((_, twice)) = self.blocks.iter().enumerate().find(|(at, block)| self.blocks[..*at].contains(block))
        {
            return Err(SettingError::new("blocks", format!("blocks lists '{twice}' twice")));
        }
        if let Some(grammar) = &self.grammar {
            grammar.blocks(seed)?;
        }
        if self.select.contains(&0) {
            return Err(SettingError::new("select", "select keeps at least 1 feature of a block"));
        }
        // Half a board is checked with the incumbent, which says whether it is enough.
        self.king_buckets.iter().zip(1..).try_for_each(|(layout, at)| match layout {
            KingLayout::Merged(squares) => squares.check(),
            other => other.read(at, Mirror::KingLeft, &[]).map(|_| ()),
        })
    }

    /// The layouts that are merged from king squares.
    pub(super) fn merged(&self) -> Vec<MergedSquares> {
        let merged = |layout: &KingLayout| match layout {
            KingLayout::Merged(squares) => Some(*squares),
            KingLayout::Named(_) | KingLayout::Table(_) => None,
        };
        self.king_buckets.iter().filter_map(merged).collect()
    }

    /// The keys that need no network, and layouts as they might be merged, to count candidates.
    pub(super) fn before_training(&self) -> (CandidateKeys, NetworkFindings) {
        let layouts = self.merged().into_iter().map(|squares| (squares, squares.example())).collect();
        (CandidateKeys { select: Vec::new(), ..self.clone() }, NetworkFindings { importance: None, layouts })
    }
}

/// The incumbent with rows for every square of the own king in one of its blocks, as the command line takes it: its own
/// definition if it has them. `None` if no block can have them.
///
/// # Errors
/// When the incumbent is no definition, or would be too large.
pub(super) fn by_king_square(incumbent: &str) -> Result<Option<String>, FeatureError> {
    let incumbent = Composition::load(incumbent)?;
    let Some(squares) = changes::by_king_square(&incumbent) else { return Ok(None) };
    let [own, refined] = [incumbent.define("")?, squares.define("king squares")?];
    Ok(Some(if own.identity() == refined.identity() { own.text } else { refined.text }))
}

/// The incumbent's candidates in the order of the keys, each definition once; none is the incumbent. `request` gives a
/// set as the command line takes it for one as written in the experiment. A change that is no definition, as one of too
/// many features, is a candidate that is refused.
///
/// # Errors
/// With the key that is wrong, when the incumbent or a block to add is no definition, a layout cannot be used, the grammar
/// yields nothing, or `select` lacks the features' importance.
pub fn candidates(
    incumbent: &str,
    keys: &CandidateKeys,
    seed: Seed,
    request: &dyn Fn(&str) -> Result<String, FeatureError>,
    findings: &NetworkFindings,
) -> Result<Vec<Candidate>, SettingError> {
    let wrong = |error: FeatureError| SettingError::new("", format!("the incumbent cannot be used: {error}"));
    let incumbent = Composition::load(incumbent).map_err(wrong)?;
    let unchanged = incumbent.define("").map_err(wrong)?;
    let mut known = HashSet::from([unchanged.identity()]);
    let mut found = Vec::new();
    for (kind, Change { composition, words: change }) in changes(&incumbent, keys, seed, request, findings)? {
        let named = Composition { name: changed_name(&incumbent.name), ..composition };
        match named.define(&change) {
            Err(error) => {
                let refused = Some(error.to_string());
                found.push(Candidate { set: String::new(), change, kind, features: 0, refused });
            }
            Ok(definition) if known.insert(definition.identity()) => {
                let (set, features) = (definition.text, definition.size);
                found.push(Candidate { set, change, kind, features, refused: None });
            }
            Ok(_) => {}
        }
    }
    Ok(found)
}

fn changes(
    incumbent: &Composition,
    keys: &CandidateKeys,
    seed: Seed,
    request: &dyn Fn(&str) -> Result<String, FeatureError>,
    findings: &NetworkFindings,
) -> Result<Vec<(ChangeKind, Change)>, SettingError> {
    let mut all = Vec::new();
    let mut add = |kind: ChangeKind, changes: Vec<Change>| all.extend(changes.into_iter().map(|change| (kind, change)));
    for written in &keys.blocks {
        let added = request(written)
            .and_then(|request| blocks_of(&request, incumbent))
            .map_err(|error| SettingError::new("blocks", format!("the block {written} cannot be added: {error}")))?;
        add(ChangeKind::Add, changes::added(incumbent, &added, written));
    }
    if let Some(grammar) = &keys.grammar {
        for block in grammar.blocks(seed)? {
            let added = blocks_of(&block, incumbent)
                .map_err(|error| SettingError::new("grammar", format!("the block {block} cannot be added: {error}")))?;
            add(ChangeKind::Add, changes::added(incumbent, &added, &block));
        }
    }
    add(ChangeKind::Mirror, keys.mirror.iter().flat_map(|mirror| changes::mirrored(incumbent, *mirror)).collect());
    let merged = &findings.layouts;
    for (layout, at) in keys.king_buckets.iter().zip(1..) {
        let layout = match layout.read(at, changes::orientation(incumbent).mirror, merged) {
            // A table of half a board has nothing to say where the king stands on all of it.
            Err(_) if layout.read(at, Mirror::KingLeft, merged).is_ok() => continue,
            // No block can have king squares.
            Err(_) if matches!(layout, KingLayout::Merged(_)) && merged.is_empty() => continue,
            read => read?,
        };
        add(ChangeKind::KingBuckets, changes::with_king_buckets(incumbent, &layout));
    }
    if keys.drop {
        add(ChangeKind::Drop, changes::without_each(incumbent));
    }
    if !keys.select.is_empty() {
        let lacking = || SettingError::new("select", "select needs the importance of the incumbent's features");
        let importance = FeatureImportance(findings.importance.as_deref().ok_or_else(lacking)?);
        add(ChangeKind::Select, keys.select.iter().flat_map(|keep| importance.selected(incumbent, *keep)).collect());
    }
    Ok(all)
}

/// The blocks to add of a request. The blocks of an expression are seen on the incumbent's board.
fn blocks_of(request: &str, incumbent: &Composition) -> Result<Composition, FeatureError> {
    if is_name(request) || request.ends_with(".toml") || request.contains('"') {
        Composition::load(request)
    } else {
        Composition::of_expression(request, changes::orientation(incumbent))
    }
}

/// The name of a changed set.
fn changed_name(name: &str) -> String {
    const CHANGED: &str = " changed";
    if name.ends_with(CHANGED) { name.to_owned() } else { format!("{name}{CHANGED}") }
}
