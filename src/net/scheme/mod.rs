//! Quantisation schemes: the scales between float and integer networks. A scheme is data in the network's header.

mod arithmetic;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Activation, NetError, Shape};

/// The scales of an integer arithmetic. Activations are integers in `0..=one`; the other scales follow:
///
/// | number | integer | scale |
/// |---|---|---|
/// | feature transformer weights, biases | i16 | `one`, or the accumulator's own |
/// | hidden weights | i8 | `hidden`; of the second layer `second_hidden`, if it has its own |
/// | hidden biases | i32 | `one` times that |
/// | output weights | `weights` | `output`, else raw / `one` |
/// | output bias | i32 | `one · output`, else raw |
/// | raw output, PSQT | i32 | raw: `nnue2score · divisor`, without a divisor `one · hidden` |
///
/// With i8 weights, products of two activations are divided by the power of two above `one`, which makes them
/// activations again. A skip output is rescaled to the output's sum, and that to the raw output, truncated toward zero.
/// With i8 weights an activation 1.0 of 128 is clipped at 127. With i16 weights there are no hidden layers, and
/// products are not rounded (direct output): a weight times the first activation fits i16, and its product with the
/// second is summed. The sum is divided by `one`, truncated toward zero, before the bias is added.
///
/// Accumulators are sums modulo 2^16, as in the engines of this family: updates may overflow on the way, but a sum
/// outside i16 wraps. `measure error` counts the positions where that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// The scheme's name.
    pub name: String,
    /// The integer of activation 1.0.
    pub one: i32,
    /// Scale of the hidden weights; a power of two, so that sums are rescaled by a shift.
    pub hidden: i32,
    /// Scale of the second hidden layer's weights, likewise; `None` = the first layer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_hidden: Option<i32>,
    /// Scale of the output weights; `None` = such that sums have the raw output's scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<i32>,
    /// Internal score units per float output of 1.0.
    pub nnue2score: i32,
    /// Raw output units per internal score unit, if that is an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divisor: Option<i32>,
    /// Internal score units per pawn; 100 for networks trained on centipawns.
    pub pawn_value: i32,
    /// The integer type of the dense weights.
    #[serde(default, skip_serializing_if = "WeightType::is_i8")]
    pub weights: WeightType,
    /// The arithmetic of accumulators; `None` = as all activations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<AccumulatorScales>,
    /// Whether the two parts of a raw output become scores each before they are added, which truncates twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncates_parts: bool,
}

/// The arithmetic of accumulators whose neurons are multiplied: finer than the arithmetic of the activations, which are
/// their products.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccumulatorScales {
    /// The scale of the feature transformer's weights and biases.
    pub scale: i32,
    /// Neurons are clipped to `0..=clip`.
    pub clip: i32,
    /// The right shift from a product of two clipped neurons to an activation.
    pub shift: u32,
}

/// The integer type of dense weights.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WeightType {
    #[default]
    I8,
    /// For networks without hidden layers.
    I16,
}

impl WeightType {
    fn is_i8(&self) -> bool {
        *self == WeightType::I8
    }
}

/// The largest absolute float weights that a scheme can hold. Training clips to them.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct WeightLimits {
    pub feature_transformer: f64,
    /// Of the feature transformer's weights with eight bits.
    pub narrow: f64,
    /// Of each hidden layer.
    pub hidden: [f64; 2],
    pub output: f64,
}

impl Default for Scheme {
    fn default() -> Self {
        Scheme::stockfish()
    }
}

impl Scheme {
    /// The weight limit of trainers for i16 weights (bullet's default).
    const CLIP_I16: f64 = 1.98;

    /// The arithmetic of Stockfish's networks since version 12, with centipawns as the internal unit.
    #[must_use]
    pub fn stockfish() -> Scheme {
        let weights = WeightType::I8;
        Scheme {
            name: "stockfish".into(),
            one: 127,
            hidden: 64,
            second_hidden: None,
            output: None,
            nnue2score: 600,
            divisor: Some(16),
            pawn_value: 100,
            weights,
            accumulator: None,
            truncates_parts: false,
        }
    }

