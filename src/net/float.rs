//! The float network and its plain forward pass: the reference of the trainer.

use super::{Activation, NetError, Scheme, Shape};
use crate::features::{RowPart, StartingRows};

/// A fully connected layer: `weights[o * inputs + i]`, `biases[o]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<f32>,
    pub biases: Vec<f32>,
}

/// The trained float network.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatNet {
    pub shape: Shape,
    /// `ft_weights[feature * shape.row_len() + column]`: one column per neuron, then one per bucket if the shape has
    /// PSQT outputs.
    pub ft_weights: Vec<f32>,
    /// One per neuron.
    pub ft_biases: Vec<f32>,
    /// The dense layers of each bucket, from the first hidden layer to the output. The first reads stm's activations,
    /// then nstm's.
    pub stacks: Vec<Vec<Dense>>,
}

impl FloatNet {
    /// # Errors
    /// When the shape is invalid, a tensor's size does not match it, or a number is not finite.
    pub fn validate(&self) -> Result<(), NetError> {
        self.shape.validate()?;
        let check_size = |what: String, found: usize, expected: usize| {
            if found == expected {
                Ok(())
            } else {
                Err(NetError::Shape(format!("{what} holds {found} numbers, not {expected}")))
            }
        };
        let shape = &self.shape;
        check_size("the list of stacks".into(), self.stacks.len(), shape.buckets.count)?;
        let expected = shape.layer_sizes();
        for stack in &self.stacks {
            check_size("the list of layers".into(), stack.len(), expected.len())?;
            for (index, (layer, (inputs, outputs))) in stack.iter().zip(&expected).enumerate() {
                check_size(format!("a row of layers.{index}.weight"), layer.inputs, *inputs)?;
                check_size(format!("the output of layers.{index}"), layer.outputs, *outputs)?;
            }
        }
        let sizes = shape.tensors();
        for (tensor, (name, dimensions)) in self.tensors().into_iter().zip(&sizes) {
            check_size(name.clone(), tensor.len(), dimensions.iter().product())?;
        }
        let numbers = self.tensors().into_iter().zip(&sizes);
        for (tensor, (name, _)) in numbers {
            if let Some(at) = tensor.iter().position(|number| !number.is_finite()) {
                let number = tensor[at];
                return Err(NetError::Shape(format!("number {at} of {name} is {number}: training has diverged")));
            }
        }
        Ok(())
    }

    /// The network's tensors, in the order of [`Shape::tensors`].
    #[must_use]
    pub fn tensors(&self) -> Vec<&[f32]> {
        let mut tensors = vec![&self.ft_weights[..], &self.ft_biases];
        for layer in self.stacks.iter().flatten() {
            tensors.push(&layer.weights);
            tensors.push(&layer.biases);
        }
        tensors
    }

