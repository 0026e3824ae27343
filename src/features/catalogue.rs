//! The shipped sets in a list.

use serde::Serialize;

use super::definition;
use super::error::FeatureError;
use super::library::available_names;

/// A shipped set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShippedSet {
    /// The name to ask for it by.
    pub name: String,
    pub num_features: u32,
    pub about: Option<String>,
    /// Where it comes from, as its file says at the top.
    pub source: Option<String>,
}

/// Every shipped set, by name.
///
/// # Errors
/// When one of the files is no definition.
pub fn shipped_sets() -> Result<Vec<ShippedSet>, FeatureError> {
    let listed = |name: String| {
        let definition = definition::load(&name)?;
        Ok(ShippedSet { name, num_features: definition.size, about: definition.about, source: definition.comment })
    };
    available_names().into_iter().map(listed).collect()
}
