//! The rows with which a network on one feature set starts from a network on another: weighted sums of its rows.

use super::factor::Factors;

/// A row of the network to start from, and its weight.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RowPart {
    pub row: u32,
    pub weight: f32,
}

/// For each feature of a set, the rows of another set's network whose weighted sum its row starts with; and the rows
/// that the biases receive.
///
/// ```
/// use fsbench::features::{FeatureSet, StartingRows, lifting};
///
/// let fine = FeatureSet::resolve("file(K) * square(P) for P in pieces")?;
/// let rows = StartingRows::from(&lifting(&fine, &FeatureSet::resolve("square(P) for P in pieces")?)?);
/// assert_eq!(rows.parts(2 * 64 + 12).iter().map(|part| (part.row, part.weight)).collect::<Vec<_>>(), [(12, 1.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StartingRows {
    /// Feature i starts with `parts[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    parts: Vec<RowPart>,
    bias: Vec<RowPart>,
}

impl StartingRows {
    pub(super) fn new(rows: Vec<Vec<RowPart>>, bias: Vec<RowPart>) -> StartingRows {
        let mut starts = vec![0];
        let mut parts = Vec::new();
        for row in rows {
            parts.extend(row);
            starts.push(parts.len());
        }
        StartingRows { starts, parts, bias }
    }

    /// Number of features.
    #[must_use]
    pub fn features(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// The rows that a feature's row is summed from; empty: it starts at zero.
    #[must_use]
    pub fn parts(&self, feature: u32) -> &[RowPart] {
        let [start, end] = [feature, feature + 1].map(|at| self.starts[at as usize]);
        &self.parts[start..end]
    }

    /// The rows that are added to the biases: the average of features without a counterpart.
    #[must_use]
    pub fn bias(&self) -> &[RowPart] {
        &self.bias
    }
}

impl From<&Factors> for StartingRows {
    /// Every score stays the same: each row is the sum of the rows that its feature stands for.
    fn from(lifted: &Factors) -> StartingRows {
        let features = 0..lifted.features();
        let parts =
            |feature: u32| lifted.inputs(feature).iter().map(|row| RowPart { row: *row, weight: 1.0 }).collect();
        StartingRows::new(features.map(parts).collect(), Vec::new())
    }
}
