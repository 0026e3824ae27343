//! Sources and layouts of small networks.

use super::*;
use crate::net::tests::{random_net, shape};
use crate::net::{Activation, BucketRule, NetFile, Origin, OutputBuckets, Scheme, Shape, quantise};

fn example(set: &FeatureSet, shape: Shape, scheme: &Scheme) -> NetFile {
    let shape = Shape { features: set.num_features(), ..shape };
    let net = quantise(&random_net(&shape, 7), scheme).expect("fits");
    NetFile { origin: Origin::of(set), net }
}

fn piece() -> FeatureSet {
    FeatureSet::resolve("piece").expect("shipped")
}

/// Every section stands where the layout says, and nothing but zeros between them.
#[test]
fn the_file_is_laid_out_as_described() {
    let shape = Shape {
        narrow: 700,
        psqt: true,
        buckets: OutputBuckets { count: 3, rule: BucketRule::Cpw },
        ..shape(768, 10, &[5])
    };
    let set = piece();
    let scheme = Scheme::stockfish();
    let file = example(&set, shape, &scheme);
    let exported = ExportedNetwork::new(&file, &set).expect("exports");
    let bytes = exported.weights();
    let layout = &exported.layout;
    assert_eq!(bytes.len(), layout.size);
    let i16_at = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let i32_at = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let [biases, weights, wide, psqt] = &layout.transformer[..] else { unreachable!("{layout:?}") };
    let wide_at = 128 + (700 * 10usize).next_multiple_of(64);
    let psqt_at = wide_at + (2 * 68 * 10usize).next_multiple_of(64);
    assert_eq!((biases.at, weights.at, wide.at, psqt.at), (64, 128, wide_at, psqt_at));
    for neuron in 0..10 {
        assert_eq!(i16_at(biases.at + 2 * neuron), file.net.ft_biases[neuron]);
        let at = 17 * 10 + neuron;
        assert_eq!(i16::from(bytes[weights.at + at] as i8), file.net.ft_weights[at]);
        assert_eq!(i16_at(wide.at + 2 * at), file.net.ft_weights[700 * 10 + at]);
    }
    assert_eq!(i32_at(psqt.at + 4 * (767 * 3 + 2)), file.net.psqt_weights[767 * 3 + 2]);
    for (bucket, stack) in file.net.stacks.iter().enumerate() {
        let start = layout.stacks_at + bucket * layout.stack_size;
        let sections = layout.stack.chunks_exact(2).zip(stack);
        for (sections, layer) in sections {
            let [biases, weights] = sections else { unreachable!("pairs") };
            let last = layer.weights.len() - 1;
            assert_eq!(i32_at(start + biases.at), layer.biases[0]);
            assert_eq!(i16::from(bytes[start + weights.at + last] as i8), layer.weights[last]);
        }
    }
    let sections = layout.transformer.iter().map(|section| (section.at, section.size()));
    let stacks = (0..3).flat_map(|bucket| {
        let start = layout.stacks_at + bucket * layout.stack_size;
        layout.stack.iter().map(move |section| (start + section.at, section.size()))
    });
    let mut gap = 24;
    for (at, size) in sections.chain(stacks).chain([(layout.size, 0)]) {
        assert!(at % 64 == 0 && at - gap < 64 && bytes[gap..at].iter().all(|byte| *byte == 0), "{gap}..{at}");
        gap = at + size;
    }
}

/// Only the code that the shape needs.
#[test]
fn sources_follow_the_shape() {
    let set = piece();
    let check = |shape: Shape, scheme: &Scheme, with: &[&str], without: &[&str]| {
        let file = example(&set, shape, scheme);
        let exported = ExportedNetwork::new(&file, &set).expect("exports");
        for text in [exported.rust(), exported.c()] {
            let text = text.to_lowercase();
            with.iter().for_each(|part| assert!(text.contains(part), "{part}:\n{text}"));
            without.iter().for_each(|part| assert!(!text.contains(part), "{part}:\n{text}"));
            assert!(!text.contains("{{") && text.contains("belongs to whoever exported it"));
            assert!(text.lines().all(|line| !line.ends_with(' ') && line.len() <= 120), "{text}");
        }
    };
    let all = ["psqt", "skip", "hidden2", "screlu", "dual", "pairwise", "relu: max", "pieces"];
    check(shape(768, 8, &[4]), &Scheme::stockfish(), &["crelu", "hidden1"], &all);
    check(shape(768, 8, &[]), &Scheme::simple(), &["saturates"], &["psqt", "hidden1", "dense(", "shift"]);
    let full = Shape {
        activation: Activation::Pairwise,
        hidden_activation: Activation::Dual,
        skip: true,
        psqt: true,
        buckets: OutputBuckets { count: 8, ..OutputBuckets::default() },
        ..shape(768, 8, &[3, 4])
    };
    check(full, &Scheme::stockfish(), &["psqt", "skip", "hidden2", "dual", "pairwise", "pieces"], &["screlu"]);
}

#[test]
fn networks_outside_their_limits_are_refused() {
    let set = piece();
    let check = |change: &dyn Fn(&mut NetFile), expected: &str| {
        let mut file = example(&set, Shape { activation: Activation::Screlu, ..shape(768, 8, &[]) }, &Scheme::simple());
        change(&mut file);
        let error = ExportedNetwork::new(&file, &set).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&|file| file.net.stacks[0][0].weights[5] = 129, "the integer weight of neuron 0, input 5 is 129");
    check(&|file| file.net.scheme.one = 300, "the activation 1.0 is 1 to 255, not 300");
    check(&|file| file.net.shape.features = 700, "700 inputs per perspective, but feature set");
    let other = FeatureSet::resolve("half-kp").expect("shipped");
    check(&|file| file.origin = Origin::of(&other), "belongs to feature set");
}

/// Networks of one architecture have the same sources, so that weights can be exchanged.
#[test]
fn sources_depend_on_the_architecture_only() {
    let set = piece();
    let sources = |shape: Shape, seed, scheme: &Scheme| {
        let shape = Shape { features: set.num_features(), ..shape };
        let net = quantise(&random_net(&shape, seed), scheme).expect("fits");
        let file = NetFile { origin: Origin::of(&set), net };
        let exported = ExportedNetwork::new(&file, &set).expect("exports");
        ([exported.rust(), exported.c()], exported.weights())
    };
    let first = sources(shape(768, 8, &[4]), 1, &Scheme::stockfish());
    let second = sources(shape(768, 8, &[4]), 2, &Scheme::stockfish());
    let other = sources(shape(768, 8, &[4]), 1, &Scheme { pawn_value: 200, ..Scheme::stockfish() });
    assert!(first.0 == second.0 && first.1 != second.1 && first.1[..64] == second.1[..64]);
    assert!(first.0 != other.0 && first.1[8..16] != other.1[8..16]);
}
