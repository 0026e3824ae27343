//! The output layer of schemes with i16 weights, whose products stay whole: the slow, obvious way.

use super::{Activation, QuantNet};

/// The positional part of a bucket's raw output; beyond i32 it saturates.
pub(super) fn forward(net: &QuantNet, bucket: usize, stm: &[u32], nstm: &[u32]) -> i32 {
    let mut inputs = activate(net, &net.accumulate(stm));
    inputs.extend(activate(net, &net.accumulate(nstm)));
    let layer = &net.stacks[bucket][0];
    let sum: i64 = layer.weights.iter().zip(&inputs).map(|(weight, input)| i64::from(*weight) * input).sum();
    output(net, sum, layer.biases[0])
}

/// One perspective's inputs: activations, or whole products of two of them.
fn activate(net: &QuantNet, sums: &[i32]) -> Vec<i64> {
    let one = i64::from(net.scheme.one);
    let relu = |sum: &i32| i64::from(*sum as i16).max(0);
    let crelu = |sum: &i32| relu(sum).min(one);
    match net.shape.activation {
        Activation::Relu => sums.iter().map(relu).collect(),
        Activation::Crelu | Activation::Dual => sums.iter().map(crelu).collect(),
        Activation::Screlu => sums.iter().map(|sum| crelu(sum) * crelu(sum)).collect(),
        Activation::Pairwise => {
            let (first, second) = sums.split_at(sums.len() / 2);
            first.iter().zip(second).map(|(a, b)| crelu(a) * crelu(b)).collect()
        }
    }
}

fn output(net: &QuantNet, sum: i64, bias: i32) -> i32 {
    let one = if net.shape.activation.multiplies() { i64::from(net.scheme.one) } else { 1 };
    (sum / one + i64::from(bias)).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::super::{QuantDense, RawScore, Scheme, Shape, forward_integer};
    use super::*;

    /// Accumulators (100, 300) and (−5, 50) for features 0 and 1.
    fn net(activation: Activation, weights: &[i16], bias: i32) -> QuantNet {
        let shape = Shape { activation, ..Shape::plain(2, 2, vec![]) };
        let layer = QuantDense { inputs: weights.len(), outputs: 1, weights: weights.to_vec(), biases: vec![bias] };
        QuantNet {
            shape,
            scheme: Scheme::simple(),
            ft_weights: vec![90, 280, -15, 30],
            ft_biases: vec![10, 20],
            psqt_weights: vec![],
            stacks: vec![vec![layer]],
        }
    }

    #[test]
    fn outputs_by_hand() {
        let check = |activation, weights: &[i16], expected: i32| {
            let found = forward_integer(&net(activation, weights, 7), 0, &[0], &[1]);
            assert_eq!(found, RawScore { psqt: 0, positional: expected }, "{activation:?}");
        };
        check(Activation::Relu, &[1, -2, 3, 4], 100 - 600 + 200 + 7);
        check(Activation::Crelu, &[1, -2, 3, 4], 100 - 510 + 200 + 7);
        // (10,000 − 2·65,025 + 4·2,500) / 255, truncated toward zero
        check(Activation::Screlu, &[1, -2, 3, 4], -431 + 7);
        // (3·100·255 + 5·0·50) / 255
        check(Activation::Pairwise, &[3, 5], 300 + 7);
        let huge = net(Activation::Relu, &[0, 32_767, 0, 0], i32::MAX - 5);
        assert_eq!(forward_integer(&huge, 0, &[0], &[1]).positional, i32::MAX);
    }
}
