//! Quantisation schemes: how a float network's numbers become integers. Data in a network's header, not code.

use serde::{Deserialize, Serialize};

use super::{Activation, NetError, Shape};

/// The scales of one integer arithmetic. Activations are integers in `0..=one`; everything else follows:
///
/// | number | integer | is the float times |
/// |---|---|---|
/// | feature transformer weights, biases | i16 | `one` |
/// | hidden weights | i8 | `hidden` |
/// | hidden biases | i32 | `one · hidden` |
/// | output weights | i8 | `nnue2score · divisor / one` |
/// | output bias, raw output, PSQT | i32 | `nnue2score · divisor` |
///
/// Products of two activations are divided by the power of two above `one`; a skip output is brought to the raw output's
/// scale.
///
/// Accumulators are sums modulo 2^16: an update that leaves the range on the way and comes back is exact, and a sum
/// that stays outside wraps, as in the engines of this family. `measure error` counts positions where that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    pub name: String,
    /// The activation 1.0.
    pub one: i32,
    /// Scale of the hidden weights; a power of two, so that [`Scheme::rescale`] is a shift.
    pub hidden: i32,
    /// Internal score units a float output of 1.0.
    pub nnue2score: i32,
    /// Raw output units an internal score unit.
    pub divisor: i32,
    /// Internal score units a pawn. 100 for the nets trained here, whose targets are centipawns.
    pub pawn_value: i32,
}

/// Largest absolute float weights a scheme can hold: what training clips to.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    pub feature_transformer: f64,
    pub hidden: f64,
    pub output: f64,
}

impl Default for Scheme {
    fn default() -> Self {
        Scheme::stockfish()
    }
}

impl Scheme {
    const MAX_WEIGHT: f64 = i8::MAX as f64;

    /// The arithmetic of Stockfish's networks since version 12, with centipawns as internal unit.
    #[must_use]
    pub fn stockfish() -> Scheme {
        Scheme { name: "stockfish".into(), one: 127, hidden: 64, nnue2score: 600, divisor: 16, pawn_value: 100 }
    }

    /// # Errors
    /// When a scale is not positive, activations do not fit seven bits or the hidden scale is no power of two.
    pub fn validate(&self) -> Result<(), NetError> {
        let wrong = |why: String| Err(NetError::Scheme(why));
        let scales = [self.nnue2score, self.divisor, self.pawn_value];
        if !(1..=127).contains(&self.one) {
            return wrong(format!("activations go up to 1 to 127, not {}", self.one));
        }
        if !(1..=1 << 15).contains(&self.hidden) || !self.hidden.unsigned_abs().is_power_of_two() {
            return wrong(format!("the scale of hidden weights is a power of two up to 32768, not {}", self.hidden));
        }
        match scales.iter().find(|scale| !(1..=1 << 15).contains(*scale)) {
            Some(scale) => wrong(format!("scales are 1 to 32768, not {scale}")),
            None => Ok(()),
        }
    }

