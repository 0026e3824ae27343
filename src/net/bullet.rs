//! Raw networks as bullet writes them: `(N → l1) × 2 → activation → 1` of scheme `simple`.
//!
//! The file has no header: the caller gives the features, the activation and the number of output buckets. It holds
//! little-endian i16 only (bullet, `SavedFormat` of its examples):
//!
//! | numbers | content | scale |
//! |---|---|---|
//! | l1·features | feature transformer weights, feature by feature (l1 × features, column-major) | QA |
//! | l1 | its biases | QA |
//! | inputs·buckets | output weights in an [`OutputOrder`]: of stm's values, then nstm's | QB |
//! | buckets | output biases | QA·QB |
//!
//! `inputs` is 2·l1, with pairwise l1. The repeated text `bullet` pads the file to a multiple of 64 bytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use thiserror::Error;

use super::other_kind::other_kind;
use super::{Activation, BucketRule, NetError, NetFile, Origin, OutputBuckets, QuantDense, QuantNet, Scheme, Shape};
use crate::features::FeatureSet;
use crate::output::OutputFile;

/// The order of the output weights, which the author of a trainer chooses and a file does not tell.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputOrder {
    /// Bucket by bucket: saved with `.transpose()`.
    #[default]
    Bucket,
    /// Input by input, each with its weight for every bucket: saved without `.transpose()`.
    Input,
}

impl OutputOrder {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OutputOrder::Bucket => "bucket",
            OutputOrder::Input => "input",
        }
    }

    const fn other(self) -> OutputOrder {
        match self {
            OutputOrder::Bucket => OutputOrder::Input,
            OutputOrder::Input => OutputOrder::Bucket,
        }
    }

    /// Where the weight of an input for a bucket stands.
    const fn index(self, (input, inputs): (usize, usize), (bucket, buckets): (usize, usize)) -> usize {
        match self {
            OutputOrder::Bucket => bucket * inputs + input,
            OutputOrder::Input => input * buckets + bucket,
        }
    }
}

/// The properties of the network that the file does not store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BulletLayout {
    pub activation: Activation,
    /// Number of output buckets, chosen by bullet's `MaterialCount` ([`BucketRule::Cpw`]).
    pub buckets: usize,
    /// Accumulator width; `None` derives it from the file's size.
    pub l1: Option<usize>,
    pub output_order: OutputOrder,
}

#[derive(Clone, Debug, Error, PartialEq)]
pub enum BulletError {
    #[error("the file has {size} bytes; bullet networks of up to {limit} are supported")]
    TooLarge { size: u64, limit: u64 },
    #[error(
        "no accumulator width gives {size} bytes with {features} features, {} and {buckets} output buckets; \
         is the file complete, and are the options right?",
        activation.name()
    )]
    Size { size: usize, features: u32, activation: Activation, buckets: usize },
    #[error("{size} bytes fit the accumulator widths {widths:?}; choose one with --l1")]
    Ambiguous { size: usize, widths: Vec<usize> },
    #[error(
        "byte {at}: the numbers for accumulators of {l1} end here, but bullet's padding does not follow; is the width \
         right?"
    )]
    Padding { at: usize, l1: usize },
    #[error("bullet's format has no hidden layers, no PSQT and only the bucket rule cpw; the network is {0}")]
    Shape(String),
    #[error(
        "bullet's format is of scheme `simple` with a pawn of {pawn}; the network is of {0}",
        pawn = Scheme::simple().pawn_value
    )]
    Scheme(String),
    #[error("bucket {bucket}: the output bias {bias} does not fit the i16 of bullet's format")]
    Bias { bucket: usize, bias: i32 },
}

/// Larger files are refused without reading them.
const MAX_FILE: u64 = 1 << 30;
const LINE: usize = 64;
const PADDING: &[u8] = b"bullet";

