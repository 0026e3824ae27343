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
/// | output weights | `weights` | raw / `one` |
/// | output bias, raw output, PSQT | i32 | raw: `nnue2score · divisor`, without a divisor `one · hidden` |
///
/// With weights in i8, products of two activations are divided by the power of two above `one`, so that they are
/// activations again; a skip output is brought to the raw output's scale. With weights in i16 there are no hidden layers,
/// and products stay whole: a weight times the first activation fits i16, that times the second goes into the sum, which
/// is divided by `one` (truncated toward zero) before the bias is added.
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
    /// Raw output units an internal score unit, where that is a whole number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divisor: Option<i32>,
    /// Internal score units a pawn. 100 for the nets trained here, whose targets are centipawns.
    pub pawn_value: i32,
    /// What the dense weights are.
    #[serde(default, skip_serializing_if = "WeightType::is_i8")]
    pub weights: WeightType,
}

/// The integers of dense weights.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightType {
    #[default]
    I8,
    /// No hidden layers.
    I16,
}

impl WeightType {
    fn is_i8(&self) -> bool {
        *self == WeightType::I8
    }
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
    /// What trainers of nets with i16 weights clip to (bullet's default).
    const CLIP_I16: f64 = 1.98;

    /// The arithmetic of Stockfish's networks since version 12, with centipawns as internal unit.
    #[must_use]
    pub fn stockfish() -> Scheme {
        let weights = WeightType::I8;
        Scheme {
            name: "stockfish".into(),
            one: 127,
            hidden: 64,
            nnue2score: 600,
            divisor: Some(16),
            pawn_value: 100,
            weights,
        }
    }

    /// The arithmetic of networks without hidden layers as trained with bullet: QA 255, QB 64, scale 400.
    #[must_use]
    pub fn simple() -> Scheme {
        let weights = WeightType::I16;
        Scheme { name: "simple".into(), one: 255, hidden: 64, nnue2score: 400, divisor: None, pawn_value: 100, weights }
    }

