//! The integer arithmetic of a scheme: scales as numbers, rounding, clipping, and scores.

use super::{AccumulatorScales, Scheme, WeightType};
use crate::net::RawScore;

impl Scheme {
    /// The arithmetic of accumulators.
    #[must_use]
    pub fn accumulator(&self) -> AccumulatorScales {
        let clip = self.largest_activation();
        self.accumulator.unwrap_or(AccumulatorScales { scale: self.one, clip, shift: self.product_shift() })
    }

    /// The integer that activations are clipped to: `one`, but at most 127 with i8 weights.
    pub(super) const fn largest_activation(&self) -> i32 {
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

    /// The right shift from a product of two activations to an activation: 7 if `one` is 127 or 128. It turns 1.0² into
    /// the largest activation or one below.
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
        if self.truncates_parts {
            self.internal_score(raw.psqt).wrapping_add(self.internal_score(raw.positional))
        } else {
            self.internal_score(raw.sum())
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
    use crate::net::{Activation, Shape};

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
        // The squares' shifts are 21 and 19, the clipped sums' 7 and 6.
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
}
