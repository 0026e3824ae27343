//! The integer network and its plain forward pass: the reference of the engine.

use super::{Activation, NetError, Scheme, Shape, WeightType, direct_output};

/// A fully connected integer layer: `weights[o * inputs + i]`, `biases[o]`. The scheme's weight type limits the
/// weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantDense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<i16>,
    pub biases: Vec<i32>,
}

impl QuantDense {
    /// Checks that no sum over all inputs can leave i32. `name` is the layer's, for the message.
    ///
    /// # Errors
    /// When a bias is too large.
    pub fn check_biases(&self, name: &str, scheme: &Scheme) -> Result<(), NetError> {
        let limit = scheme.largest_bias(self.inputs);
        match self.biases.iter().enumerate().find(|(_, bias)| i64::from(**bias).abs() > limit) {
            None => Ok(()),
            Some((neuron, bias)) => Err(NetError::Range {
                place: format!("{name}: the integer bias of neuron {neuron}"),
                value: f64::from(*bias),
                limit: limit as f64,
                scheme: scheme.name.clone(),
            }),
        }
    }

    /// Checks the weights against [`Scheme::largest_weight`] for inputs of `activation`.
    ///
    /// # Errors
    /// When a weight is too large.
    pub fn check_weights(&self, name: &str, scheme: &Scheme, activation: Activation) -> Result<(), NetError> {
        let limit = scheme.largest_weight(activation);
        match self.weights.iter().position(|weight| i32::from(*weight).abs() > limit) {
            None => Ok(()),
            Some(at) => Err(NetError::Range {
                place: format!("{name}: the integer weight of neuron {}, input {}", at / self.inputs, at % self.inputs),
                value: f64::from(self.weights[at]),
                limit: f64::from(limit),
                scheme: scheme.name.clone(),
            }),
        }
    }
}

/// The integer network, laid out as [`super::FloatNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantNet {
    pub shape: Shape,
    pub scheme: Scheme,
    pub ft_weights: Vec<i16>,
    pub ft_biases: Vec<i16>,
    /// `psqt_weights[feature * buckets + bucket]`; empty if the shape has no PSQT outputs.
    pub psqt_weights: Vec<i32>,
    /// The dense layers of every bucket.
    pub stacks: Vec<Vec<QuantDense>>,
}

/// The two summands of a raw output, in the scheme's raw scale; [`Scheme::internal_score`] converts it to score units.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RawScore {
    /// (stm − nstm) / 2 of the bucket's PSQT sums.
    pub psqt: i32,
    /// The output of the dense layers, plus the skip output if there is one.
    pub positional: i32,
}

impl RawScore {
    #[must_use]
    pub fn sum(self) -> i32 {
        self.psqt.wrapping_add(self.positional)
    }
}

impl QuantNet {
    /// The exact accumulator of a perspective. The engine wraps elements outside i16.
    #[must_use]
    pub fn accumulate(&self, active: &[u32]) -> Vec<i32> {
        let l1 = self.shape.l1;
        let mut sums: Vec<i32> = self.ft_biases.iter().copied().map(i32::from).collect();
        for feature in active {
            let row = &self.ft_weights[*feature as usize * l1..][..l1];
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += i32::from(*weight));
        }
        sums
    }

    /// The PSQT sum of a bucket for one perspective; 0 if the shape has no PSQT outputs.
    #[must_use]
    pub fn psqt(&self, active: &[u32], bucket: usize) -> i32 {
        let value = |feature: &u32| self.psqt_weights.get(*feature as usize * self.shape.buckets.count + bucket);
        active.iter().filter_map(value).fold(0, |sum, weight| sum.wrapping_add(*weight))
    }

    /// The inputs of the first dense layer from one accumulator.
    fn activate_accumulator(&self, sums: &[i32]) -> Vec<u8> {
        let clipped: Vec<u8> = sums.iter().map(|sum| self.scheme.clip(i32::from(*sum as i16))).collect();
        let (first, second) = match self.shape.activation {
            Activation::Relu | Activation::Crelu | Activation::Dual => return clipped,
            Activation::Screlu => (&clipped[..], &clipped[..]),
            Activation::Pairwise => clipped.split_at(clipped.len() / 2),
        };
        first.iter().zip(second).map(|(a, b)| self.scheme.accumulator_product(*a, *b)).collect()
    }

    /// The activations of a hidden layer's sums.
    fn activate_hidden(&self, layer: usize, sums: &[i32]) -> Vec<u8> {
        let crelu = |sum: &i32| self.scheme.crelu(self.scheme.rescale(layer, *sum));
        let square = |sum: &i32| self.scheme.square(layer, *sum);
        match self.shape.hidden_activation(layer) {
            Activation::Relu | Activation::Crelu | Activation::Pairwise => sums.iter().map(crelu).collect(),
            Activation::Screlu => sums.iter().map(|sum| self.scheme.product(crelu(sum), crelu(sum))).collect(),
            Activation::Dual => sums.iter().map(square).chain(sums.iter().map(crelu)).collect(),
        }
    }
}

