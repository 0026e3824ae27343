//! The float network and its plain forward pass.

use super::{NetError, Shape};

/// A fully connected layer: `weights[o * inputs + i]`, `biases[o]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<f32>,
    pub biases: Vec<f32>,
}

/// The trained float network. `ft_weights[feature * l1 + neuron]`; `layers` from the first hidden to the output.
/// The first dense layer reads the side to move's accumulator, then the other's.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatNet {
    pub shape: Shape,
    pub ft_weights: Vec<f32>,
    pub ft_biases: Vec<f32>,
    pub layers: Vec<Dense>,
}

impl FloatNet {
    /// # Errors
    /// When the shape is impossible or not plain, an array has not the shape's size, or a number is not finite.
    pub fn validate(&self) -> Result<(), NetError> {
        self.shape.validate()?;
        if !self.shape.is_plain() {
            return Err(NetError::Shape(format!(
                "{} has integer networks only; float networks have one stack and crelu",
                self.shape
            )));
        }
        let size = |what: String, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => Err(NetError::Shape(format!("{what} holds {found} numbers, not {expected}"))),
        };
        let shape = &self.shape;
        size("ft.weight".into(), self.ft_weights.len(), shape.features as usize * shape.l1)?;
        size("ft.bias".into(), self.ft_biases.len(), shape.l1)?;
        let expected = shape.dense();
        size("the list of layers".into(), self.layers.len(), expected.len())?;
        for (index, (layer, (inputs, outputs))) in self.layers.iter().zip(expected).enumerate() {
            size(format!("layers.{index}.weight"), layer.weights.len(), inputs * outputs)?;
            size(format!("layers.{index}.bias"), layer.biases.len(), outputs)?;
            size(format!("a row of layers.{index}.weight"), layer.inputs, inputs)?;
            size(format!("the output of layers.{index}"), layer.outputs, outputs)?;
        }
        let layers = self.layers.iter().flat_map(|layer| [&layer.weights, &layer.biases]);
        let mut numbers = [&self.ft_weights, &self.ft_biases].into_iter().chain(layers).flatten();
        match numbers.find(|number| !number.is_finite()) {
            Some(number) => Err(NetError::Shape(format!("a weight is {number}: training has diverged"))),
            None => Ok(()),
        }
    }

    /// The network with these features' rows only, in this order (all below `shape.features`).
    #[must_use]
    pub fn keeping(self, kept: &[u32]) -> FloatNet {
        let l1 = self.shape.l1;
        let row = |feature: &u32| &self.ft_weights[*feature as usize * l1..][..l1];
        let ft_weights = kept.iter().flat_map(row).copied().collect();
        let shape = Shape { features: kept.len() as u32, ..self.shape.clone() };
        FloatNet { shape, ft_weights, ..self }
    }

    /// Trainable numbers.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        let layers = self.layers.iter().map(|layer| layer.weights.len() + layer.biases.len()).sum::<usize>();
        (self.ft_weights.len() + self.ft_biases.len() + layers) as u64
    }
}

/// The float output for the active features of both perspectives (all below `shape.features`); repeated features
/// count repeatedly. Centipawns are the output times the scheme's `nnue2score`.
#[must_use]
pub fn forward(net: &FloatNet, stm: &[u32], nstm: &[u32]) -> f32 {
    let mut values = accumulate(net, stm);
    values.extend(accumulate(net, nstm));
    for layer in &net.layers {
        let clipped: Vec<f32> = values.iter().map(|value| value.clamp(0.0, 1.0)).collect();
        let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.biases);
        values = rows.map(|(row, bias)| bias + row.iter().zip(&clipped).map(|(w, x)| w * x).sum::<f32>()).collect();
    }
    values.first().copied().unwrap_or_default()
}

fn accumulate(net: &FloatNet, active: &[u32]) -> Vec<f32> {
    let l1 = net.shape.l1;
    let mut sums = net.ft_biases.clone();
    for feature in active {
        let row = &net.ft_weights[*feature as usize * l1..][..l1];
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
            layers: vec![Dense { inputs: 2, outputs: 1, weights: vec![1.0, -2.0], biases: vec![0.5] }],
        }
    }

    #[test]
    fn forward_by_hand() {
        assert_eq!(forward(&tiny(), &[0], &[]), 0.5 + 0.375 - 0.25);
        assert_eq!(forward(&tiny(), &[0, 1, 1], &[1]), 0.5 + 1.0 - 1.25);
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
        check(|n| n.ft_weights.push(0.0), "the network's shape is wrong: ft.weight holds 3 numbers, not 2");
        check(|n| n.layers.clear(), "the network's shape is wrong: the list of layers holds 0 numbers, not 1");
        check(
            |n| n.layers[0].inputs = 1,
            "the network's shape is wrong: a row of layers.0.weight holds 1 numbers, not 2",
        );
        check(|n| n.ft_biases[0] = f32::NAN, "the network's shape is wrong: a weight is NaN: training has diverged");
    }
}
