//! Small random networks of every kind of layer, as integers.
#![allow(dead_code, reason = "each test uses only some of these")]

use fsbench::chess::{Board, Color, Perspective};
use fsbench::features::{BucketExpression, FeatureSet};
use fsbench::net::{Activation, BucketRule, OutputBuckets, QuantDense, QuantNet, Scheme, Shape, WeightType};
use fsbench::units::Seed;
use rand::RngExt;

/// Shapes that together cover every kind of layer.
pub fn shapes() -> Vec<Shape> {
    let plain = |l1, hidden: &[usize]| Shape::plain(1, l1, hidden.to_vec());
    let buckets = |count, rule| OutputBuckets { count, rule };
    vec![
        plain(32, &[32, 32]),
        plain(24, &[]),
        Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip: true,
            psqt: true,
            buckets: buckets(8, BucketRule::Stockfish),
            ..plain(96, &[15, 32])
        },
        plain(40, &[5]),
        Shape { psqt: true, buckets: buckets(20, BucketRule::Cpw), ..plain(1, &[8, 3]) },
        Shape { activation: Activation::Screlu, buckets: buckets(3, BucketRule::Cpw), ..plain(70, &[]) },
        Shape {
            activation: Activation::Pairwise,
            skip: true,
            buckets: buckets(8, BucketRule::Stockfish),
            ..plain(130, &[15, 32])
        },
        Shape {
            activation: Activation::Screlu,
            hidden_activation: Activation::Screlu,
            psqt: true,
            skip: true,
            ..plain(50, &[70, 16])
        },
        // The shape and the scheme of Stockfish 19, with sums that end within a block.
        Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip_difference: true,
            concatenated: true,
            psqt: true,
            buckets: buckets(8, BucketRule::Stockfish),
            ..plain(96, &[10, 22])
        },
        Shape { hidden_activation: Activation::Screlu, concatenated: true, ..plain(40, &[5, 20]) },
        // The last ones use scheme `simple`.
        Shape { activation: Activation::Relu, ..plain(33, &[]) },
        Shape { activation: Activation::Screlu, buckets: buckets(8, BucketRule::Cpw), ..plain(200, &[]) },
        Shape { activation: Activation::Pairwise, psqt: true, ..plain(40, &[]) },
        Shape { buckets: buckets(2, BucketRule::Stockfish), ..plain(70, &[]) },
    ]
}

/// A mirrored set with king zones that only rules of output buckets read.
pub const ZONED: &str = "name = \"zoned\"\nfeatures = \"square(P) * role(P) * color(P) for P in pieces\"\n\
     mirror = \"king-left\"\nblack = \"rotate\"\n[buckets]\nzones = [0,0,1,1, 2,2,3,3, 4,4,4,4, 4,4,4,4, 4,4,4,4, \
     4,4,4,4, 4,4,4,4, 4,4,4,4]";

/// Sets, each with output buckets by an expression.
pub fn expression_buckets() -> [(FeatureSet, OutputBuckets); 3] {
    let case = |set: Result<FeatureSet, _>, count, rule: &str| {
        (set.expect("a definition"), OutputBuckets { count, rule: BucketRule::from(rule.to_owned()) })
    };
    [
        case(FeatureSet::resolve("piece"), 8, "count(7 for P in pieces if role(P) != pawn)"),
        case(FeatureSet::from_definition(ZONED), 5, "bucket(K, zones)"),
        case(FeatureSet::resolve("half-ka-v2-hm"), 1, "role(K, king)"),
    ]
}

/// Finds the output bucket without the compiled encoder.
pub struct ReferenceBuckets {
    buckets: OutputBuckets,
    expression: Option<BucketExpression>,
}

impl ReferenceBuckets {
    pub fn new(buckets: &OutputBuckets, set: &FeatureSet) -> ReferenceBuckets {
        let expression = buckets.rule.expression().map(|rule| set.bucket_expression(rule).expect("a rule"));
        ReferenceBuckets { buckets: buckets.clone(), expression }
    }

    pub fn of(&self, board: &Board, turn: Color) -> usize {
        let input = match &self.expression {
            None => board.occupied().count(),
            Some(rule) => rule.set().reference(board, Perspective::of(turn))[0] as usize,
        };
        self.buckets.of(input)
    }
}

/// The number of shapes, the last ones, that use scheme `simple`.
const SIMPLE: usize = 4;

/// The scheme of the shape at `index` of [`shapes`].
pub fn scheme_of(index: usize, shape: &Shape) -> Scheme {
    match (index >= shapes().len() - SIMPLE, shape.skip_difference) {
        (true, _) => Scheme::simple(),
        (false, true) => Scheme::stockfish_19(),
        (false, false) => Scheme::stockfish(),
    }
}

/// A network with random numbers whose activations are spread over their range.
pub fn random_net(shape: Shape, scheme: Scheme, seed: u64) -> QuantNet {
    let mut rng = Seed(seed).stream("integers", 0);
    let rows = shape.features as usize;
    let largest = scheme.largest_weight(shape.activation).min(4_000) as i16;
    let dense = if scheme.weights == WeightType::I8 { -40..=40 } else { -largest..=largest };
    // Every other network has weights that do not fit a byte.
    let (common, rare) = if seed.is_multiple_of(2) { (60, 60) } else { (60, 200) };
    let ft_weight = |n: usize| if n.is_multiple_of(97) { -rare..rare } else { -common..common };
    let ft_weights = (0..rows * shape.l1).map(|n| rng.random_range(ft_weight(n))).collect();
    let ft_biases = (0..shape.l1).map(|_| rng.random_range(-50..90)).collect();
    let sums = if shape.psqt { rows * shape.buckets.count } else { 0 };
    let psqt_weights = (0..sums).map(|_| rng.random_range(-40_000..40_000)).collect();
    let stacks = (0..shape.buckets.count).map(|_| {
        let layer = |(inputs, outputs): (usize, usize)| QuantDense {
            inputs,
            outputs,
            weights: (0..inputs * outputs).map(|_| rng.random_range(dense.clone())).collect(),
            biases: (0..outputs).map(|_| rng.random_range(-5_000..5_000)).collect(),
        };
        shape.layer_sizes().into_iter().map(layer).collect()
    });
    let stacks = stacks.collect();
    QuantNet { scheme, shape, ft_weights, ft_biases, psqt_weights, stacks }
}
