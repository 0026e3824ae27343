//! The limits of the feature transformer's rows.

use tch::{TchError, Tensor};

use crate::net::{Scheme, Shape};

/// What the feature transformer's weights are clamped to: ± the limit of sixteen bits, and the neurons' weights of the
/// first rows, which have eight bits, more narrowly. PSQT values have the first limit only.
#[derive(Copy, Clone, Debug)]
pub struct RowLimits {
    /// Of every column of every row.
    pub all: f32,
    narrow: f32,
    narrow_rows: usize,
    neurons: usize,
}

impl RowLimits {
    #[must_use]
    pub fn new(shape: &Shape, scheme: &Scheme) -> RowLimits {
        let limits = scheme.limits();
        let (all, narrow) = (limits.feature_transformer as f32, limits.narrow as f32);
        RowLimits { all, narrow, narrow_rows: shape.narrow as usize, neurons: shape.l1 }
    }

    /// Clamps the neurons' weights of a feature with eight bits; the row is within the other limit already.
    #[inline]
    pub fn clamp_narrow(&self, feature: usize, row: &mut [f32]) {
        if feature < self.narrow_rows {
            row[..self.neurons].iter_mut().for_each(|weight| *weight = weight.clamp(-self.narrow, self.narrow));
        }
    }

    /// As [`RowLimits::clamp_narrow`], of all rows: [features, columns].
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn clamp_narrow_tensor(&self, rows: &Tensor) -> Result<(), TchError> {
        if self.narrow_rows > 0 {
            let narrow = rows.f_narrow(0, 0, self.narrow_rows as i64)?;
            let limit = f64::from(self.narrow);
            let _ = narrow.f_narrow(1, 0, self.neurons as i64)?.f_clamp_(-limit, limit)?;
        }
        Ok(())
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
        let rows = Tensor::from_slice(&[3.0f32, -3.0, 3.0, 3.0, -3.0, 3.0]).view([2, 3]);
        limits.clamp_narrow_tensor(&rows).expect("clamped");
        let values = Vec::<f32>::try_from(rows.view([6])).expect("six numbers");
        assert_eq!(values, [largest, -largest, 3.0, 3.0, -3.0, 3.0]);
    }
}