/// Loads a file whose network has the features of `set`.
///
/// # Errors
/// When the file cannot be read, its size fits no network of that layout, or a weight is too large for the scheme.
pub fn load(path: &Path, set: &FeatureSet, layout: BulletLayout) -> Result<(NetFile, OrderEvidence), NetError> {
    let read = |reason| NetError::Read { path: path.into(), reason };
    let invalid = |reason| NetError::Bullet { path: path.into(), reason };
    let file = File::open(path).map_err(read)?;
    let size = file.metadata().map_err(read)?.len();
    if size > MAX_FILE {
        return Err(invalid(BulletError::TooLarge { size, limit: MAX_FILE }));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(MAX_FILE).read_to_end(&mut bytes).map_err(read)?;
    let unreadable = |reason| other_kind(path, &bytes).unwrap_or_else(|| invalid(reason));
    let shape = shape(&bytes, set.num_features(), layout).map_err(unreadable)?;
    let content = |reason| NetError::Content { path: path.into(), reason: Box::new(reason) };
    shape.validate().map_err(content)?;
    let net = parse(&bytes, shape, layout.output_order);
    for (bucket, stack) in net.stacks.iter().enumerate() {
        let checked = stack[0].check_weights(&format!("bucket {bucket}"), &net.scheme, net.shape.activation);
        checked.map_err(content)?;
    }
    let evidence = order_evidence(&net, layout.output_order);
    Ok((NetFile { origin: Origin::of(set), net }, evidence))
}

/// The order of the output weights, as far as they tell it themselves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OrderEvidence {
    /// There is one bucket, or the weights speak for the order in which they were read.
    Agrees,
    /// The weights speak for this other order.
    Contradicts(OutputOrder),
    Unknown,
}

/// A neuron's weights for two buckets in a row are similar in a trained network, while numbers that belong to different
/// neurons are not: the order in which neighbouring buckets correlate is the right one.
fn order_evidence(net: &QuantNet, order: OutputOrder) -> OrderEvidence {
    let buckets = net.stacks.len();
    if buckets == 1 {
        return OrderEvidence::Agrees;
    }
    let inputs = net.stacks[0][0].inputs;
    let read = |bucket: usize, input: usize| f64::from(net.stacks[bucket][0].weights[input]);
    // The weight that the other order would have read: the same place in the file.
    let otherwise = |bucket: usize, input: usize| {
        let place = order.other().index((input, inputs), (bucket, buckets));
        match order {
            OutputOrder::Bucket => read(place / inputs, place % inputs),
            OutputOrder::Input => read(place % buckets, place / buckets),
        }
    };
    let pairs = || (1..buckets).flat_map(|bucket| (0..inputs).map(move |input| (bucket, input)));
    let of = |weight: &dyn Fn(usize, usize) -> f64| {
        correlation(pairs().map(|(bucket, input)| (weight(bucket - 1, input), weight(bucket, input))))
    };
    let here = of(&read);
    let there = of(&otherwise);
    // Five standard deviations of a correlation by chance, and clearly more than the other.
    let least = 0.1 + 5.0 / ((buckets - 1) as f64 * inputs as f64).sqrt();
    if here > least && here > 3.0 * there {
        OrderEvidence::Agrees
    } else if there > least && there > 3.0 * here {
        OrderEvidence::Contradicts(order.other())
    } else {
        OrderEvidence::Unknown
    }
}

/// Pearson's correlation; 0 if either side is constant.
fn correlation(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut sums = [0.0; 6];
    for (x, y) in pairs {
        for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, y * y, x * y]) {
            *sum += term;
        }
    }
    let [count, x, y, xx, yy, xy] = sums;
    let spread = (count * xx - x * x) * (count * yy - y * y);
    if spread > 0.0 { (count * xy - x * y) / spread.sqrt() } else { 0.0 }
}

/// Writes the file atomically.
///
/// # Errors
/// When bullet's format does not support the network, or the file cannot be written.
pub fn save(path: &Path, net: &QuantNet) -> Result<(), NetError> {
    let bytes = bytes(net).map_err(|reason| NetError::Bullet { path: path.into(), reason })?;
    let mut file = OutputFile::create(path)?;
    file.put(&bytes)?;
    Ok(file.finish()?)
}

