//! Quantisation schemes: the scales between float and integer networks. A scheme is data in the network's header.

use serde::{Deserialize, Serialize};

use super::{Activation, NetError, RawScore, Shape};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    pub name: String,
    /// The integer of activation 1.0.
    pub one: i32,
    /// Scale of the hidden weights; a power of two, so that [`Scheme::rescale`] is a shift.
    pub hidden: i32,
    /// Scale of the second hidden layer's weights, likewise; `None` = that of the first.
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
    /// The arithmetic of accumulators; `None` = that of all activations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<AccumulatorScales>,
    /// Whether the two parts of a raw output become scores each before they are added, which truncates twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncates_parts: bool,
}

/// The arithmetic of accumulators whose neurons are multiplied: finer than that of the activations, which their products
/// are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Limits {
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
        let (name, one, hidden) = ("stockfish-19".into(), 128, 128);
        Scheme { name, one, hidden, second_hidden: Some(64), output: Some(128), ..Scheme::stockfish_18() }
    }

    /// The arithmetic of bullet's networks without hidden layers: QA 255, QB 64, scale 400.
    #[must_use]
    pub fn simple() -> Scheme {
        let weights = WeightType::I16;
        let (divisor, accumulator) = (None, None);
        let (name, truncates_parts) = ("simple".into(), false);
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
    pub fn limits(&self) -> Limits {
        let limit = |scale: f64| match self.weights {
            WeightType::I8 => f64::from(i8::MAX) / scale,
            WeightType::I16 => Self::CLIP_I16.min(f64::from(self.largest_weight(Activation::Screlu)) / scale),
        };
        Limits {
            feature_transformer: f64::from(i16::MAX) / self.feature_transformer_scale(),
            narrow: f64::from(i8::MAX) / self.feature_transformer_scale(),
            hidden: [0, 1].map(|layer| limit(self.hidden_weight_scale(layer))),
            output: limit(self.output_weight_scale()),
        }
    }

    /// The arithmetic of accumulators.
    #[must_use]
    pub fn accumulator(&self) -> AccumulatorScales {
        let clip = self.largest_activation();
        self.accumulator.unwrap_or(AccumulatorScales { scale: self.one, clip, shift: self.product_shift() })
    }

    /// The integer that activations are clipped to: `one`, but at most 127 with i8 weights.
    const fn largest_activation(&self) -> i32 {
        match self.weights {
            WeightType::I8 if self.one > 127 => 127,
            _ => self.one,
        }
    }

    /// The scale of a hidden layer's weights as an integer.
    fn hidden(&self, layer: usize) -> i32 {
        self.second_hidden.filter(|_| layer > 0).unwrap_or(self.hidden)
    }

    /// The scale of the feature transformer's weights and biases.
    #[must_use]
    pub fn feature_transformer_scale(&self) -> f64 {
        f64::from(self.accumulator().scale)
    }

    #[must_use]
    pub fn hidden_weight_scale(&self, layer: usize) -> f64 {
        f64::from(self.hidden(layer))
    }

    #[must_use]
    pub fn hidden_bias_scale(&self, layer: usize) -> f64 {
        f64::from(self.one) * self.hidden_weight_scale(layer)
    }

    #[must_use]
    pub fn output_weight_scale(&self) -> f64 {
        self.output_bias_scale() / f64::from(self.one)
    }

    /// The scale of output biases and the output layer's sums.
    #[must_use]
    pub fn output_bias_scale(&self) -> f64 {
        self.output_sum_scale() as f64
    }

    /// The scale of PSQT values and the raw output.
    #[must_use]
    pub fn psqt_scale(&self) -> f64 {
        self.raw_scale() as f64
    }

    fn output_sum_scale(&self) -> i64 {
        self.output.map_or_else(|| self.raw_scale(), |output| i64::from(self.one) * i64::from(output))
    }

    fn raw_scale(&self) -> i64 {
        match self.divisor {
            Some(divisor) => i64::from(self.nnue2score) * i64::from(divisor),
            None => i64::from(self.one) * i64::from(self.hidden),
        }
    }

    /// The right shift from a hidden layer's sum to the scale of activations.
    #[must_use]
    pub fn rescale_shift(&self, layer: usize) -> u32 {
        self.hidden(layer).trailing_zeros()
    }

    /// A hidden layer's sum in the scale of activations, rounded down and not clipped.
    #[must_use]
    pub fn rescale(&self, layer: usize, sum: i32) -> i32 {
        sum >> self.rescale_shift(layer)
    }

    /// clamp(x, 0, 1) in the scale of activations.
    #[must_use]
    pub fn crelu(&self, value: i32) -> u8 {
        value.clamp(0, self.largest_activation()) as u8
    }

    /// The right shift from a product of two activations to an activation: 7 if `one` is 127 or 128. It turns 1.0² into the
    /// largest activation or one below.
    #[must_use]
    pub fn product_shift(&self) -> u32 {
        32 - self.largest_activation().leading_zeros()
    }

    /// The factor by which the shift changes a product of two activations: 127/128 if `one` is 127; 1 with i16 weights.
    #[must_use]
    pub fn product_scale(&self) -> f64 {
        match self.weights {
            WeightType::I8 => f64::from(self.one) / f64::from(1u32 << self.product_shift()),
            WeightType::I16 => 1.0,
        }
    }

    /// [`Scheme::product_scale`] of two neurons of an accumulator: 128/127 for Stockfish 18's.
    #[must_use]
    pub fn accumulator_product_scale(&self) -> f64 {
        let AccumulatorScales { scale, shift, .. } = self.accumulator();
        match self.weights {
            WeightType::I8 => f64::from(scale) * f64::from(scale) / f64::from(1u32 << shift) / f64::from(self.one),
            WeightType::I16 => 1.0,
        }
    }

    /// A neuron of an accumulator, clipped.
    #[must_use]
    pub fn clip(&self, neuron: i32) -> u8 {
        neuron.clamp(0, self.accumulator().clip) as u8
    }

    /// The activation of two clipped neurons.
    #[must_use]
    pub fn accumulator_product(&self, a: u8, b: u8) -> u8 {
        ((u32::from(a) * u32::from(b)) >> self.accumulator().shift) as u8
    }

    /// The product of two activations, rounded down.
    #[must_use]
    pub fn product(&self, a: u8, b: u8) -> u8 {
        ((u32::from(a) * u32::from(b)) >> self.product_shift()) as u8
    }

    /// min(x², 1) of a hidden layer's sum, in the scale of activations.
    #[must_use]
    pub fn square(&self, layer: usize, sum: i32) -> u8 {
        let square = i64::from(sum) * i64::from(sum);
        (square >> (2 * self.rescale_shift(layer) + self.product_shift())).min(i64::from(self.largest_activation()))
            as u8
    }

    /// A sum of the first hidden layer in the scale of the output's sums, truncated toward zero.
    #[must_use]
    pub fn skip(&self, sum: i32) -> i32 {
        (i64::from(sum) * self.output_sum_scale() / (i64::from(self.one) * i64::from(self.hidden))) as i32
    }

    /// The raw output of an output layer's sum with the skip output added, truncated toward zero.
    #[must_use]
    pub fn raw(&self, sum: i32) -> i32 {
        match self.output {
            Some(_) => (i64::from(sum) * self.raw_scale() / self.output_sum_scale()) as i32,
            None => sum,
        }
    }

    /// Converts a raw output to internal score units, truncated toward zero.
    #[must_use]
    pub fn internal_score(&self, raw: i32) -> i32 {
        match self.divisor {
            Some(divisor) => raw / divisor,
            None => (i64::from(raw) * i64::from(self.nnue2score) / self.raw_scale()) as i32,
        }
    }

    /// The score of a raw output in internal units.
    #[must_use]
    pub fn score(&self, raw: RawScore) -> i32 {
        match self.truncates_parts {
            true => self.internal_score(raw.psqt).wrapping_add(self.internal_score(raw.positional)),
            false => self.internal_score(raw.sum()),
        }
    }

    /// Centipawns per float output of 1.0.
    #[must_use]
    pub fn float_centipawns(&self) -> f64 {
        f64::from(self.nnue2score) * 100.0 / f64::from(self.pawn_value)
    }

    /// Converts internal score units to centipawns, truncated toward zero.
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
        close(scheme.hidden_bias_scale(0), 8128.0);
        close(scheme.output_weight_scale(), 600.0 * 16.0 / 127.0);
        close(scheme.output_bias_scale(), 9600.0);
        close(scheme.limits().hidden[1], 127.0 / 64.0);
        close(scheme.limits().output, 127.0 * 127.0 / 9600.0);
        assert_eq!(scheme.rescale_shift(0), 6);
        assert_eq!((scheme.rescale(0, -1), scheme.rescale(1, 127)), (-1, 1));
        assert_eq!((scheme.crelu(-1), scheme.crelu(5), scheme.crelu(128)), (0, 5, 127));
        assert_eq!((scheme.internal_score(-31), scheme.internal_score(31)), (-1, 1));
        assert_eq!([(127, 127), (127, 1), (64, 64)].map(|(a, b)| scheme.product(a, b)), [126, 0, 32]);
        assert_eq!([0, 8128, -8128, 4598, i32::MIN].map(|sum| scheme.square(0, sum)), [0, 126, 126, 40, 127]);
        assert_eq!([8128, -8128, 4707, -1].map(|sum| scheme.skip(sum)), [9600, -9600, 5559, -1]);
        close(scheme.product_scale(), 127.0 / 128.0);
        let other = Scheme { pawn_value: 208, ..scheme };
        assert_eq!((other.centipawns(208), other.centipawns(-1)), (100, 0));
    }

    #[test]
    fn stockfish_18_has_finer_accumulators() {
        let scheme = Scheme::stockfish_18();
        assert!(scheme.validate().is_ok());
        assert_eq!((scheme.feature_transformer_scale(), scheme.hidden_bias_scale(0)), (256.0, 8128.0));
        assert_eq!([-1, 200, 256].map(|neuron| scheme.clip(neuron)), [0, 200, 255]);
        assert_eq!([(255, 255), (255, 1), (16, 32)].map(|(a, b)| scheme.accumulator_product(a, b)), [127, 0, 1]);
        assert!((scheme.accumulator_product_scale() - 128.0 / 127.0).abs() < 1e-12);
        assert!(scheme.admits(&Shape::plain(1, 2, vec![3])).is_err(), "crelu");
        let raw = RawScore { psqt: 31, positional: -15 };
        assert_eq!((scheme.score(raw), Scheme::stockfish().score(raw)), (1, 1));
        let raw = RawScore { psqt: 15, positional: 15 };
        assert_eq!((scheme.score(raw), Scheme::stockfish().score(raw)), (0, 1));
        let too_large = AccumulatorScales { scale: 256, clip: 255, shift: 8 };
        assert!(Scheme { accumulator: Some(too_large), ..scheme }.validate().is_err());
        let plain = Scheme::stockfish();
        assert_eq!(plain.accumulator_product_scale(), plain.product_scale());
    }

    #[test]
    fn stockfish_19_has_scales_by_layer() {
        let scheme = Scheme::stockfish_19();
        assert!(scheme.validate().is_ok());
        assert_eq!([0, 1].map(|layer| scheme.hidden_bias_scale(layer)), [16_384.0, 8_192.0]);
        assert_eq!((scheme.output_weight_scale(), scheme.output_bias_scale()), (128.0, 16_384.0));
        assert_eq!((scheme.psqt_scale(), scheme.limits().narrow), (9_600.0, 127.0 / 256.0));
        assert_eq!([(255, 255), (255, 1), (16, 32)].map(|(a, b)| scheme.accumulator_product(a, b)), [127, 0, 1]);
        // The squares' shifts are 21 and 19, those of clipped sums 7 and 6.
        assert_eq!([0, 1].map(|layer| scheme.square(layer, 5_000)), [11, 47]);
        assert_eq!([0, 1].map(|layer| scheme.crelu(scheme.rescale(layer, 5_000))), [39, 78]);
        assert_eq!([16_384, -16_384].map(|sum| scheme.square(0, sum)), [127; 2]);
        assert_eq!((scheme.crelu(128), scheme.skip(-77)), (127, -77));
        assert_eq!([16_384, -1, 2].map(|sum| scheme.raw(sum)), [9_600, 0, 1]);
        assert_eq!((scheme.product_scale(), scheme.accumulator_product_scale()), (1.0, 1.0));
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
    fn header_format_is_stable() {
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
