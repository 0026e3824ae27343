//! What a network looks like: widths, activations, output buckets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::NetError;

/// Function between two layers. Values are in the scheme's scale, where `one` is 1.0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// max(x, 0); no scheme has integers for it after a hidden layer
    Relu,
    /// clamp(x, 0, 1)
    #[default]
    Crelu,
    /// clamp(x, 0, 1)², the product rounded down
    Screlu,
    /// Accumulators only: the first half clipped times the second half clipped; half as many values come out.
    Pairwise,
    /// The first hidden layer only: min(x², 1) of every value, then clamp(x, 0, 1) of every value; twice as many come out.
    Dual,
}

impl Activation {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Activation::Relu => "relu",
            Activation::Crelu => "crelu",
            Activation::Screlu => "screlu",
            Activation::Pairwise => "pairwise",
            Activation::Dual => "dual",
        }
    }

    /// Whether every value that comes out of accumulators is a product of two clipped ones.
    #[must_use]
    pub const fn multiplies(self) -> bool {
        matches!(self, Activation::Screlu | Activation::Pairwise)
    }

    /// How many values come out for `width` that go in.
    #[must_use]
    pub const fn outputs(self, width: usize) -> usize {
        match self {
            Activation::Relu | Activation::Crelu | Activation::Screlu => width,
            Activation::Pairwise => width / 2,
            Activation::Dual => 2 * width,
        }
    }
}

/// Which stack of dense layers a position goes through, by the number of its pieces n.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BucketRule {
    /// (n − 1) / 4, as in Stockfish.
    #[default]
    Stockfish,
    /// (n − 2) / ⌈32 / buckets⌉, as the chess programming wiki has it.
    Cpw,
}

/// Output buckets: how many, and how one is chosen.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputBuckets {
    pub count: usize,
    #[serde(default)]
    pub rule: BucketRule,
}

impl Default for OutputBuckets {
    fn default() -> Self {
        OutputBuckets { count: 1, rule: BucketRule::Stockfish }
    }
}

impl OutputBuckets {
    /// The bucket of a position with that many pieces; always below `count`.
    #[must_use]
    pub fn of(self, pieces: usize) -> usize {
        let bucket = match self.rule {
            BucketRule::Stockfish => pieces.saturating_sub(1) / 4,
            BucketRule::Cpw => pieces.saturating_sub(2) / 32usize.div_ceil(self.count.max(1)),
        };
        bucket.min(self.count.saturating_sub(1))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `(features → l1) × 2 → hidden… → 1`, as in DESIGN's network grammar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Inputs a perspective.
    pub features: u32,
    /// Accumulator width a perspective.
    pub l1: usize,
    /// Widths of the hidden layers as their successors see them, first to last; none to two.
    pub hidden: Vec<usize>,
    /// Between the accumulators and the first dense layer.
    #[serde(default)]
    pub activation: Activation,
    /// After the first hidden layer. After a second one stand relu and screlu too, else crelu.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden_activation: Activation,
    /// Whether the first hidden layer has one more output, which is added to the network's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: bool,
    /// Whether every feature has a value a bucket that is added as (stm − nstm) / 2.
    #[serde(default, skip_serializing_if = "is_default")]
    pub psqt: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub buckets: OutputBuckets,
}

impl Shape {
    const MAX_WIDTH: usize = 1 << 16;
    const MAX_BUCKETS: usize = 32;

    /// One stack, crelu everywhere, nothing else.
    #[must_use]
    pub fn plain(features: u32, l1: usize, hidden: Vec<usize>) -> Shape {
        Shape {
            features,
            l1,
            hidden,
            activation: Activation::Crelu,
            hidden_activation: Activation::Crelu,
            skip: false,
            psqt: false,
            buckets: OutputBuckets::default(),
        }
    }

    /// Columns of a feature's row: neurons, then one PSQT value a bucket where the shape has them.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.l1 + if self.psqt { self.buckets.count } else { 0 }
    }