/// The shape whose numbers and padding make up the file.
fn shape(bytes: &[u8], features: u32, layout: BulletLayout) -> Result<Shape, BulletError> {
    let BulletLayout { activation, buckets, l1, .. } = layout;
    let size = bytes.len();
    let shape = |l1| Shape {
        activation,
        buckets: OutputBuckets { count: buckets, rule: BucketRule::Cpw },
        ..Shape::plain(features, l1, vec![])
    };
    let no_width = BulletError::Size { size, features, activation, buckets };
    let per_neuron = 2 * (features as usize + 1 + buckets * activation.outputs(2));
    let largest = size.saturating_sub(2 * buckets) / per_neuron;
    let fits =
        |l1: &usize| *l1 > 0 && numbers(&shape(*l1)).is_some_and(|count| (2 * count).next_multiple_of(LINE) == size);
    // At most a line is padding.
    let widths: Vec<usize> = (largest.saturating_sub(LINE)..=largest).filter(fits).collect();
    let width = match (l1, &widths[..]) {
        (Some(l1), _) if fits(&l1) => l1,
        (None, [width]) => *width,
        (Some(_), _) | (None, []) => return Err(no_width),
        (None, _) => return Err(BulletError::Ambiguous { size, widths }),
    };
    let shape = shape(width);
    let at = 2 * numbers(&shape).ok_or(no_width)?;
    if bytes[at..].iter().zip(PADDING.iter().cycle()).all(|(found, expected)| found == expected) {
        Ok(shape)
    } else {
        Err(BulletError::Padding { at, l1: width })
    }
}

/// The number of numbers of a network; `None` if a pairwise width is odd or no file could be that long.
fn numbers(shape: &Shape) -> Option<usize> {
    let Shape { features, l1, activation, buckets, .. } = shape;
    if *activation == Activation::Pairwise && l1 % 2 == 1 {
        return None;
    }
    let transformer = l1.checked_mul(*features as usize + 1)?;
    buckets
        .count
        .checked_mul(2 * activation.outputs(*l1) + 1)?
        .checked_add(transformer)
        .filter(|count| *count < 1 << 40)
}

/// Reads the network from at least as many bytes as `shape` needs.
fn parse(bytes: &[u8], shape: Shape, order: OutputOrder) -> QuantNet {
    let (pairs, _) = bytes.as_chunks::<2>();
    let mut numbers = pairs.iter().map(|pair| i16::from_le_bytes(*pair));
    let mut take = |count: usize| -> Vec<i16> { numbers.by_ref().take(count).collect() };
    let ft_weights = take(shape.features as usize * shape.l1);
    let ft_biases = take(shape.l1);
    let inputs = 2 * shape.activation.outputs(shape.l1);
    let buckets = shape.buckets.count;
    let outputs = take(inputs * buckets);
    let of_bucket =
        |bucket| (0..inputs).map(|input| outputs[order.index((input, inputs), (bucket, buckets))]).collect();
    let weights: Vec<Vec<i16>> = (0..buckets).map(of_bucket).collect();
    let biases = take(buckets);
    let layer = |(weights, bias): (Vec<i16>, &i16)| {
        vec![QuantDense { inputs, outputs: 1, weights, biases: vec![i32::from(*bias)] }]
    };
    let stacks = weights.into_iter().zip(&biases).map(layer).collect();
    QuantNet { shape, scheme: Scheme::simple(), ft_weights, ft_biases, psqt_weights: Vec::new(), stacks }
}

