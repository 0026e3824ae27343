//! bullet
use crate::features::FeatureSet;
pub fn source(_: &FeatureSet) -> String { String::new() }