    /// Names and dimensions of a float network's arrays: the feature transformer's, then those of every bucket's layers.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let ft =
            [("ft.weight".into(), vec![self.features as usize, self.row_len()]), ("ft.bias".into(), vec![self.l1])];
        let layers = (0..self.buckets.count).flat_map(|bucket| {
            self.layer_sizes().into_iter().enumerate().flat_map(move |(index, (inputs, outputs))| {
                let name = self.layer_name(bucket, index);
                [(format!("{name}.weight"), vec![outputs, inputs]), (format!("{name}.bias"), vec![outputs])]
            })
        });
        ft.into_iter().chain(layers).collect()
    }

    /// A dense layer's name in files: `layers.N`, or `stacks.BUCKET.layers.N` where there are several buckets.
    #[must_use]
    pub fn layer_name(&self, bucket: usize, index: usize) -> String {
        match self.buckets.count {
            1 => format!("layers.{index}"),
            _ => format!("stacks.{bucket}.layers.{index}"),
        }
    }

    /// (inputs, outputs) of every dense layer of a stack, the first hidden to the output.
    #[must_use]
    pub fn layer_sizes(&self) -> Vec<(usize, usize)> {
        let mut inputs = 2 * self.activation.outputs(self.l1);
        let mut layers = Vec::with_capacity(self.hidden.len() + 1);
        for (index, width) in self.hidden.iter().enumerate() {
            layers.push((inputs, width + usize::from(self.skip && index == 0)));
            inputs = self.hidden_activation(index).outputs(*width);
        }
        layers.push((inputs, 1));
        layers
    }

    /// After the hidden layer of that index.
    #[must_use]
    pub fn hidden_activation(&self, index: usize) -> Activation {
        match (index, self.hidden_activation) {
            (0, activation) | (_, activation @ (Activation::Relu | Activation::Screlu)) => activation,
            _ => Activation::Crelu,
        }
    }

    /// Before the dense layer of that index.
    #[must_use]
    pub fn input_activation(&self, layer: usize) -> Activation {
        match layer {
            0 => self.activation,
            _ => self.hidden_activation(layer - 1),
        }
    }

    /// Values that go into every dense layer: one perspective's of the accumulators, then those of the hidden layers.
    #[must_use]
    pub fn activation_widths(&self) -> Vec<usize> {
        let hidden = self.hidden.iter().enumerate().map(|(index, width)| self.hidden_activation(index).outputs(*width));
        std::iter::once(self.activation.outputs(self.l1)).chain(hidden).collect()
    }

    /// # Errors
    /// When there are no features or neurons, more than two hidden layers or 32 buckets, a width beyond 65,536, or an
    /// activation where it cannot stand.
    pub fn validate(&self) -> Result<(), NetError> {
        let wrong = |why: String| Err(NetError::Shape(why));
        let layer = |width: usize| (1..=Self::MAX_WIDTH).contains(&width);
        if self.features == 0 {
            return wrong("a network needs at least one feature".into());
        }
        if !layer(self.l1) {
            return wrong(format!("an accumulator is 1 to {} wide, not {}", Self::MAX_WIDTH, self.l1));
        }
        if self.hidden.len() > 2 {
            return wrong(format!("at most two hidden layers, not {}", self.hidden.len()));
        }
        if let Some(width) = self.hidden.iter().find(|width| !layer(**width)) {
            return wrong(format!("a hidden layer is 1 to {} wide, not {width}", Self::MAX_WIDTH));
        }
        if !(1..=Self::MAX_BUCKETS).contains(&self.buckets.count) {
            return wrong(format!("1 to {} output buckets, not {}", Self::MAX_BUCKETS, self.buckets.count));
        }
        if self.skip && self.hidden.is_empty() {
            return wrong("a skip output needs a hidden layer".into());
        }
        match (self.activation, self.hidden_activation) {
            (Activation::Dual, _) => wrong("dual stands after a hidden layer, not after the accumulators".into()),
            (_, Activation::Pairwise) => {
                wrong("pairwise stands after the accumulators, not after a hidden layer".into())
            }
            (Activation::Pairwise, _) if !self.l1.is_multiple_of(2) => {
                wrong(format!("pairwise halves the accumulator: {} is odd", self.l1))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Shape {
    /// As `(768 → 256) × 2 → 32 → 1`, or `(22528 → 1024) × 2 pairwise + 8 psqt → 8 × (15 + 1 skip, dual → 32 → 1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} → {}) × 2", self.features, self.l1)?;
        if self.activation != Activation::Crelu {
            write!(f, " {}", self.activation.name())?;
        }
        if self.psqt {
            write!(f, " + {} psqt", self.buckets.count)?;
        }
        let stacks = self.buckets.count > 1;
        f.write_str(" → ")?;
        if stacks {
            write!(f, "{} × (", self.buckets.count)?;
        }
        for (index, width) in self.hidden.iter().enumerate() {
            write!(f, "{width}")?;
            if index == 0 && self.skip {
                f.write_str(" + 1 skip")?;
            }
            if self.hidden_activation(index) != Activation::Crelu {
                write!(f, ", {}", self.hidden_activation(index).name())?;
            }
            f.write_str(" → ")?;
        }
        f.write_str(if stacks { "1)" } else { "1" })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;

    /// Stockfish 15.1's.
    fn full() -> Shape {
        Shape {
            activation: Activation::Pairwise,
            hidden_activation: Activation::Dual,
            skip: true,
            psqt: true,
            buckets: OutputBuckets { count: 8, rule: BucketRule::Stockfish },
            ..shape(22_528, 1024, &[15, 32])
        }
    }

    #[test]
    fn shapes_are_checked() {
        let check = |shape: Shape, expected: &str| {
            let expected = format!("the network's shape is wrong: {expected}");
            assert_eq!(shape.validate().expect_err("wrong").to_string(), expected);
        };
        assert!(shape(768, 256, &[32, 32]).validate().is_ok() && full().validate().is_ok());
        check(shape(0, 256, &[]), "a network needs at least one feature");
        check(shape(1, 0, &[]), "an accumulator is 1 to 65536 wide, not 0");
        check(shape(1, 8, &[1, 1, 1]), "at most two hidden layers, not 3");
        check(shape(1, 8, &[1, 0]), "a hidden layer is 1 to 65536 wide, not 0");
        check(Shape { l1: 7, ..full() }, "pairwise halves the accumulator: 7 is odd");
        check(Shape { hidden: vec![], ..full() }, "a skip output needs a hidden layer");
        let buckets = OutputBuckets { count: 33, rule: BucketRule::Cpw };
        check(Shape { buckets, ..full() }, "1 to 32 output buckets, not 33");
        let activation = Activation::Dual;
        check(Shape { activation, ..full() }, "dual stands after a hidden layer, not after the accumulators");
    }

    #[test]
    fn layers_follow_from_the_shape() {
        let plain = shape(768, 256, &[32, 16]);
        assert_eq!(plain.layer_sizes(), [(512, 32), (32, 16), (16, 1)]);
        assert_eq!(shape(768, 256, &[]).layer_sizes(), [(512, 1)]);
        assert_eq!(full().layer_sizes(), [(1024, 16), (30, 32), (32, 1)]);
        assert_eq!(full().activation_widths(), [512, 30, 32]);
        assert_eq!(plain.to_string(), "(768 → 256) × 2 → 32 → 16 → 1");
        let text = "(22528 → 1024) × 2 pairwise + 8 psqt → 8 × (15 + 1 skip, dual → 32 → 1)";
        assert_eq!(full().to_string(), text);
        assert_eq!((plain.row_len(), full().row_len()), (256, 1032));
        let tensors = plain.tensors();
        assert_eq!(tensors[0], ("ft.weight".into(), vec![768, 256]));
        assert_eq!(tensors[7], ("layers.2.bias".into(), vec![1]));
        assert_eq!(full().tensors()[2 + 7 * 6], ("stacks.7.layers.0.weight".into(), vec![16, 1024]));
    }

    #[test]
    fn buckets_by_piece_count() {
        let check = |count, rule, pieces: [usize; 5], expected: [usize; 5]| {
            assert_eq!(pieces.map(|pieces| OutputBuckets { count, rule }.of(pieces)), expected, "{count} {rule:?}");
        };
        check(8, BucketRule::Stockfish, [2, 4, 5, 6, 32], [0, 0, 1, 1, 7]);
        check(8, BucketRule::Cpw, [2, 5, 6, 31, 32], [0, 0, 1, 7, 7]);
        check(5, BucketRule::Cpw, [2, 8, 9, 30, 32], [0, 0, 1, 4, 4]);
        check(1, BucketRule::Stockfish, [2, 5, 6, 31, 32], [0; 5]);
    }

    /// What a plain network's header says has not changed with what shapes can be.
    #[test]
    fn plain_headers_stay_as_they_were() {
        let json = r#"{"features":7,"l1":3,"hidden":[2],"activation":"crelu"}"#;
        let read: Shape = serde_json::from_str(json).expect("a shape");
        assert_eq!(read, shape(7, 3, &[2]));
        assert_eq!(serde_json::to_string(&read).expect("written"), json);
        let text = serde_json::to_string(&full()).expect("written");
        assert_eq!(serde_json::from_str::<Shape>(&text).expect("a shape"), full());
    }
}
