//! From an incumbent and the keys of `[search]` to the sets that a round tries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::{FeatureError, FeatureSet};
use crate::settings::SettingError;
use crate::units::Seed;

/// A definition to try instead of the incumbent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The definition, as the command line takes it.
    pub set: String,
    /// The change of the incumbent in words, as in `plus threat-roles`.
    pub change: String,
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Blocks are added.
    Add,
}

impl ChangeKind {
    /// As records and tables call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ChangeKind::Add => "add",
        }
    }
}

/// The changes of the incumbent that a search tries
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CandidateKeys {
    /// Blocks to add, each an expression or the name of a set
    pub blocks: Vec<String>,
}

impl CandidateKeys {
    /// Checks what needs no incumbent.
    ///
    /// # Errors
    /// When a block is written twice.
    pub fn check(&self, _seed: Seed) -> Result<(), SettingError> {
        match self.blocks.iter().enumerate().find(|(at, block)| self.blocks[..*at].contains(block)) {
            Some((_, twice)) => Err(SettingError::new("blocks", format!("blocks lists '{twice}' twice"))),
            None => Ok(()),
        }
    }
}

/// The incumbent's candidates in the order of the keys, each definition once; none is the incumbent.
///
/// # Errors
/// With the key that is wrong, when the incumbent or a block to add is no definition.
pub fn candidates(
    incumbent: &str,
    keys: &CandidateKeys,
    _seed: Seed,
    request: &dyn Fn(&str) -> Result<String, FeatureError>,
    _importance: Option<&[f64]>,
) -> Result<Vec<Candidate>, SettingError> {
    let wrong = |error: FeatureError| SettingError::new("", format!("the incumbent cannot be used: {error}"));
    let mut known = vec![FeatureSet::resolve(incumbent).map_err(wrong)?.identity().clone()];
    let mut found = Vec::new();
    for block in &keys.blocks {
        let added = || -> Result<(String, FeatureSet), FeatureError> {
            let set = format!("{incumbent} + {}", request(block)?);
            let resolved = FeatureSet::resolve(&set)?;
            Ok((set, resolved))
        };
        let (set, resolved) = added()
            .map_err(|error| SettingError::new("blocks", format!("the block {block} cannot be added: {error}")))?;
        if !known.contains(resolved.identity()) {
            known.push(resolved.identity().clone());
            found.push(Candidate { set, change: format!("plus {block}"), kind: ChangeKind::Add });
        }
    }
    Ok(found)
}
