//! Integer networks: quantisation, and the slow, obvious integer forward pass that the engine is tested against.

use super::{Activation, Dense, FloatNet, NetError, Scheme, Shape, WeightType, direct_output};

/// A fully connected integer layer: `weights[o * inputs + i]`, of the scheme's type whatever they are kept in, and
/// `biases[o]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantDense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<i16>,
    pub biases: Vec<i32>,
}

impl QuantDense {
    /// # Errors
    /// When a bias is so large that a sum over all inputs may leave i32; `name` is the layer's.
    pub fn check_biases(&self, name: &str, scheme: &Scheme) -> Result<(), NetError> {
        let limit = bias_limit(scheme, self.inputs);
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

    /// # Errors
    /// When a weight is larger than the scheme has for inputs of that activation; `name` is the layer's.
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

/// The integer network, laid out as [`FloatNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantNet {
    pub shape: Shape,
    pub scheme: Scheme,
    pub ft_weights: Vec<i16>,
    pub ft_biases: Vec<i16>,
    /// `psqt_weights[feature * buckets + bucket]`; empty when the shape has none.
    pub psqt_weights: Vec<i32>,
    /// The dense layers of every bucket.
    pub stacks: Vec<Vec<QuantDense>>,
}

/// Both parts of a raw output, in the scheme's raw scale ([`Scheme::internal_score`] leads to score units).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RawScore {
    /// (stm − nstm) / 2 of the bucket's PSQT sums.
    pub psqt: i32,
    /// The dense layers' output, with the skip output where there is one.
    pub positional: i32,
}

impl RawScore {
    #[must_use]
    pub fn sum(self) -> i32 {
        self.psqt.wrapping_add(self.positional)
    }
}

/// The integer network under a scheme: every number times its scale, rounded to the nearest.
///
/// # Errors
/// When the network is malformed, or a number does not fit its integer type: the error names neuron and input.
pub fn quantise(net: &FloatNet, scheme: &Scheme) -> Result<QuantNet, NetError> {
    scheme.validate()?;
    net.validate()?;
    scheme.admits(&net.shape)?;
    let (l1, row) = (net.shape.l1, net.shape.row_len());
    let ft = Rounding { scheme, scale: scheme.feature_transformer_scale(), largest: f64::from(i16::MAX) };
    let psqt = Rounding { scheme, scale: scheme.output_bias_scale(), largest: f64::from(i32::MAX / MOST_ACTIVE) };
    let columns = |from: usize, to: usize| -> Vec<f32> {
        net.ft_weights.chunks_exact(row).flat_map(|row| &row[from..to]).copied().collect()
    };
    let at = |n: usize| format!("ft: the weight of neuron {}, feature {}", n % l1, n / l1);
    let buckets = net.shape.buckets.count;
    let psqt_at = |n: usize| format!("psqt: the value of bucket {}, feature {}", n % buckets, n / buckets);
    let stack = |(bucket, layers): (usize, &Vec<Dense>)| quantise_stack(&net.shape, bucket, layers, scheme);
    Ok(QuantNet {
        shape: net.shape.clone(),
        scheme: scheme.clone(),
        ft_weights: ft.round(&columns(0, l1), |value| value as i16, at)?,
        ft_biases: ft.round(&net.ft_biases, |value| value as i16, |n| format!("ft: the bias of neuron {n}"))?,
        psqt_weights: psqt.round(&columns(l1, row), |value| value as i32, psqt_at)?,
        stacks: net.stacks.iter().enumerate().map(stack).collect::<Result<_, NetError>>()?,
    })
}

fn quantise_stack(
    shape: &Shape,
    bucket: usize,
    layers: &[Dense],
    scheme: &Scheme,
) -> Result<Vec<QuantDense>, NetError> {
    let last = layers.len() - 1;
    let layers = layers.iter().enumerate().map(|(index, layer)| {
        let (weight_scale, bias_scale) = match index == last {
            true => (scheme.output_weight_scale(), scheme.output_bias_scale()),
            false => (scheme.hidden_weight_scale(), scheme.hidden_bias_scale()),
        };
        let largest = f64::from(scheme.largest_weight(shape.input_activation(index)));
        let weight = Rounding { scheme, scale: weight_scale, largest };
        let bias = Rounding { scheme, scale: bias_scale, largest: bias_limit(scheme, layer.inputs) as f64 };
        let name = shape.layer_name(bucket, index);
        let at = |n: usize| format!("{name}: the weight of neuron {}, input {}", n / layer.inputs, n % layer.inputs);
        Ok(QuantDense {
            inputs: layer.inputs,
            outputs: layer.outputs,
            weights: weight.round(&layer.weights, |value| value as i16, at)?,
            biases: bias.round(&layer.biases, |value| value as i32, |n| format!("{name}: the bias of neuron {n}"))?,
        })
    });
    layers.collect()
}