    /// As [`FloatNet::tensors`].
    pub fn tensors_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let mut tensors = vec![&mut self.ft_weights, &mut self.ft_biases];
        for layer in self.stacks.iter_mut().flatten() {
            tensors.push(&mut layer.weights);
            tensors.push(&mut layer.biases);
        }
        tensors
    }

    /// A network of that shape; `fill` returns the values of each tensor for its name and dimensions.
    ///
    /// # Errors
    /// The first error of `fill`.
    pub fn filled<E>(
        shape: &Shape,
        mut fill: impl FnMut(&str, &[usize]) -> Result<Vec<f32>, E>,
    ) -> Result<FloatNet, E> {
        let mut tensors = shape.tensors().into_iter().map(|(name, dimensions)| fill(&name, &dimensions));
        let mut next = || tensors.next().unwrap_or_else(|| Ok(Vec::new()));
        let ft_weights = next()?;
        let ft_biases = next()?;
        let mut layer = |(inputs, outputs)| Ok(Dense { inputs, outputs, weights: next()?, biases: next()? });
        let mut stack = |_| shape.layer_sizes().into_iter().map(&mut layer).collect();
        let stacks = (0..shape.buckets.count).map(&mut stack).collect::<Result<_, E>>()?;
        Ok(FloatNet { ft_weights, ft_biases, stacks, shape: shape.clone() })
    }

    /// A network of that shape with all numbers zero.
    #[must_use]
    pub fn zeros(shape: &Shape) -> FloatNet {
        let zeros = |_: &str, dimensions: &[usize]| Ok(vec![0.0; dimensions.iter().product()]);
        let Ok(net) = FloatNet::filled::<std::convert::Infallible>(shape, zeros);
        net
    }

    /// The network with the rows of these features only, in this order. Indices are below `shape.features`.
    #[must_use]
    pub fn with_features(self, features: &[u32]) -> FloatNet {
        let width = self.shape.row_len();
        let mut ft_weights = Vec::with_capacity(features.len() * width);
        for feature in features {
            ft_weights.extend_from_slice(&self.ft_weights[*feature as usize * width..][..width]);
        }
        let narrow = features.iter().take_while(|feature| **feature < self.shape.narrow).count() as u32;
        let shape = Shape { features: features.len() as u32, narrow, ..self.shape.clone() };
        FloatNet { shape, ft_weights, ..self }
    }

    /// The network on another feature set, whose rows are weighted sums of this one's rows. Its outputs are the same in
    /// every position if [`lifting`](crate::features::lifting) names the rows. It has no narrow features: sums of rows
    /// may need more bits.
    #[must_use]
    pub fn with_rows(self, rows: &StartingRows) -> FloatNet {
        let width = self.shape.row_len();
        let add = |sum: &mut [f32], part: &RowPart| {
            let from = &self.ft_weights[part.row as usize * width..][..width];
            sum.iter_mut().zip(from).for_each(|(sum, weight)| *sum += part.weight * weight);
        };
        let features = rows.features();
        let mut ft_weights = vec![0.0; features as usize * width];
        for (feature, row) in (0..features).zip(ft_weights.chunks_exact_mut(width)) {
            rows.parts(feature).iter().for_each(|part| add(row, part));
        }
        let mut ft_biases = self.ft_biases.clone();
        rows.bias().iter().for_each(|part| add(&mut ft_biases, part));
        FloatNet { shape: Shape { features, narrow: 0, ..self.shape.clone() }, ft_weights, ft_biases, ..self }
    }

    /// The network with dense weights rounded to the scheme's grid ([`super::on_grid`]), as training evaluates it.
    #[must_use]
    pub fn on_grid(&self, scheme: &Scheme) -> FloatNet {
        let stacks = self.stacks.iter().map(|stack| super::on_grid(stack, scheme)).collect();
        FloatNet { stacks, ..self.clone() }
    }

    /// The number of trainable parameters.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.len() as u64).sum()
    }
}

/// The float output of a bucket for the active features of both perspectives. Indices are below `shape.features`, and
/// repeated features count repeatedly. The output times the scheme's `nnue2score` is the score in internal units.
/// Products of two clipped values are scaled by [`Scheme::product_scale`] and [`Scheme::accumulator_product_scale`], as
/// in the integer network.
#[must_use]
pub fn forward(net: &FloatNet, scheme: &Scheme, bucket: usize, stm: &[u32], nstm: &[u32]) -> f32 {
    let l1 = net.shape.l1;
    let [of_accumulators, scale] =
        [scheme.accumulator_product_scale(), scheme.product_scale()].map(|scale| scale as f32);
    let sides = [accumulate(net, stm), accumulate(net, nstm)];
    let mut values: Vec<f32> =
        sides.iter().flat_map(|side| activate(net.shape.activation, &side[..l1], of_accumulators)).collect();
    let mut skip = 0.0;
    let mut all = Vec::new();
    let stack = &net.stacks[bucket];
    for (index, layer) in stack.iter().enumerate() {
        if index == net.shape.hidden.len() && net.shape.concatenated {
            values.clone_from(&all);
        }
        let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
        let sums: Vec<f32> =
            rows.map(|(row, bias)| bias + row.iter().zip(&values).map(|(w, x)| w * x).sum::<f32>()).collect();
        let Some(width) = net.shape.hidden.get(index) else {
            values = sums;
            break;
        };
        if let (0, Some((added, subtracted))) = (index, net.shape.skip_outputs()) {
            skip = sums[added] - subtracted.map_or(0.0, |subtracted| sums[subtracted]);
        }
        values = activate(net.shape.hidden_activation(index), &sums[..*width], scale);
        all.extend_from_slice(&values);
    }
    let psqt = if net.shape.psqt { (sides[0][l1 + bucket] - sides[1][l1 + bucket]) / 2.0 } else { 0.0 };
    values.first().copied().unwrap_or_default() + skip + psqt
}

