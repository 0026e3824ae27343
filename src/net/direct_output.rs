//! The direct output of schemes with i16 weights: products are not rounded. This is the plain reference.

use super::{Activation, QuantNet};

/// The positional part of a bucket's raw output; it saturates at i32.
pub(super) fn forward(net: &QuantNet, bucket: usize, stm: &[u32], nstm: &[u32]) -> i32 {
    let mut inputs = activate(net, &net.accumulate(stm));
    inputs.extend(activate(net, &net.accumulate(nstm)));
    let layer = &net.stacks[bucket][0];
    let sum: i64 = layer.weights.iter().zip(&inputs).map(|(weight, input)| i64::from(*weight) * input).sum();
    output(net, sum, layer.biases[0])
}

/// One perspective's inputs: activations, or unrounded products of two activations.
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
    use super::super::tests::random_net;
    use super::super::{NetFile, Origin, OutputBuckets, QuantDense, RawScore, Scheme, Shape};
    use super::super::{forward as float_forward, forward_integer, quantise};
    use super::*;
    use crate::features::FeatureSet;
    use crate::units::Seed;
    use rand::RngExt;

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

    /// With output weights on the scheme's grid, the error comes from rounding 31 numbers per accumulator element:
    /// about 1.5 centipawns, twice as much if activations are multiplied.
    #[test]
    fn close_to_the_float_network_and_through_its_file() {
        let scheme = Scheme::simple();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("net");
        let set = FeatureSet::resolve("piece").expect("shipped");
        let mut rng = Seed(5).stream("whole", 0);
        for activation in [Activation::Relu, Activation::Crelu, Activation::Screlu, Activation::Pairwise] {
            let buckets = OutputBuckets { count: 2, ..OutputBuckets::default() };
            let shape = Shape { activation, buckets, psqt: true, ..Shape::plain(768, 64, vec![]) };
            let float = random_net(&shape, 9).on_grid(&scheme);
            let net = quantise(&float, &scheme).expect("fits");
            let file = NetFile { origin: Origin::of(&set), net };
            file.save(&path).expect("saved");
            let net = NetFile::load(&path).expect("loads").net;
            assert_eq!(net, file.net);
            for bucket in [0, 1].repeat(50) {
                let mut active = || (0..30).map(|_| rng.random_range(0..768)).collect::<Vec<u32>>();
                let stm = active();
                let nstm = active();
                let expected = f64::from(float_forward(&float, &scheme, bucket, &stm, &nstm)) * 400.0;
                let found = f64::from(scheme.internal_score(forward_integer(&net, bucket, &stm, &nstm).sum()));
                assert!((expected - found).abs() < 10.0, "{activation:?}: {expected} {found}");
            }
        }
        let mut heavy = file_of(&set);
        heavy.net.stacks[0][0].weights[3] = -129;
        heavy.save(&path).expect("saved");
        let error = NetFile::load(&path).expect_err("too large").to_string();
        assert!(error.contains("the integer weight of neuron 0, input 3 is -129, outside ±128"), "{error}");
    }

    fn file_of(set: &FeatureSet) -> NetFile {
        let shape = Shape { activation: Activation::Screlu, ..Shape::plain(set.num_features(), 4, vec![]) };
        let net = quantise(&random_net(&shape, 1), &Scheme::simple()).expect("fits");
        NetFile { origin: Origin::of(set), net }
    }
}