/// The dense layers with every weight rounded to what the scheme's integers can say, still as floats: the layers that
/// training runs forwards. Biases have steps so fine that they stay as they are.
#[must_use]
pub fn on_grid(layers: &[Dense], scheme: &Scheme) -> Vec<Dense> {
    let last = layers.len().saturating_sub(1);
    let round = |(index, layer): (usize, &Dense)| {
        let scale = if index == last { scheme.output_weight_scale() } else { scheme.hidden_weight_scale() };
        let one = |weight: &f32| ((f64::from(*weight) * scale).round() / scale) as f32;
        Dense { weights: layer.weights.iter().map(one).collect(), ..layer.clone() }
    };
    layers.iter().enumerate().map(round).collect()
}

/// The largest bias with which no sum over `inputs` activations and weights leaves i32; where sums stay whole they
/// saturate, and any bias will do.
fn bias_limit(scheme: &Scheme, inputs: usize) -> i64 {
    match scheme.weights {
        WeightType::I8 => i64::from(i32::MAX) - inputs as i64 * 127 * 128,
        WeightType::I16 => i64::from(i32::MAX),
    }
}

/// PSQT values of so many active features, of either side, add up in i32.
const MOST_ACTIVE: i32 = 1 << 12;

struct Rounding<'a> {
    scheme: &'a Scheme,
    scale: f64,
    largest: f64,
}

impl Rounding<'_> {
    fn round<T>(
        &self,
        values: &[f32],
        cast: fn(f64) -> T,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<T>, NetError> {
        let one = |(n, value): (usize, &f32)| {
            let value = f64::from(*value);
            let rounded = (value * self.scale).round();
            match rounded.abs() <= self.largest {
                true => Ok(cast(rounded)),
                false => Err(NetError::Range {
                    place: place(n),
                    value,
                    limit: self.largest / self.scale,
                    scheme: self.scheme.name.clone(),
                }),
            }
        };
        values.iter().enumerate().map(one).collect()
    }
}

impl QuantNet {
    /// One perspective's exact accumulator. An element outside i16 wraps in the engine.
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

    /// One perspective's PSQT sum of a bucket; 0 when the shape has none.
    #[must_use]
    pub fn psqt(&self, active: &[u32], bucket: usize) -> i32 {
        let value = |feature: &u32| self.psqt_weights.get(*feature as usize * self.shape.buckets.count + bucket);
        active.iter().filter_map(value).fold(0, |sum, weight| sum.wrapping_add(*weight))
    }

    /// What goes into the first dense layer from one accumulator.
    fn activate_accumulator(&self, sums: &[i32]) -> Vec<u8> {
        let clipped: Vec<u8> = sums.iter().map(|sum| self.scheme.crelu(i32::from(*sum as i16))).collect();
        let (first, second) = match self.shape.activation {
            Activation::Relu | Activation::Crelu | Activation::Dual => return clipped,
            Activation::Screlu => (&clipped[..], &clipped[..]),
            Activation::Pairwise => clipped.split_at(clipped.len() / 2),
        };
        first.iter().zip(second).map(|(a, b)| self.scheme.product(*a, *b)).collect()
    }

    /// What goes into the next dense layer from a hidden one's sums.
    fn activate_hidden(&self, layer: usize, sums: &[i32]) -> Vec<u8> {
        let crelu = |sum: &i32| self.scheme.crelu(self.scheme.rescale(*sum));
        let square = |sum: &i32| self.scheme.square(*sum);
        match self.shape.hidden_activation(layer) {
            Activation::Relu | Activation::Crelu | Activation::Pairwise => sums.iter().map(crelu).collect(),
            Activation::Screlu => sums.iter().map(|sum| self.scheme.product(crelu(sum), crelu(sum))).collect(),
            Activation::Dual => sums.iter().map(square).chain(sums.iter().map(crelu)).collect(),
        }
    }
}