fn bytes(net: &QuantNet) -> Result<Vec<u8>, BulletError> {
    let shape = &net.shape;
    let rule = shape.buckets.count == 1 || shape.buckets.rule == BucketRule::Cpw;
    if !shape.hidden.is_empty() || shape.psqt || !rule {
        return Err(BulletError::Shape(shape.to_string()));
    }
    if net.scheme != Scheme::simple() {
        let Scheme { name, pawn_value, .. } = &net.scheme;
        return Err(BulletError::Scheme(format!("{name}, a pawn being {pawn_value}")));
    }
    let biases = net.stacks.iter().enumerate().map(|(bucket, stack)| {
        let bias = stack[0].biases[0];
        i16::try_from(bias).map_err(|_| BulletError::Bias { bucket, bias })
    });
    let biases = biases.collect::<Result<Vec<i16>, _>>()?;
    let mut parts = vec![&net.ft_weights, &net.ft_biases];
    parts.extend(net.stacks.iter().map(|stack| &stack[0].weights));
    parts.push(&biases);
    let mut bytes: Vec<u8> = Vec::new();
    for number in parts.into_iter().flatten() {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let missing = bytes.len().next_multiple_of(LINE) - bytes.len();
    bytes.extend(PADDING.iter().cycle().take(missing));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::forward_integer;
    use super::*;

    fn set() -> FeatureSet {
        FeatureSet::resolve("file(P) * rank(P) for P in pieces").expect("a definition")
    }

    fn net(activation: Activation, buckets: usize, l1: usize) -> QuantNet {
        let buckets = OutputBuckets { count: buckets, rule: BucketRule::Cpw };
        let shape = Shape { activation, buckets, ..Shape::plain(64, l1, vec![]) };
        let count = numbers(&shape).expect("small");
        let bytes: Vec<u8> = (0..count).flat_map(|n| ((n * 31 % 201) as i16 - 100).to_le_bytes()).collect();
        parse(&bytes, shape, OutputOrder::Bucket)
    }

    #[test]
    fn numbers_are_laid_out_as_by_bullet() {
        let net = net(Activation::Screlu, 2, 3);
        let bytes = bytes(&net).expect("one of bullet's");
        let number = |at: usize| i16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        assert_eq!(number(3 * 5 + 1), net.ft_weights[3 * 5 + 1]);
        assert_eq!(number(3 * 64 + 2), net.ft_biases[2]);
        assert_eq!(number(3 * 65 + 6 + 4), net.stacks[1][0].weights[4]);
        assert_eq!(i32::from(number(3 * 65 + 12 + 1)), net.stacks[1][0].biases[0]);
        assert_eq!((bytes.len(), &bytes[2 * 209..][..8]), (448, &b"bulletbu"[..]));
        // (16,320·2 of a bias) · 400 / (255·64)
        assert_eq!(Scheme::simple().internal_score(2 * 255 * 64), 800);
    }

    #[test]
    fn files_round_trip() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("quantised.bin");
        for (activation, buckets, l1) in [
            (Activation::Screlu, 1, 3),
            (Activation::Crelu, 8, 5),
            (Activation::Pairwise, 4, 6),
            (Activation::Relu, 1, 64),
        ] {
            let net = net(activation, buckets, l1);
            save(&path, &net).expect("saved");
            let layout = BulletLayout { activation, buckets, l1: None, output_order: OutputOrder::Bucket };
            let (back, _) = load(&path, &set(), layout).expect("loads");
            assert_eq!(back.net, net);
            assert_eq!(load(&path, &set(), BulletLayout { l1: Some(l1), ..layout }).expect("loads").0, back);
            assert!(load(&path, &set(), BulletLayout { l1: Some(l1 + 2), ..layout }).is_err());
            assert_eq!(forward_integer(&back.net, 0, &[1, 2], &[3]), forward_integer(&net, 0, &[1, 2], &[3]));
        }
    }

    /// The same network in both orders, with buckets that are alike and buckets that are not.
    #[test]
    fn both_orders_of_the_output_weights_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("quantised.bin");
        let mut net = net(Activation::Screlu, 8, 16);
        let check = |net: &QuantNet, expected: fn(OutputOrder, OutputOrder) -> OrderEvidence| {
            for stored in [OutputOrder::Bucket, OutputOrder::Input] {
                let mut in_order = net.clone();
                for (place, weight) in net.stacks.iter().flat_map(|stack| &stack[0].weights).enumerate() {
                    let place = stored.index((place % 32, 32), (place / 32, 8));
                    in_order.stacks[place / 32][0].weights[place % 32] = *weight;
                }
                save(&path, &in_order).expect("saved");
                for read in [OutputOrder::Bucket, OutputOrder::Input] {
                    let layout =
                        BulletLayout { activation: Activation::Screlu, buckets: 8, l1: None, output_order: read };
                    let (file, evidence) = load(&path, &set(), layout).expect("loads");
                    assert_eq!(file.net == *net, read == stored);
                    assert_eq!(evidence, expected(stored, read), "{stored:?} read as {read:?}");
                }
            }
        };
        let weight = |number: usize| ((number * number * 7919 + number * 31) % 241) as i16 - 120;
        for (bucket, stack) in net.stacks.iter_mut().enumerate() {
            stack[0].weights = (0..32).map(|input| weight(bucket * 32 + input)).collect();
        }
        check(&net, |_, _| OrderEvidence::Unknown);
        for (bucket, stack) in net.stacks.iter_mut().enumerate() {
            stack[0].weights = (0..32).map(|input| weight(input) / 2 + weight(bucket * 32 + input) / 8).collect();
        }
        check(
            &net,
            |stored, read| if stored == read { OrderEvidence::Agrees } else { OrderEvidence::Contradicts(stored) },
        );
    }

    /// A file that is cut anywhere is refused.
    #[test]
    fn broken_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("quantised.bin");
        let output_order = OutputOrder::Bucket;
        let layout = BulletLayout { activation: Activation::Screlu, buckets: 1, l1: None, output_order };
        let net = net(Activation::Screlu, 1, 5);
        let whole = bytes(&net).expect("one of bullet's");
        let check = |bytes: &[u8], layout: BulletLayout, expected: &str| {
            std::fs::write(&path, bytes).expect("written");
            let error = load(&path, &set(), layout).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        for length in 0..whole.len() {
            check(&whole[..length], layout, "quantised.bin");
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().expect("bytes") ^= 1;
        check(&damaged, layout, "bullet's padding does not follow");
        check(&whole, BulletLayout { buckets: 33, ..layout }, "with 64 features, screlu and 33 output buckets");
        check(&whole, BulletLayout { l1: Some(usize::MAX / 2), ..layout }, "no accumulator width gives");
        let mut heavy = net.clone();
        heavy.stacks[0][0].weights[7] = 129;
        check(&bytes(&heavy).expect("bytes"), layout, "the integer weight of neuron 0, input 7 is 129, outside ±128");
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 33)).expect("a sparse file");
        let error = load(&path, &set(), layout).expect_err("too large");
        assert!(
            matches!(error, NetError::Bullet { reason: BulletError::TooLarge { size, .. }, .. } if size == 1 << 33)
        );
    }

    #[test]
    fn networks_that_the_format_does_not_support_are_refused() {
        let check = |change: fn(&mut QuantNet), expected: &str| {
            let mut net = net(Activation::Screlu, 1, 5);
            change(&mut net);
            let error = bytes(&net).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(|net| net.scheme = Scheme::stockfish(), "the network is of stockfish, a pawn being");
        check(|net| net.shape.psqt = true, "has no hidden layers, no PSQT");
        let by_file = |net: &mut QuantNet| {
            net.shape.buckets = OutputBuckets { count: 8, rule: BucketRule::Expression("file(K)".into()) };
        };
        check(by_file, "only the bucket rule cpw; the network is (64 → 5) × 2 screlu → 8 × (1), bucket by file(K)");
        check(|net| net.stacks[0][0].biases[0] = 40_000, "the output bias 40000 does not fit");
    }
}