fn activate(activation: Activation, sums: &[f32], scale: f32) -> Vec<f32> {
    let clipped = |sum: &f32| sum.clamp(0.0, 1.0);
    match activation {
        Activation::Relu => sums.iter().map(|sum| sum.max(0.0)).collect(),
        Activation::Crelu => sums.iter().map(clipped).collect(),
        Activation::Screlu => sums.iter().map(|sum| clipped(sum).powi(2) * scale).collect(),
        Activation::Pairwise => {
            let (first, second) = sums.split_at(sums.len() / 2);
            first.iter().zip(second).map(|(a, b)| clipped(a) * clipped(b) * scale).collect()
        }
        Activation::Dual => {
            let squares = sums.iter().map(|sum| (sum * sum * scale).min(1.0));
            squares.chain(sums.iter().map(clipped)).collect()
        }
    }
}

/// Sums of all columns, with the biases in the neurons' columns.
fn accumulate(net: &FloatNet, active: &[u32]) -> Vec<f32> {
    let width = net.shape.row_len();
    let mut sums = net.ft_biases.clone();
    sums.resize(width, 0.0);
    for feature in active {
        let row = &net.ft_weights[*feature as usize * width..][..width];
        sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two features, one neuron, no hidden layer, by hand.
    fn tiny() -> FloatNet {
        FloatNet {
            shape: Shape::plain(2, 1, vec![]),
            ft_weights: vec![0.25, 0.5],
            ft_biases: vec![0.125],
            stacks: vec![vec![Dense { inputs: 2, outputs: 1, weights: vec![1.0, -2.0], biases: vec![0.5] }]],
        }
    }

    #[test]
    fn forward_by_hand() {
        let output = |stm: &[u32], nstm: &[u32]| forward(&tiny(), &Scheme::stockfish(), 0, stm, nstm);
        assert_eq!(output(&[0], &[]), 0.5 + 0.375 - 0.25);
        assert_eq!(output(&[0, 1, 1], &[1]), 0.5 + 1.0 - 1.25);
    }

    #[test]
    fn wrong_sizes_and_numbers_are_refused() {
        let check = |change: fn(&mut FloatNet), expected: &str| {
            let mut net = tiny();
            change(&mut net);
            assert_eq!(net.validate().expect_err("wrong").to_string(), expected);
        };
        assert!(tiny().validate().is_ok());
        assert_eq!(tiny().parameters(), 6);
        check(|n| n.ft_weights.push(0.0), "invalid network shape: ft.weight holds 3 numbers, not 2");
        check(|n| n.stacks[0].clear(), "invalid network shape: the list of layers holds 0 numbers, not 1");
        check(|n| n.stacks[0][0].inputs = 1, "invalid network shape: a row of layers.0.weight holds 1 numbers, not 2");
        check(
            |n| n.ft_biases[0] = f32::NAN,
            "invalid network shape: number 0 of ft.bias is NaN: training has diverged",
        );
    }
}
