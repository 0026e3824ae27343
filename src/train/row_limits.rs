//! The limits of the feature transformer's rows.

use crate::net::{Scheme, Shape};

/// The limits of the feature transformer's weights: ± the limit of sixteen bits, and the neurons' weights of the first
/// rows, which have eight bits, more narrowly. PSQT values have the first limit only.
#[derive(Copy, Clone, Debug)]
pub struct RowLimits {
    /// Of every column of every row.
    pub all: f32,
    /// Of the neurons' weights of narrow rows.
    pub narrow: f32,
    /// Number of narrow rows, the first ones.
    pub narrow_rows: usize,
    pub neurons: usize,
}

impl RowLimits {
    #[must_use]
    pub fn new(shape: &Shape, scheme: &Scheme) -> RowLimits {
        let limits = scheme.limits();
        let all = limits.feature_transformer as f32;
        let narrow = limits.narrow as f32;
        RowLimits { all, narrow, narrow_rows: shape.narrow as usize, neurons: shape.l1 }
    }

    /// Clamps the neurons' weights of a feature with eight bits; the row is within the other limit already.
    #[inline]
    pub fn clamp_narrow(&self, feature: usize, row: &mut [f32]) {
        if feature < self.narrow_rows {
            row[..self.neurons].iter_mut().for_each(|weight| *weight = weight.clamp(-self.narrow, self.narrow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neurons_of_narrow_rows_are_clamped() {
        let shape = Shape { narrow: 1, psqt: true, ..Shape::plain(2, 2, vec![]) };
        let limits = RowLimits::new(&shape, &Scheme::stockfish());
        let largest = 1.0;
        let clamped = |feature| {
            let mut row = [3.0, -3.0, 3.0];
            limits.clamp_narrow(feature, &mut row);
            row
        };
        assert_eq!([clamped(0), clamped(1)], [[largest, -largest, 3.0], [3.0, -3.0, 3.0]]);
    }
}