    #[must_use]
    pub fn all() -> [Scheme; 2] {
        [Scheme::stockfish(), Scheme::simple()]
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Scheme> {
        Scheme::all().into_iter().find(|scheme| scheme.name == name)
    }

    /// # Errors
    /// When a scale is not positive, activations do not fit seven bits (eight with weights in i16) or the hidden scale is
    /// no power of two.
    pub fn validate(&self) -> Result<(), NetError> {
        let wrong = |why: String| Err(NetError::Scheme(why));
        let scales = [self.nnue2score, self.divisor.unwrap_or(1), self.pawn_value];
        let largest = if self.weights.is_i8() { 127 } else { 255 };
        if !(1..=largest).contains(&self.one) {
            return wrong(format!("activations go up to 1 to {largest}, not {}", self.one));
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
        let wrong = |why: &str| Err(NetError::Scheme(format!("{} {why}", self.name)));
        let relu = [shape.activation, shape.hidden_activation].contains(&Activation::Relu);
        match self.weights {
            WeightType::I8 if relu => {
                wrong("clips activations at 1 and has no relu; take crelu, or scheme `simple`, which has no such limit")
            }
            WeightType::I16 if !shape.hidden.is_empty() => {
                wrong("has weights in i16 for one layer; networks with hidden layers take scheme `stockfish`")
            }
            _ => Ok(()),
        }
    }

    /// The largest dense weight for inputs of that activation. In i16 a weight times an activation stays in i16, except
    /// where each activation counts once and is at most 255: there any weight does.
    #[must_use]
    pub fn largest_weight(&self, activation: Activation) -> i32 {
        match (self.weights, activation) {
            (WeightType::I8, _) => i32::from(i8::MAX),
            (WeightType::I16, Activation::Crelu) => i32::from(i16::MAX),
            (WeightType::I16, _) => i32::from(i16::MAX) / 255,
        }
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        let limit = |scale: f64| match self.weights {
            WeightType::I8 => f64::from(i8::MAX) / scale,
            WeightType::I16 => Self::CLIP_I16.min(f64::from(self.largest_weight(Activation::Screlu)) / scale),
        };
        Limits {
            feature_transformer: f64::from(i16::MAX) / self.feature_transformer_scale(),
            hidden: limit(self.hidden_weight_scale()),
            output: limit(self.output_weight_scale()),
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
        self.raw_scale() as f64
    }

    fn raw_scale(&self) -> i64 {
        match self.divisor {
            Some(divisor) => i64::from(self.nnue2score) * i64::from(divisor),
            None => i64::from(self.one) * i64::from(self.hidden),
        }
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

    /// What rounding leaves of a product of two activations: 127/128 where `one` is 127, all of it with weights in i16.
    #[must_use]
    pub fn product_scale(&self) -> f64 {
        match self.weights {
            WeightType::I8 => f64::from(self.one) / f64::from(1u32 << self.product_shift()),
            WeightType::I16 => 1.0,
        }
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
        (i64::from(sum) * self.raw_scale() / (i64::from(self.one) * i64::from(self.hidden))) as i32
    }

    /// Raw output to internal score units, truncated toward zero.
    #[must_use]
    pub fn internal_score(&self, raw: i32) -> i32 {
        match self.divisor {
            Some(divisor) => raw / divisor,
            None => (i64::from(raw) * i64::from(self.nnue2score) / self.raw_scale()) as i32,
        }
    }

    /// Centipawns a float output of 1.0.
    #[must_use]
    pub fn float_centipawns(&self) -> f64 {
        f64::from(self.nnue2score) * 100.0 / f64::from(self.pawn_value)
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
        assert_eq!([0, 8128, -8128, 4598, i32::MIN].map(|sum| scheme.square(sum)), [0, 126, 126, 40, 127]);
        assert_eq!([8128, -8128, 4707, -1].map(|sum| scheme.skip(sum)), [9600, -9600, 5559, -1]);
        close(scheme.product_scale(), 127.0 / 128.0);
        let other = Scheme { pawn_value: 208, ..scheme };
        assert_eq!((other.centipawns(208), other.centipawns(-1)), (100, 0));
    }

    #[test]
    fn simple_has_the_published_numbers() {
        let scheme = Scheme::simple();
        assert!(scheme.validate().is_ok());
        let scales = [scheme.feature_transformer_scale(), scheme.output_weight_scale(), scheme.output_bias_scale()];
        assert_eq!(scales, [255.0, 64.0, 16_320.0]);
        assert_eq!((scheme.limits().output, scheme.product_scale()), (1.98, 1.0));
        let most = [Activation::Crelu, Activation::Screlu].map(|activation| scheme.largest_weight(activation));
        assert_eq!(most, [32_767, 128]);
        assert_eq!(
            [16_320, -16_320, 40, 41, -41, i32::MAX].map(|raw| scheme.internal_score(raw)),
            [400, -400, 0, 1, -1, 52_634_403]
        );
    }

    #[test]
    fn headers_stay_as_they_were() {
        let check = |scheme: Scheme, expected: &str| {
            assert_eq!(serde_json::to_string(&scheme).expect("written"), expected);
            assert_eq!(serde_json::from_str::<Scheme>(expected).expect("read"), scheme);
            assert_eq!(Scheme::named(&scheme.name), Some(scheme));
        };
        let stockfish = r#"{"name":"stockfish","one":127,"hidden":64,"nnue2score":600,"divisor":16,"pawn_value":100}"#;
        check(Scheme::stockfish(), stockfish);
        let simple = r#"{"name":"simple","one":255,"hidden":64,"nnue2score":400,"pawn_value":100,"weights":"i16"}"#;
        check(Scheme::simple(), simple);
    }

    #[test]
    fn what_a_scheme_cannot_say_is_refused() {
        let check = |scheme: Scheme, shape: Shape, expected: Option<&str>| {
            let error = scheme.admits(&shape).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            assert!(error.is_none_or(|error| error.contains(expected.unwrap_or_default())));
        };
        let relu = Shape { activation: Activation::Relu, ..Shape::plain(1, 2, vec![]) };
        check(Scheme::simple(), relu.clone(), None);
        check(Scheme::stockfish(), relu, Some("clips activations at 1 and has no relu"));
        check(
            Scheme::simple(),
            Shape::plain(1, 2, vec![3]),
            Some("networks with hidden layers take scheme `stockfish`"),
        );
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
        check(|s| s.divisor = Some(0));
        check(|s| s.pawn_value = -1);
        check(|s| s.nnue2score = i32::MAX);
    }
}
