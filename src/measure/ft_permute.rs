//! Networks with their neurons in an order that suits real positions.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, first};
use crate::chess::{Board, Color};
use crate::engine;
use crate::features::FeatureSet;
use crate::net::{NetFile, QuantNet};

/// Positions read.
pub(super) const READ: u64 = 20_000;
/// Of those, how many are looked at, evenly apart.
const LOOKED_AT: usize = 4_000;

/// The same network, scores and all, with neurons that are active together put together, as
/// [`crate::engine::ft_permute`] has it: by the first 20,000 positions of `data`.
///
/// # Errors
/// When the network's feature set cannot be rebuilt or the data cannot be read.
pub fn ft_permute(file: NetFile, data: &Path) -> Result<(NetFile, ReadSummary), MeasureError> {
    let set = file.origin.feature_set()?;
    let (lines, reading) = first(data, READ)?;
    let net = by_lines(&set, &file.net, &lines)?;
    Ok((NetFile { net, ..file }, reading))
}

/// [`arrange`] by some of these lines' positions.
pub(super) fn by_lines(set: &FeatureSet, net: &QuantNet, lines: &[Line]) -> Result<QuantNet, MeasureError> {
    let mut positions: Vec<(Board, Color)> = Vec::new();
    let add = |line: &Line| line.positions(|board, turn, _| positions.push((board.clone(), turn)));
    lines.iter().for_each(add);
    let step = positions.len().div_ceil(LOOKED_AT).max(1);
    let looked_at = positions.iter().map(|(board, turn)| (board, *turn)).step_by(step);
    Ok(engine::ft_permute(set, net, looked_at)?)
}