    /// The arithmetic of Stockfish 18's large network: accumulators of eight bits.
    #[must_use]
    pub fn stockfish_18() -> Scheme {
        let accumulator = AccumulatorScales { scale: 256, clip: 255, shift: 9 };
        let truncates_parts = true;
        Scheme { name: "stockfish-18".into(), accumulator: Some(accumulator), truncates_parts, ..Scheme::stockfish() }
    }

    /// The arithmetic of Stockfish 19's network: activations of seven bits, and scales by layer.
    #[must_use]
    pub fn stockfish_19() -> Scheme {
        let name = "stockfish-19".into();
        let one = 128;
        let hidden = 128;
        Scheme { name, one, hidden, second_hidden: Some(64), output: Some(128), ..Scheme::stockfish_18() }
    }

    /// The arithmetic of bullet's networks without hidden layers: QA 255, QB 64, scale 400.
    #[must_use]
    pub fn simple() -> Scheme {
        let weights = WeightType::I16;
        let divisor = None;
        let accumulator = None;
        let name = "simple".into();
        let truncates_parts = false;
        Scheme {
            name,
            one: 255,
            hidden: 64,
            second_hidden: None,
            output: None,
            nnue2score: 400,
            divisor,
            pawn_value: 100,
            weights,
            accumulator,
            truncates_parts,
        }
    }

    /// The known schemes.
    #[must_use]
    pub fn all() -> [Scheme; 4] {
        [Scheme::stockfish(), Scheme::stockfish_18(), Scheme::stockfish_19(), Scheme::simple()]
    }

