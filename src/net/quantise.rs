//! Quantisation of a float network: feature transformer, PSQT weights and dense layers, under a scheme.

use super::{Dense, FloatNet, NetError, QuantDense, QuantNet, Scheme, Shape};

/// Quantises a network: every number times its scale, rounded to the nearest integer.
///
/// ```
/// use fsbench::net::{FloatNet, Scheme, Shape, quantise};
///
/// let mut float = FloatNet::zeros(&Shape::plain(768, 8, vec![]));
/// float.ft_weights.fill(0.5);
/// assert_eq!(quantise(&float, &Scheme::stockfish())?.ft_weights[0], 64);
/// float.ft_weights[8 * 5 + 2] = 300.0;
/// let error = quantise(&float, &Scheme::stockfish()).unwrap_err();
/// assert!(error.to_string().starts_with("ft: the weight of neuron 2, feature 5 is 300, outside ±258"));
/// # Ok::<(), fsbench::net::NetError>(())
/// ```
///
/// # Errors
/// When the network is malformed, or a number does not fit its integer type; the error names neuron and input.
pub fn quantise(net: &FloatNet, scheme: &Scheme) -> Result<QuantNet, NetError> {
    scheme.validate()?;
    net.validate()?;
    scheme.admits(&net.shape)?;
    let l1 = net.shape.l1;
    let row = net.shape.row_len();
    let ft = Rounding { scheme, scale: scheme.feature_transformer_scale(), largest: f64::from(i16::MAX) };
    let narrow = Rounding { largest: f64::from(i8::MAX), ..ft };
    let psqt = Rounding { scheme, scale: scheme.psqt_scale(), largest: f64::from(i32::MAX / MAX_ACTIVE) };
    let columns = |from: usize, to: usize| {
        let mut values: Vec<f32> = Vec::new();
        for row in net.ft_weights.chunks_exact(row) {
            values.extend_from_slice(&row[from..to]);
        }
        values
    };
    let at = |n: usize| format!("ft: the weight of neuron {}, feature {}", n % l1, n / l1);
    let buckets = net.shape.buckets.count;
    let psqt_at = |n: usize| format!("psqt: the value of bucket {}, feature {}", n % buckets, n / buckets);
    let stack = |(bucket, layers): (usize, &Vec<Dense>)| quantise_stack(&net.shape, bucket, layers, scheme);
    Ok(QuantNet {
        shape: net.shape.clone(),
        scheme: scheme.clone(),
        ft_weights: {
            let columns = columns(0, l1);
            let (first, rest) = columns.split_at(net.shape.narrow as usize * l1);
            let mut weights = narrow.round(first, |value| value as i16, at)?;
            weights.extend(ft.round(rest, |value| value as i16, |n| at(first.len() + n))?);
            weights
        },
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
        let (weight_scale, bias_scale) = if index == last {
            (scheme.output_weight_scale(), scheme.output_bias_scale())
        } else {
            (scheme.hidden_weight_scale(index), scheme.hidden_bias_scale(index))
        };
        let largest = f64::from(scheme.largest_weight(shape.input_activation(index)));
        let weight = Rounding { scheme, scale: weight_scale, largest };
        let bias = Rounding { scheme, scale: bias_scale, largest: scheme.largest_bias(layer.inputs) as f64 };
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

/// The dense layers with every weight rounded to the scheme's grid, still as floats. Training uses them in the forward
/// pass. The grid of biases is so fine that they are not rounded.
#[must_use]
pub fn on_grid(layers: &[Dense], scheme: &Scheme) -> Vec<Dense> {
    let last = layers.len().saturating_sub(1);
    let round = |(index, layer): (usize, &Dense)| {
        let scale = if index == last { scheme.output_weight_scale() } else { scheme.hidden_weight_scale(index) };
        let rounded = |weight: &f32| ((f64::from(*weight) * scale).round() / scale) as f32;
        Dense { weights: layer.weights.iter().map(rounded).collect(), ..layer.clone() }
    };
    layers.iter().enumerate().map(round).collect()
}

/// The PSQT sum of this many active features cannot overflow i32.
const MAX_ACTIVE: i32 = 1 << 12;

/// Rounds numbers to integers of at most `largest`.
#[derive(Copy, Clone)]
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
        let round = |(n, value): (usize, &f32)| {
            let value = f64::from(*value);
            let rounded = (value * self.scale).round();
            if rounded.abs() <= self.largest {
                Ok(cast(rounded))
            } else {
                Err(NetError::Range {
                    place: place(n),
                    value,
                    limit: self.largest / self.scale,
                    scheme: self.scheme.name.clone(),
                })
            }
        };
        values.iter().enumerate().map(round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random_net, shape};
    use super::super::{Activation, OutputBuckets, RawScore, forward, forward_integer};
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

    /// For every kind of layer, the rounding error stays small in centipawns. It is largest if the output layer sums
    /// 128 rounded weights.
    #[test]
    fn close_to_the_float_network() {
        let scheme = Scheme::stockfish();
        let check = |shape: Shape, bound: f64| {
            let net = random_net(&shape, 3);
            let quant = quantise(&net, &scheme).expect("fits");
            let mut rng = Seed(5).stream("close", shape.l1 as u64);
            for number in 0..200 {
                let mut active = || (0..30).map(|_| rng.random_range(0..500)).collect::<Vec<u32>>();
                let stm = active();
                let nstm = active();
                let bucket = number % shape.buckets.count;
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
        check(Shape { psqt: true, buckets: buckets.clone(), ..shape(500, 64, &[16, 8]) }, 40.0);
        let activation = Activation::Pairwise;
        let hidden_activation = Activation::Dual;
        check(Shape { activation, hidden_activation, skip: true, psqt: true, buckets, ..shape(500, 64, &[15]) }, 60.0);
    }

    #[test]
    fn errors_name_the_number_that_does_not_fit() {
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

    #[test]
    fn weights_on_the_grid_match_the_integers() {
        let scheme = Scheme::stockfish();
        let net = random_net(&shape(10, 4, &[3]), 7);
        let rounded = net.on_grid(&scheme);
        let quant = quantise(&net, &scheme).expect("fits");
        assert_eq!(quantise(&rounded, &scheme).expect("fits"), quant);
        let scales = [scheme.hidden_weight_scale(0), scheme.output_weight_scale()];
        for ((layer, integers), scale) in rounded.stacks[0].iter().zip(&quant.stacks[0]).zip(scales) {
            for (weight, integer) in layer.weights.iter().zip(&integers.weights) {
                assert!((f64::from(*weight) * scale - f64::from(*integer)).abs() < 1e-4, "{weight} {integer}");
            }
        }
    }

    /// A network clipped to the limits fits.
    #[test]
    fn the_limits_fit() {
        let scheme = Scheme::stockfish();
        let limits = scheme.limits();
        let mut net = random_net(&shape(10, 4, &[3]), 1);
        net.ft_weights.fill(limits.feature_transformer as f32);
        net.stacks[0][0].weights.fill(-limits.hidden[0] as f32);
        net.stacks[0][1].weights.fill(limits.output as f32);
        let quant = quantise(&net, &scheme).expect("fits");
        assert!(quant.ft_weights.iter().all(|w| *w == i16::MAX));
        assert!(quant.stacks[0][0].weights.iter().all(|w| *w == -127));
        assert!(quant.stacks[0][1].weights.iter().all(|w| *w == 127));
    }
}
