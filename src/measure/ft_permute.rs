//! Permutes a network's accumulator neurons by positions of a data file ([`crate::engine::ft_permute()`]).

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, first_lines};
use crate::chess::{Board, Color};
use crate::engine;
use crate::features::FeatureSet;
use crate::net::{NetFile, QuantNet};

/// Positions to read.
pub(super) const POSITIONS: u64 = 20_000;
/// How many of them are used, evenly spaced.
const SAMPLED: usize = 4_000;

/// Groups neurons that are active together on the first 20,000 positions of `data`. Every score stays the same.
///
/// # Errors
/// When the network's feature set cannot be rebuilt or the data cannot be read.
pub fn ft_permute(file: NetFile, data: &Path) -> Result<(NetFile, ReadSummary), MeasureError> {
    let set = file.origin.feature_set()?;
    let (lines, summary) = first_lines(data, POSITIONS)?;
    let net = ft_permute_by_lines(&set, &file.net, &lines)?;
    Ok((NetFile { net, ..file }, summary))
}

/// [`ft_permute`] by the positions of these lines.
pub(super) fn ft_permute_by_lines(set: &FeatureSet, net: &QuantNet, lines: &[Line]) -> Result<QuantNet, MeasureError> {
    let mut positions: Vec<(Board, Color)> = Vec::new();
    let add = |line: &Line| line.for_each_position(|board, turn, _| positions.push((board.clone(), turn)));
    lines.iter().for_each(add);
    let step = positions.len().div_ceil(SAMPLED).max(1);
    let sampled = positions.iter().map(|(board, turn)| (board, *turn)).step_by(step);
    Ok(engine::ft_permute(set, net, sampled)?)
}