    /// The known scheme of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Scheme> {
        Scheme::all().into_iter().find(|scheme| scheme.name == name)
    }

    /// The first known scheme that supports the shape.
    #[must_use]
    pub fn first_admitting(shape: &Shape) -> Scheme {
        Scheme::all().into_iter().find(|scheme| scheme.admits(shape).is_ok()).unwrap_or_default()
    }

    /// # Errors
    /// When a scale is not positive, the hidden scale is not a power of two, or activations do not fit seven bits
    /// (eight bits with i16 weights).
    pub fn validate(&self) -> Result<(), NetError> {
        let invalid = |reason: String| Err(NetError::Scheme(reason));
        let scales = [self.nnue2score, self.divisor.unwrap_or(1), self.pawn_value, self.output.unwrap_or(1)];
        let largest = if self.weights.is_i8() { 128 } else { 255 };
        if !(1..=largest).contains(&self.one) {
            return invalid(format!("the activation 1.0 is 1 to {largest}, not {}", self.one));
        }
        for hidden in std::iter::once(self.hidden).chain(self.second_hidden) {
            if !(1..=1 << 15).contains(&hidden) || !hidden.unsigned_abs().is_power_of_two() {
                return invalid(format!("the scale of hidden weights is a power of two up to 32768, not {hidden}"));
            }
        }
        if self.output.is_some() && !self.weights.is_i8() {
            return invalid("output weights of sixteen bits have the raw output's scale".into());
        }
        if let Some(AccumulatorScales { scale, clip, shift }) = self.accumulator {
            let products = (clip.saturating_mul(clip)).checked_shr(shift);
            let fits = products.is_some_and(|product| product <= self.largest_activation()) && self.weights.is_i8();
            if !(1..=1 << 15).contains(&scale) || !(1..=255).contains(&clip) || shift > 15 || !fits {
                return invalid(format!(
                    "accumulators of scale {scale}, clipped at {clip} and multiplied with shift {shift} give no \
                     activations up to {}",
                    self.largest_activation()
                ));
            }
        }
        match scales.iter().find(|scale| !(1..=1 << 15).contains(*scale)) {
            Some(scale) => invalid(format!("scales are 1 to 32768, not {scale}")),
            None => Ok(()),
        }
    }

    /// # Errors
    /// When the scheme does not support the shape.
    pub fn admits(&self, shape: &Shape) -> Result<(), NetError> {
        let unsupported = |reason: &str| Err(NetError::Scheme(format!("{} {reason}", self.name)));
        let relu = [shape.activation, shape.hidden_activation].contains(&Activation::Relu);
        match self.weights {
            WeightType::I8 if relu => {
                unsupported("clips activations at 1, so it does not support relu; use crelu or scheme `simple`")
            }
            WeightType::I8 if self.accumulator.is_some() && !shape.activation.multiplies() => {
                unsupported("multiplies neurons, so it needs the activation pairwise or screlu")
            }
            WeightType::I16 if !shape.hidden.is_empty() => {
                unsupported("does not support hidden layers; use scheme `stockfish` for this network")
            }
            _ => Ok(()),
        }
    }

    /// The largest dense weight for inputs of that activation. With i16 weights, a weight times an activation must fit
    /// i16; crelu needs no such product.
    #[must_use]
    pub fn largest_weight(&self, activation: Activation) -> i32 {
        match (self.weights, activation) {
            (WeightType::I8, _) => i32::from(i8::MAX),
            (WeightType::I16, Activation::Crelu) => i32::from(i16::MAX),
            (WeightType::I16, _) => i32::from(i16::MAX) / 255,
        }
    }

    /// The largest bias with which no sum over `inputs` activations times weights leaves i32. With i16 weights sums
    /// saturate, so every bias is valid.
    #[must_use]
    pub(super) fn largest_bias(&self, inputs: usize) -> i64 {
        match self.weights {
            WeightType::I8 => i64::from(i32::MAX) - inputs as i64 * 127 * 128,
            WeightType::I16 => i64::from(i32::MAX),
        }
    }

    #[must_use]
    pub fn limits(&self) -> WeightLimits {
        let limit = |scale: f64| match self.weights {
            WeightType::I8 => f64::from(i8::MAX) / scale,
            WeightType::I16 => Self::CLIP_I16.min(f64::from(self.largest_weight(Activation::Screlu)) / scale),
        };
        WeightLimits {
            feature_transformer: f64::from(i16::MAX) / self.feature_transformer_scale(),
            narrow: f64::from(i8::MAX) / self.feature_transformer_scale(),
            hidden: [0, 1].map(|layer| limit(self.hidden_weight_scale(layer))),
            output: limit(self.output_weight_scale()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn header_format_is_stable() {
        let check = |scheme: Scheme, expected: &str| {
            assert_eq!(json::to_text(&scheme).expect("written"), expected);
            assert_eq!(json::from_text::<Scheme>(expected).expect("read"), scheme);
            assert_eq!(Scheme::named(&scheme.name), Some(scheme));
        };
        let stockfish = r#"{"name":"stockfish","one":127,"hidden":64,"nnue2score":600,"divisor":16,"pawn_value":100}"#;
        check(Scheme::stockfish(), stockfish);
        let simple = r#"{"name":"simple","one":255,"hidden":64,"nnue2score":400,"pawn_value":100,"weights":"i16"}"#;
        check(Scheme::simple(), simple);
    }

    #[test]
    fn unsupported_shapes_are_refused() {
        let check = |scheme: Scheme, shape: Shape, expected: Option<&str>| {
            let error = scheme.admits(&shape).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{error:?}");
            assert!(error.is_none_or(|error| error.contains(expected.unwrap_or_default())));
        };
        let relu = Shape { activation: Activation::Relu, ..Shape::plain(1, 2, vec![]) };
        check(Scheme::simple(), relu.clone(), None);
        check(Scheme::stockfish(), relu, Some("clips activations at 1, so it does not support relu"));
        check(
            Scheme::simple(),
            Shape::plain(1, 2, vec![3]),
            Some("does not support hidden layers; use scheme `stockfish`"),
        );
    }

    #[test]
    fn invalid_scales_are_refused() {
        let check = |change: fn(&mut Scheme)| {
            let mut scheme = Scheme::stockfish();
            change(&mut scheme);
            assert!(scheme.validate().is_err(), "{scheme:?}");
        };
        check(|s| s.one = 0);
        check(|s| s.one = 129);
        check(|s| s.second_hidden = Some(3));
        check(|s| *s = Scheme { output: Some(64), ..Scheme::simple() });
        check(|s| s.hidden = 63);
        check(|s| s.hidden = i32::MIN);
        check(|s| s.divisor = Some(0));
        check(|s| s.pawn_value = -1);
        check(|s| s.nnue2score = i32::MAX);
    }
}