    /// # Errors
    /// When the scheme has no integers for a part of the shape.
    pub fn admits(&self, shape: &Shape) -> Result<(), NetError> {
        match [shape.activation, shape.hidden_activation].contains(&Activation::Relu) {
            false => Ok(()),
            true => Err(NetError::Scheme(format!(
                "{} clips activations at 1 and has no relu; take crelu, or a scheme without the limit",
                self.name
            ))),
        }
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            feature_transformer: f64::from(i16::MAX) / self.feature_transformer_scale(),
            hidden: Self::MAX_WEIGHT / self.hidden_weight_scale(),
            output: Self::MAX_WEIGHT / self.output_weight_scale(),
        }
    }

    /// Of the feature transformer's weights and biases, and of every activation.
    #[must_use]
    pub fn feature_transformer_scale(&self) -> f64 {
        f64::from(self.one)
    }

    #[must_use]
    pub fn hidden_weight_scale(&self) -> f64 {
        f64::from(self.hidden)
    }

    #[must_use]
    pub fn hidden_bias_scale(&self) -> f64 {
        f64::from(self.one) * f64::from(self.hidden)
    }

    #[must_use]
    pub fn output_weight_scale(&self) -> f64 {
        self.output_bias_scale() / f64::from(self.one)
    }

    /// Also that of the raw output.
    #[must_use]
    pub fn output_bias_scale(&self) -> f64 {
        f64::from(self.nnue2score) * f64::from(self.divisor)
    }

    /// The bits a hidden layer's sum is shifted right by to have the activations' scale again.
    #[must_use]
    pub fn rescale_shift(&self) -> u32 {
        self.hidden.trailing_zeros()
    }

    /// A hidden layer's sum, rounded down to the activations' scale (before clipping).
    #[must_use]
    pub fn rescale(&self, sum: i32) -> i32 {
        sum >> self.rescale_shift()
    }

    /// clamp(x, 0, 1) in the activations' scale.
    #[must_use]
    pub fn crelu(&self, value: i32) -> u8 {
        value.clamp(0, self.one) as u8
    }

    /// The bits a product of two activations is shifted right by, so that 1.0 squared is the greatest activation or one
    /// below: 7 where `one` is 127.
    #[must_use]
    pub fn product_shift(&self) -> u32 {
        32 - self.one.leading_zeros()
    }

    /// What the shift leaves of a product of two activations: 127/128 where `one` is 127.
    #[must_use]
    pub fn product_scale(&self) -> f64 {
        f64::from(self.one) / f64::from(1u32 << self.product_shift())
    }

    /// The product of two activations, rounded down.
    #[must_use]
    pub fn product(&self, a: u8, b: u8) -> u8 {
        ((u32::from(a) * u32::from(b)) >> self.product_shift()) as u8
    }

    /// min(x², 1) of a hidden layer's sum, in the activations' scale.
    #[must_use]
    pub fn square(&self, sum: i32) -> u8 {
        let square = i64::from(sum) * i64::from(sum);
        (square >> (2 * self.rescale_shift() + self.product_shift())).min(i64::from(self.one)) as u8
    }

    /// A hidden layer's sum as a share of the raw output, truncated toward zero.
    #[must_use]
    pub fn skip(&self, sum: i32) -> i32 {
        let output = i64::from(self.nnue2score) * i64::from(self.divisor);
        (i64::from(sum) * output / (i64::from(self.one) * i64::from(self.hidden))) as i32
    }

    /// Raw output to internal score units, truncated toward zero.
    #[must_use]
    pub fn internal_score(&self, raw: i32) -> i32 {
        raw / self.divisor
    }

    /// Internal score units to centipawns, truncated toward zero.
    #[must_use]
    pub fn centipawns(&self, internal: i32) -> i32 {
        (i64::from(internal) * 100 / i64::from(self.pawn_value)) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stockfish_has_the_published_numbers() {
        let scheme = Scheme::stockfish();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        assert!(scheme.validate().is_ok());
        close(scheme.feature_transformer_scale(), 127.0);
        close(scheme.hidden_bias_scale(), 8128.0);
        close(scheme.output_weight_scale(), 600.0 * 16.0 / 127.0);
        close(scheme.output_bias_scale(), 9600.0);
        close(scheme.limits().hidden, 127.0 / 64.0);
        close(scheme.limits().output, 127.0 * 127.0 / 9600.0);
        assert_eq!(scheme.rescale_shift(), 6);
        assert_eq!((scheme.rescale(-1), scheme.rescale(127)), (-1, 1));
        assert_eq!((scheme.crelu(-1), scheme.crelu(5), scheme.crelu(128)), (0, 5, 127));
        assert_eq!((scheme.internal_score(-31), scheme.internal_score(31)), (-1, 1));
        assert_eq!([(127, 127), (127, 1), (64, 64)].map(|(a, b)| scheme.product(a, b)), [126, 0, 32]);
        close(scheme.product_scale(), 127.0 / 128.0);
        assert_eq!([0, 8128, -8128, 4598, i32::MIN].map(|sum| scheme.square(sum)), [0, 126, 126, 40, 127]);
        assert_eq!([8128, -8128, 4707, -1].map(|sum| scheme.skip(sum)), [9600, -9600, 5559, -1]);
        let other = Scheme { pawn_value: 208, ..scheme };
        assert_eq!((other.centipawns(208), other.centipawns(-1)), (100, 0));
    }

    #[test]
    fn nonsense_is_refused() {
        let check = |change: fn(&mut Scheme)| {
            let mut scheme = Scheme::stockfish();
            change(&mut scheme);
            assert!(scheme.validate().is_err(), "{scheme:?}");
        };
        check(|s| s.one = 0);
        check(|s| s.one = 128);
        check(|s| s.hidden = 63);
        check(|s| s.hidden = i32::MIN);
        check(|s| s.divisor = 0);
        check(|s| s.pawn_value = -1);
        check(|s| s.nnue2score = i32::MAX);
    }
}
