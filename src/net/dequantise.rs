//! From integers back to floats.

use super::quant::QuantDense;
use super::{Dense, FloatNet, QuantNet, Scheme};

impl QuantNet {
    /// The float network whose quantisation under the same scheme this is. What rounding has taken away is gone.
    #[must_use]
    pub fn dequantised(&self) -> FloatNet {
        let QuantNet { shape, scheme, .. } = self;
        let (ft, psqt) = (scheme.feature_transformer_scale(), scheme.output_bias_scale());
        let buckets = shape.row() - shape.l1;
        let rows = self.ft_weights.chunks_exact(shape.l1).enumerate();
        let ft_weights = rows.flat_map(|(feature, row)| {
            let values = self.psqt_weights.get(feature * buckets..(feature + 1) * buckets).unwrap_or_default();
            row.iter()
                .map(move |weight| scaled(*weight, ft))
                .chain(values.iter().map(move |value| scaled(*value, psqt)))
        });
        let last = shape.hidden.len();
        let layer = |(index, layer)| dequantised(layer, index == last, scheme);
        FloatNet {
            ft_weights: ft_weights.collect(),
            ft_biases: self.ft_biases.iter().map(|bias| scaled(*bias, ft)).collect(),
            stacks: self.stacks.iter().map(|stack| stack.iter().enumerate().map(layer).collect()).collect(),
            shape: shape.clone(),
        }
    }
}

fn scaled(value: impl Into<f64>, scale: f64) -> f32 {
    (value.into() / scale) as f32
}

fn dequantised(layer: &QuantDense, last: bool, scheme: &Scheme) -> Dense {
    let (weight, bias) = match last {
        true => (scheme.output_weight_scale(), scheme.output_bias_scale()),
        false => (scheme.hidden_weight_scale(), scheme.hidden_bias_scale()),
    };
    Dense {
        inputs: layer.inputs,
        outputs: layer.outputs,
        weights: layer.weights.iter().map(|value| scaled(*value, weight)).collect(),
        biases: layer.biases.iter().map(|value| scaled(*value, bias)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random_net, shape};
    use super::super::{Activation, OutputBuckets, Shape, quantise};
    use super::*;

    #[test]
    fn quantising_again_gives_the_same_integers() {
        let check = |shape: Shape| {
            let scheme = Scheme::stockfish();
            let quant = quantise(&random_net(&shape, 8), &scheme).expect("fits");
            assert_eq!(quantise(&quant.dequantised(), &scheme).expect("fits"), quant, "{shape}");
        };
        check(shape(50, 16, &[]));
        check(shape(50, 16, &[8, 4]));
        let buckets = OutputBuckets { count: 3, ..OutputBuckets::default() };
        let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
        check(Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..shape(50, 16, &[7, 4]) });
    }
}
