//! Integer networks: quantisation, and the slow, obvious integer forward pass that the engine is tested against.

use super::{Dense, FloatNet, NetError, Scheme, Shape};

/// A fully connected integer layer: `weights[o * inputs + i]`, `biases[o]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantDense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<i8>,
    pub biases: Vec<i32>,
}

/// The integer network, laid out as [`FloatNet`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantNet {
    pub shape: Shape,
    pub scheme: Scheme,
    pub ft_weights: Vec<i16>,
    pub ft_biases: Vec<i16>,
    pub layers: Vec<QuantDense>,
}

/// The integer network under a scheme: every number times its scale, rounded to the nearest.
///
/// # Errors
/// When the network is malformed, or a number does not fit its integer type: the error names neuron and input.
pub fn quantise(net: &FloatNet, scheme: &Scheme) -> Result<QuantNet, NetError> {
    scheme.validate()?;
    net.validate()?;
    let l1 = net.shape.l1;
    let ft = Rounding { scheme, scale: scheme.feature_transformer_scale(), largest: f64::from(i16::MAX) };
    let last = net.layers.len() - 1;
    let layers = net.layers.iter().enumerate().map(|(index, layer)| {
        let (weight_scale, bias_scale) = match index == last {
            true => (scheme.output_weight_scale(), scheme.output_bias_scale()),
            false => (scheme.hidden_weight_scale(), scheme.hidden_bias_scale()),
        };
        let weight = Rounding { scheme, scale: weight_scale, largest: f64::from(i8::MAX) };
        let bias = Rounding { scheme, scale: bias_scale, largest: bias_limit(layer.inputs) as f64 };
        let at =
            |n: usize| format!("layers.{index}: the weight of neuron {}, input {}", n / layer.inputs, n % layer.inputs);
        Ok(QuantDense {
            inputs: layer.inputs,
            outputs: layer.outputs,
            weights: weight.round(&layer.weights, |value| value as i8, at)?,
            biases: bias.round(
                &layer.biases,
                |value| value as i32,
                |n| format!("layers.{index}: the bias of neuron {n}"),
            )?,
        })
    });
    let at = |n: usize| format!("ft: the weight of neuron {}, feature {}", n % l1, n / l1);
    Ok(QuantNet {
        shape: net.shape.clone(),
        scheme: scheme.clone(),
        ft_weights: ft.round(&net.ft_weights, |value| value as i16, at)?,
        ft_biases: ft.round(&net.ft_biases, |value| value as i16, |n| format!("ft: the bias of neuron {n}"))?,
        layers: layers.collect::<Result<_, NetError>>()?,
    })
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

/// The largest bias with which no sum over `inputs` activations and weights leaves i32.
pub(super) fn bias_limit(inputs: usize) -> i64 {
    i64::from(i32::MAX) - inputs as i64 * 127 * 128
}

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
}

/// The raw integer output for the active features of both perspectives (all below `shape.features`): internal score
/// units times the scheme's divisor.
#[must_use]
pub fn forward_integer(net: &QuantNet, stm: &[u32], nstm: &[u32]) -> i32 {
    let wrapped = |sum: i32| i32::from(sum as i16);
    let mut values: Vec<i32> = net.accumulate(stm).into_iter().chain(net.accumulate(nstm)).map(wrapped).collect();
    for (index, layer) in net.layers.iter().enumerate() {
        if index > 0 {
            values.iter_mut().for_each(|value| *value = net.scheme.rescale(*value));
        }
        let clipped: Vec<i32> = values.iter().map(|value| i32::from(net.scheme.crelu(*value))).collect();
        let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
        let dot = |row: &[i8]| row.iter().zip(&clipped).map(|(w, x)| i32::from(*w) * x).sum::<i32>();
        values = rows.map(|(row, bias)| bias + dot(row)).collect();
    }
    values.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{random_net, shape};
    use super::super::{Activation, Dense, forward};
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn integers_by_hand() {
        let net = FloatNet {
            shape: Shape { features: 2, l1: 1, hidden: vec![1], activation: Activation::Crelu },
            ft_weights: vec![0.5, -1.0],
            ft_biases: vec![0.25],
            layers: vec![
                Dense { inputs: 2, outputs: 1, weights: vec![1.0, -0.5], biases: vec![0.125] },
                Dense { inputs: 1, outputs: 1, weights: vec![1.5], biases: vec![-0.1] },
            ],
        };
        let quant = quantise(&net, &Scheme::stockfish()).expect("fits");
        assert_eq!((&quant.ft_weights[..], &quant.ft_biases[..]), (&[64, -127][..], &[32][..]));
        assert_eq!((&quant.layers[0].weights[..], &quant.layers[0].biases[..]), (&[64, -32][..], &[1016][..]));
        assert_eq!((&quant.layers[1].weights[..], &quant.layers[1].biases[..]), (&[113][..], &[-960][..]));
        // 96·64 + 0·−32 + 1016 = 7160; >> 6 = 111; 111·113 − 960
        assert_eq!(forward_integer(&quant, &[0], &[1]), 111 * 113 - 960);
    }

    /// Rounding errors of a random net stay small in centipawns; most where 128 rounded weights meet in the output.
    #[test]
    fn close_to_the_float_network() {
        let scheme = Scheme::stockfish();
        for (seed, (hidden, bound)) in [(vec![], 80.0), (vec![8], 40.0), (vec![16, 8], 40.0)].into_iter().enumerate() {
            let net = random_net(&shape(500, 64, &hidden), seed as u64);
            let quant = quantise(&net, &scheme).expect("fits");
            let mut rng = Seed(5).stream("close", seed as u64);
            for _ in 0..200 {
                let mut active = || (0..30).map(|_| rng.random_range(0..500)).collect::<Vec<u32>>();
                let (stm, nstm) = (active(), active());
                let float = f64::from(forward(&net, &stm, &nstm)) * f64::from(scheme.nnue2score);
                let integer = f64::from(scheme.internal_score(forward_integer(&quant, &stm, &nstm)));
                assert!((float - integer).abs() < bound, "{hidden:?}: {float} {integer}");
            }
        }
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
            |n| n.layers[0].weights[8 + 5] = 2.0,
            "layers.0: the weight of neuron 1, input 5 is 2, outside ±1.984375",
        );
        check(|n| n.layers[1].weights[2] = -1.7, "layers.1: the weight of neuron 0, input 2 is -1.7");
        check(|n| n.layers[1].biases[0] = 1e6, "layers.1: the bias of neuron 0 is 1000000,");
    }

    /// A network clipped to the limits always fits.
    #[test]
    fn weights_on_the_grid_are_what_the_integers_say() {
        let scheme = Scheme::stockfish();
        let net = random_net(&shape(10, 4, &[3]), 7);
        let rounded = FloatNet { layers: on_grid(&net.layers, &scheme), ..net.clone() };
        let quant = quantise(&net, &scheme).expect("fits");
        assert_eq!(quantise(&rounded, &scheme).expect("fits"), quant);
        let scales = [scheme.hidden_weight_scale(), scheme.output_weight_scale()];
        for ((layer, integers), scale) in rounded.layers.iter().zip(&quant.layers).zip(scales) {
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
        net.layers[0].weights.fill(-limits.hidden as f32);
        net.layers[1].weights.fill(limits.output as f32);
        let quant = quantise(&net, &scheme).expect("fits");
        assert!(quant.ft_weights.iter().all(|w| *w == i16::MAX));
        assert!(quant.layers[0].weights.iter().all(|w| *w == -127));
        assert!(quant.layers[1].weights.iter().all(|w| *w == 127));
    }
}
