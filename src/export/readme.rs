//! The README of an export.
use super::{ExportFile, Language};
use crate::features::FeatureSet;
pub fn text(_: &FeatureSet, _: Language, _: &[ExportFile]) -> String { String::new() }
