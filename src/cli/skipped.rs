//! Warns about the broken entries of a file of samples.

use std::fmt::Display;

use crate::data::formats::SkippedSamples;

/// Warns about the broken entries of `data`, if it has any: how many of each kind, and the first.
pub fn warn_skipped_samples(data: impl Display, skipped: &SkippedSamples) {
    if !skipped.is_empty() {
        note!("warning: broken entries of {data} are left out ({})", skipped.by_reason_text());
        skipped.examples.iter().for_each(|example| note!("  {example}"));
    }
}