/// The raw output of a bucket for the active features of both perspectives. Indices are below `shape.features`.
///
/// ```
/// use fsbench::net::{FloatNet, RawScore, Scheme, Shape, forward_integer, quantise};
///
/// let mut float = FloatNet::zeros(&Shape::plain(768, 8, vec![]));
/// float.stacks[0][0].biases[0] = 0.5;
/// let net = quantise(&float, &Scheme::stockfish())?;
/// let raw = forward_integer(&net, 0, &[1, 2], &[3]);
/// assert_eq!(raw, RawScore { psqt: 0, positional: 4800 });
/// assert_eq!(net.scheme.internal_score(raw.sum()), 300);
/// # Ok::<(), fsbench::net::NetError>(())
/// ```
#[must_use]
pub fn forward_integer(net: &QuantNet, bucket: usize, stm: &[u32], nstm: &[u32]) -> RawScore {
    let psqt = net.psqt(stm, bucket).wrapping_sub(net.psqt(nstm, bucket)) / 2;
    if net.scheme.weights == WeightType::I16 {
        return RawScore { psqt, positional: direct_output::forward(net, bucket, stm, nstm) };
    }
    let mut input = net.activate_accumulator(&net.accumulate(stm));
    input.extend(net.activate_accumulator(&net.accumulate(nstm)));
    let mut skip = 0;
    let mut sums: Vec<i32> = Vec::new();
    let mut all = Vec::new();
    for (index, layer) in net.stacks[bucket].iter().enumerate() {
        if index > 0 {
            let width = net.shape.hidden[index - 1];
            if let (1, Some((added, subtracted))) = (index, net.shape.skip_outputs()) {
                skip = net.scheme.skip(sums[added].wrapping_sub(subtracted.map_or(0, |subtracted| sums[subtracted])));
            }
            input = net.activate_hidden(index - 1, &sums[..width]);
            all.extend_from_slice(&input);
        }
        if index == net.shape.hidden.len() && net.shape.concatenated {
            input.clone_from(&all);
        }
        let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
        let dot = |row: &[i16]| row.iter().zip(&input).map(|(w, x)| i32::from(*w) * i32::from(*x)).sum::<i32>();
        sums = rows.map(|(row, bias)| bias.wrapping_add(dot(row))).collect();
    }
    let sum = sums.first().copied().unwrap_or_default().wrapping_add(skip);
    RawScore { psqt, positional: net.scheme.raw(sum) }
}

#[cfg(test)]
mod tests {
    use super::super::{OutputBuckets, quantise};
    use super::*;

    /// As Stockfish 19: a skip difference, both layers dual, and an output layer that reads all.
    #[test]
    fn concatenated_layers_by_hand() {
        let shape = Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip_difference: true,
            concatenated: true,
            ..Shape::plain(2, 2, vec![2, 1])
        };
        let first = QuantDense { inputs: 2, outputs: 2, weights: vec![64, 0, 100, -50], biases: vec![-10, 7] };
        let second = QuantDense { inputs: 4, outputs: 1, weights: vec![1, 2, 30, 40], biases: vec![100] };
        let output = QuantDense { inputs: 6, outputs: 1, weights: vec![1, 10, 3, -4, 5, 6], biases: vec![-9] };
        let net = QuantNet {
            shape,
            scheme: Scheme::stockfish_19(),
            ft_weights: vec![100, 90, 50, 300],
            ft_biases: vec![1, 2],
            psqt_weights: Vec::new(),
            stacks: vec![vec![first, second, output]],
        };
        // Accumulators (101, 92) and (51, 302→255): products 101·92/512 = 18 and 51·255/512 = 25.
        // Sums 18·64 − 10 = 1142 and 1800 − 1250 + 7 = 557: squares >> 21 are 0 and 0, >> 7 gives 8 and 4.
        // Second: 8·30 + 4·40 + 100 = 500: its square >> 19 is 0, >> 6 gives 7.
        // Output: 8·3 − 4·4 + 7·6 − 9 = 41, and the difference 585: 626·9600/16384 = 366.
        assert_eq!(forward_integer(&net, 0, &[0], &[1]), RawScore { psqt: 0, positional: 366 });
        assert_eq!(net.dequantised().shape, net.shape);
        assert_eq!(quantise(&net.dequantised(), &net.scheme).expect("fits"), net);
    }

    /// Pairwise, dual, skip, two buckets and PSQT, with one neuron each.
    #[test]
    fn outputs_by_hand() {
        let shape = Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip: true,
            psqt: true,
            buckets: OutputBuckets { count: 2, ..OutputBuckets::default() },
            ..Shape::plain(2, 2, vec![1])
        };
        let first = QuantDense { inputs: 2, outputs: 2, weights: vec![64, 0, 100, -50], biases: vec![-10, 7] };
        let second = QuantDense { inputs: 2, outputs: 1, weights: vec![3, 5], biases: vec![11] };
        let second_of_bucket_1 = QuantDense { biases: vec![12], ..second.clone() };
        let net = QuantNet {
            shape,
            scheme: Scheme::stockfish(),
            ft_weights: vec![100, 90, 50, 300],
            ft_biases: vec![1, 2],
            psqt_weights: vec![10, 20, 35, -3],
            stacks: vec![vec![first.clone(), second], vec![first, second_of_bucket_1]],
        };
        // Accumulators (101, 92) and (51, 302→127): products 101·92/128 = 72 and 51·127/128 = 50.
        // Sums 72·64 − 10 = 4598 and the skip's 7200 − 2500 + 7 = 4707, which is 4707·9600/8128 = 5559.
        // 4598² >> 19 = 40 and 4598 >> 6 = 71: 40·3 + 71·5 = 475.
        let expected = |psqt, bias| RawScore { psqt, positional: 475 + bias + 5559 };
        assert_eq!(forward_integer(&net, 0, &[0], &[1]), expected(-12, 11));
        assert_eq!(forward_integer(&net, 1, &[0], &[1]), expected(11, 12));
    }
}