/// The raw output of a bucket for the active features of both perspectives (all below `shape.features`).
#[must_use]
pub fn forward_integer(net: &QuantNet, bucket: usize, stm: &[u32], nstm: &[u32]) -> RawScore {
    let psqt = net.psqt(stm, bucket).wrapping_sub(net.psqt(nstm, bucket)) / 2;
    if net.scheme.weights == WeightType::I16 {
        return RawScore { psqt, positional: direct_output::forward(net, bucket, stm, nstm) };
    }
    let mut input = net.activate_accumulator(&net.accumulate(stm));
    input.extend(net.activate_accumulator(&net.accumulate(nstm)));
    let mut skip = 0;
    let mut sums = Vec::new();
    for (index, layer) in net.stacks[bucket].iter().enumerate() {
        if index > 0 {
            let width = net.shape.hidden[index - 1];
            if let Some(sum) = sums.get(width) {
                skip = net.scheme.skip(*sum);
            }
            input = net.activate_hidden(index - 1, &sums[..width]);
        }
        let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
        let dot = |row: &[i16]| row.iter().zip(&input).map(|(w, x)| i32::from(*w) * i32::from(*x)).sum::<i32>();
        sums = rows.map(|(row, bias)| bias.wrapping_add(dot(row))).collect();
    }
    RawScore { psqt, positional: sums.first().copied().unwrap_or_default().wrapping_add(skip) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random_net, shape};
    use super::super::{Dense, OutputBuckets, forward};
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn integers_by_hand() {
        let net = FloatNet {
            shape: Shape::plain(2, 1, vec![1]),
            ft_weights: vec![0.5, -1.0],
            ft_biases: vec![0.25],
            stacks: vec![vec![
                Dense { inputs: 2, outputs: 1, weights: vec![1.0, -0.5], biases: vec![0.125] },
                Dense { inputs: 1, outputs: 1, weights: vec![1.5], biases: vec![-0.1] },
            ]],
        };
        let quant = quantise(&net, &Scheme::stockfish()).expect("fits");
        assert_eq!((&quant.ft_weights[..], &quant.ft_biases[..]), (&[64, -127][..], &[32][..]));
        let layers = &quant.stacks[0];
        assert_eq!((&layers[0].weights[..], &layers[0].biases[..]), (&[64, -32][..], &[1016][..]));
        assert_eq!((&layers[1].weights[..], &layers[1].biases[..]), (&[113][..], &[-960][..]));
        // 96·64 + 0·−32 + 1016 = 7160; >> 6 = 111; 111·113 − 960
        assert_eq!(forward_integer(&quant, 0, &[0], &[1]), RawScore { psqt: 0, positional: 111 * 113 - 960 });
    }

    /// Rounding errors of random nets of every part a shape can have stay small in centipawns; most where 128 rounded
    /// weights meet in the output.
    #[test]
    fn close_to_the_float_network() {
        let scheme = Scheme::stockfish();
        let check = |shape: Shape, bound: f64| {
            let net = random_net(&shape, 3);
            let quant = quantise(&net, &scheme).expect("fits");
            let mut rng = Seed(5).stream("close", shape.l1 as u64);
            for number in 0..200 {
                let mut active = || (0..30).map(|_| rng.random_range(0..500)).collect::<Vec<u32>>();
                let (stm, nstm, bucket) = (active(), active(), number % shape.buckets.count);
                let float = f64::from(forward(&net, &scheme, bucket, &stm, &nstm)) * f64::from(scheme.nnue2score);
                let raw = forward_integer(&quant, bucket, &stm, &nstm).sum();
                let integer = f64::from(scheme.internal_score(raw));
                assert!((float - integer).abs() < bound, "{shape}: {float} {integer}");
            }
        };
        check(shape(500, 64, &[]), 80.0);
        check(shape(500, 64, &[8]), 40.0);
        check(shape(500, 64, &[16, 8]), 40.0);
        for activation in [Activation::Screlu, Activation::Pairwise] {
            check(Shape { activation, ..shape(500, 64, &[16, 8]) }, 40.0);
        }
        for hidden_activation in [Activation::Screlu, Activation::Dual] {
            check(Shape { hidden_activation, ..shape(500, 64, &[16, 8]) }, 40.0);
        }
        check(Shape { skip: true, ..shape(500, 64, &[16, 8]) }, 60.0);
        let buckets = OutputBuckets { count: 3, ..OutputBuckets::default() };
        check(Shape { psqt: true, buckets, ..shape(500, 64, &[16, 8]) }, 40.0);
        let (activation, hidden_activation) = (Activation::Pairwise, Activation::Dual);
        check(Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..shape(500, 64, &[15]) }, 60.0);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let check = |change: fn(&mut FloatNet), expected: &str| {
            let mut net = random_net(&shape(10, 4, &[3]), 1);
            change(&mut net);
            let error = quantise(&net, &Scheme::stockfish()).expect_err("does not fit").to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(|n| n.ft_weights[4 * 2 + 3] = 259.0, "ft: the weight of neuron 3, feature 2 is 259, outside ±258.00787");
        check(|n| n.ft_biases[1] = -300.0, "ft: the bias of neuron 1 is -300,");
        check(
            |n| n.stacks[0][0].weights[8 + 5] = 2.0,
            "layers.0: the weight of neuron 1, input 5 is 2, outside ±1.984375",
        );
        check(|n| n.stacks[0][1].weights[2] = -1.7, "layers.1: the weight of neuron 0, input 2 is -1.7");
        check(|n| n.stacks[0][1].biases[0] = 1e6, "layers.1: the bias of neuron 0 is 1000000,");
    }

    /// Everything a shape can have, in one neuron each: pairwise, dual, skip, two buckets, PSQT.
    #[test]
    fn every_part_by_hand() {
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
        let other = QuantDense { biases: vec![12], ..second.clone() };
        let net = QuantNet {
            shape,
            scheme: Scheme::stockfish(),
            ft_weights: vec![100, 90, 50, 300],
            ft_biases: vec![1, 2],
            psqt_weights: vec![10, 20, 35, -3],
            stacks: vec![vec![first.clone(), second], vec![first, other]],
        };
        // Accumulators (101, 92) and (51, 302→127): products 101·92/128 = 72 and 51·127/128 = 50.
        // Sums 72·64 − 10 = 4598 and the skip's 7200 − 2500 + 7 = 4707, which is 4707·9600/8128 = 5559.
        // 4598² >> 19 = 40 and 4598 >> 6 = 71: 40·3 + 71·5 = 475.
        let expected = |psqt, bias| RawScore { psqt, positional: 475 + bias + 5559 };
        assert_eq!(forward_integer(&net, 0, &[0], &[1]), expected(-12, 11));
        assert_eq!(forward_integer(&net, 1, &[0], &[1]), expected(11, 12));
    }

    /// A network clipped to the limits always fits.
    #[test]
    fn weights_on_the_grid_are_what_the_integers_say() {
        let scheme = Scheme::stockfish();
        let net = random_net(&shape(10, 4, &[3]), 7);
        let rounded = net.on_grid(&scheme);
        let quant = quantise(&net, &scheme).expect("fits");
        assert_eq!(quantise(&rounded, &scheme).expect("fits"), quant);
        let scales = [scheme.hidden_weight_scale(), scheme.output_weight_scale()];
        for ((layer, integers), scale) in rounded.stacks[0].iter().zip(&quant.stacks[0]).zip(scales) {
            for (weight, integer) in layer.weights.iter().zip(&integers.weights) {
                assert!((f64::from(*weight) * scale - f64::from(*integer)).abs() < 1e-4, "{weight} {integer}");
            }
        }
    }

    #[test]
    fn the_limits_fit() {
        let scheme = Scheme::stockfish();
        let limits = scheme.limits();
        let mut net = random_net(&shape(10, 4, &[3]), 1);
        net.ft_weights.fill(limits.feature_transformer as f32);
        net.stacks[0][0].weights.fill(-limits.hidden as f32);
        net.stacks[0][1].weights.fill(limits.output as f32);
        let quant = quantise(&net, &scheme).expect("fits");
        assert!(quant.ft_weights.iter().all(|w| *w == i16::MAX));
        assert!(quant.stacks[0][0].weights.iter().all(|w| *w == -127));
        assert!(quant.stacks[0][1].weights.iter().all(|w| *w == 127));
    }
}
