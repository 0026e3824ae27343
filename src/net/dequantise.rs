//! Dequantisation: the float network of an integer network, and networks with a scaled output.

use super::{Dense, FloatNet, NetError, QuantDense, QuantNet, Scheme, quantise};

impl QuantNet {
    /// The float network of the integers; quantised under the same scheme it gives this network again.
    #[must_use]
    pub fn dequantised(&self) -> FloatNet {
        let QuantNet { shape, scheme, .. } = self;
        let ft = scheme.feature_transformer_scale();
        let psqt = scheme.psqt_scale();
        let buckets = shape.row_len() - shape.l1;
        let mut ft_weights = Vec::new();
        for (feature, row) in self.ft_weights.chunks_exact(shape.l1).enumerate() {
            let values = self.psqt_weights.get(feature * buckets..(feature + 1) * buckets).unwrap_or_default();
            ft_weights.extend(row.iter().map(|weight| scaled(*weight, ft)));
            ft_weights.extend(values.iter().map(|value| scaled(*value, psqt)));
        }
        let last = shape.hidden.len();
        let layer = |(index, layer)| dequantised(layer, (index < last).then_some(index), scheme);
        FloatNet {
            ft_weights,
            ft_biases: self.ft_biases.iter().map(|bias| scaled(*bias, ft)).collect(),
            stacks: self.stacks.iter().map(|stack| stack.iter().enumerate().map(layer).collect()).collect(),
            shape: shape.clone(),
        }
    }
}

impl QuantNet {
    /// Changes the internal unit so that a pawn is `pawn_value` of them: scales the output layers, the skip output and
    /// PSQT values. All other integers stay the same.
    ///
    /// # Errors
    /// When a weight of the last layer no longer fits its integer type, or `pawn_value` is not positive.
    pub fn with_pawn_value(&self, pawn_value: i32) -> Result<QuantNet, NetError> {
        let scheme = Scheme { pawn_value, ..self.scheme.clone() };
        scheme.validate()?;
        let factor = f64::from(pawn_value) / f64::from(self.scheme.pawn_value);
        quantise(&self.dequantised().with_scaled_output(factor as f32)?, &scheme)
    }
}

impl FloatNet {
    /// Scales the output by a factor: the last layers, the skip output and the PSQT values.
    ///
    /// # Errors
    /// When the network has a skip difference, whose two outputs are activated, too.
    pub fn with_scaled_output(mut self, factor: f32) -> Result<FloatNet, NetError> {
        if self.shape.skip_difference && factor != 1.0 {
            let why = "the output of a network with skip difference cannot be scaled, so its pawn value is fixed";
            return Err(NetError::Shape(why.into()));
        }
        let scale = |values: &mut [f32]| values.iter_mut().for_each(|value| *value *= factor);
        let l1 = self.shape.l1;
        let row = self.shape.row_len();
        if row > l1 {
            self.ft_weights.chunks_exact_mut(row).for_each(|columns| scale(&mut columns[l1..]));
        }
        for stack in &mut self.stacks {
            if let Some(last) = stack.last_mut() {
                scale(&mut last.weights);
                scale(&mut last.biases);
            }
            if let (true, Some(first)) = (self.shape.skip, stack.first_mut()) {
                // The skip output is the last of the first layer.
                let skip = first.weights.len() - first.inputs;
                scale(&mut first.weights[skip..]);
                first.biases.last_mut().into_iter().for_each(|bias| *bias *= factor);
            }
        }
        Ok(self)
    }
}

fn scaled(value: impl Into<f64>, scale: f64) -> f32 {
    (value.into() / scale) as f32
}

/// `hidden`: the number of a hidden layer; `None` = the output layer.
fn dequantised(layer: &QuantDense, hidden: Option<usize>, scheme: &Scheme) -> Dense {
    let (weight, bias) = match hidden {
        None => (scheme.output_weight_scale(), scheme.output_bias_scale()),
        Some(layer) => (scheme.hidden_weight_scale(layer), scheme.hidden_bias_scale(layer)),
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
    use super::super::{Activation, OutputBuckets, Shape, forward};
    use super::*;

    #[test]
    fn another_pawn_value_scales_the_score_alone() {
        let buckets = OutputBuckets { count: 3, ..OutputBuckets::default() };
        let activation = Activation::Pairwise;
        let hidden_activation = Activation::Dual;
        let full = Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..shape(50, 16, &[7, 4]) };
        for shape in [shape(50, 16, &[]), shape(50, 16, &[8, 4]), full] {
            let net = random_net(&shape, 8);
            let scheme = Scheme::stockfish();
            let times = net.clone().with_scaled_output(2.5).expect("scaled");
            for (bucket, own) in (0..shape.buckets.count).zip([[1, 2, 30], [4, 5, 6], [7, 40, 41]]) {
                let [before, after] = [&net, &times].map(|net| forward(net, &scheme, bucket, &own, &[9, 10]));
                assert!((after - 2.5 * before).abs() < 1e-4 && before.abs() > 1e-4, "{shape}: {before} {after}");
            }
            let quant = quantise(&net.with_scaled_output(0.3).expect("scaled"), &scheme).expect("fits");
            assert_eq!(quant.with_pawn_value(100).expect("the same"), quant);
            let finer = quant.with_pawn_value(250).expect("fits");
            assert_eq!((finer.scheme.pawn_value, &finer.ft_weights), (250, &quant.ft_weights));
            assert!(quant.with_pawn_value(0).is_err());
        }
        let large = quantise(&random_net(&shape(50, 16, &[]), 8), &Scheme::stockfish()).expect("fits");
        let error = large.with_pawn_value(30_000).expect_err("too large").to_string();
        assert!(error.contains("the weight of neuron"), "{error}");
    }

    #[test]
    fn quantising_again_restores_the_integers() {
        let check = |shape: Shape| {
            let scheme = Scheme::stockfish();
            let quant = quantise(&random_net(&shape, 8), &scheme).expect("fits");
            assert_eq!(quantise(&quant.dequantised(), &scheme).expect("fits"), quant, "{shape}");
        };
        check(shape(50, 16, &[]));
        check(shape(50, 16, &[8, 4]));
        let buckets = OutputBuckets { count: 3, ..OutputBuckets::default() };
        let activation = Activation::Pairwise;
        let hidden_activation = Activation::Dual;
        check(Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..shape(50, 16, &[7, 4]) });
    }
}
