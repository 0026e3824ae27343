//! The shape of a network: widths, activations, output buckets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NetError;

/// The function between two layers.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// max(x, 0); not supported after hidden layers
    Relu,
    /// clamp(x, 0, 1)
    #[default]
    Crelu,
    /// clamp(x, 0, 1)²
    Screlu,
    /// Accumulators only: the clipped first half times the clipped second half; halves the number of values.
    Pairwise,
    /// Hidden layers only, the first one unless the shape is `concatenated`: min(x², 1) of every value, then
    /// clamp(x, 0, 1) of every value; doubles the number of values.
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

    /// Whether the activations of accumulators are products of two clipped values.
    #[must_use]
    pub const fn multiplies(self) -> bool {
        matches!(self, Activation::Screlu | Activation::Pairwise)
    }

    /// The number of activations of `width` values.
    #[must_use]
    pub const fn outputs(self, width: usize) -> usize {
        match self {
            Activation::Relu | Activation::Crelu | Activation::Screlu => width,
            Activation::Pairwise => width / 2,
            Activation::Dual => 2 * width,
        }
    }
}

/// The rule that chooses a position's stack of dense layers, by its number of pieces n or by an expression. Files and
/// options hold its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BucketRule {
    /// (n − 1) / 4, as in Stockfish.
    #[default]
    Stockfish,
    /// (n − 2) / ⌈32 / buckets⌉, as in the Chess Programming Wiki.
    Cpw,
    /// [`FeatureSet::bucket_expression`](crate::features::FeatureSet::bucket_expression) of the network's set, as the
    /// side to move sees it.
    Expression(String),
}

impl BucketRule {
    /// The expression, if the rule is one.
    #[must_use]
    pub fn expression(&self) -> Option<&str> {
        match self {
            BucketRule::Expression(expression) => Some(expression),
            BucketRule::Stockfish | BucketRule::Cpw => None,
        }
    }
}

impl From<String> for BucketRule {
    fn from(text: String) -> BucketRule {
        match text.as_str() {
            "stockfish" => BucketRule::Stockfish,
            "cpw" => BucketRule::Cpw,
            _ => BucketRule::Expression(text),
        }
    }
}

impl From<BucketRule> for String {
    fn from(rule: BucketRule) -> String {
        rule.to_string()
    }
}

impl fmt::Display for BucketRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BucketRule::Stockfish => "stockfish",
            BucketRule::Cpw => "cpw",
            BucketRule::Expression(expression) => expression,
        })
    }
}

/// The number of output buckets and the rule that chooses one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputBuckets {
    /// Number of output buckets.
    pub count: usize,
    /// `stockfish`, `cpw` or an expression of the definition language.
    #[schemars(with = "String")]
    pub rule: BucketRule,
}

impl Default for OutputBuckets {
    fn default() -> Self {
        OutputBuckets { count: 1, rule: BucketRule::Stockfish }
    }
}

impl OutputBuckets {
    /// The bucket for a number of pieces or, if the rule is an expression, for its value; always below `count`.
    #[must_use]
    pub fn of(&self, input: usize) -> usize {
        let bucket = match self.rule {
            BucketRule::Stockfish => input.saturating_sub(1) / 4,
            BucketRule::Cpw => input.saturating_sub(2) / 32usize.div_ceil(self.count.max(1)),
            BucketRule::Expression(_) => input,
        };
        bucket.min(self.count.saturating_sub(1))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `(features → l1) × 2 → hidden… → 1`.
///
/// ```
/// use fsbench::net::{Activation, Shape};
///
/// let shape = Shape { activation: Activation::Screlu, ..Shape::plain(768, 256, vec![]) };
/// assert_eq!(shape.to_string(), "(768 → 256) × 2 screlu → 1");
/// assert_eq!(shape.layer_sizes(), [(512, 1)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Inputs per perspective.
    pub features: u32,
    /// Accumulator width per perspective.
    pub l1: usize,
    /// Widths of the hidden layers, first to last, without the skip output; at most two.
    pub hidden: Vec<usize>,
    /// Between the accumulators and the first dense layer.
    pub activation: Activation,
    /// After the first hidden layer. The second one has the same if this is relu or screlu or the layers are
    /// `concatenated`, else crelu.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden_activation: Activation,
    /// Whether the first hidden layer has one more output, which is added to the network's output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip: bool,
    /// Whether the first hidden layer's last output but one, minus its last output, is added to the network's output.
    /// Both are activated as the others, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip_difference: bool,
    /// Whether the output layer reads the activations of every hidden layer, first to last, not only of the last one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub concatenated: bool,
    /// The feature transformer's weights of features below this have eight bits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub narrow: u32,
    /// Whether every feature has a PSQT value per bucket; (stm − nstm) / 2 of their sums is added to the output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub psqt: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub buckets: OutputBuckets,
}

impl Shape {
    const MAX_WIDTH: usize = 1 << 16;
    const MAX_BUCKETS: usize = 32;

    /// A network with one stack and crelu throughout.
    #[must_use]
    pub fn plain(features: u32, l1: usize, hidden: Vec<usize>) -> Shape {
        Shape {
            features,
            l1,
            hidden,
            activation: Activation::Crelu,
            hidden_activation: Activation::Crelu,
            skip: false,
            skip_difference: false,
            concatenated: false,
            narrow: 0,
            psqt: false,
            buckets: OutputBuckets::default(),
        }
    }

    /// Columns per feature: the neurons, then one PSQT value per bucket if the shape has PSQT outputs.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.l1 + if self.psqt { self.buckets.count } else { 0 }
    }

    /// Names and dimensions of a float network's tensors: the feature transformer's, then each bucket's layers'.
    #[must_use]
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut tensors =
            vec![("ft.weight".into(), vec![self.features as usize, self.row_len()]), ("ft.bias".into(), vec![self.l1])];
        for bucket in 0..self.buckets.count {
            for (index, (inputs, outputs)) in self.layer_sizes().into_iter().enumerate() {
                let name = self.layer_name(bucket, index);
                tensors.push((format!("{name}.weight"), vec![outputs, inputs]));
                tensors.push((format!("{name}.bias"), vec![outputs]));
            }
        }
        tensors
    }

    /// A dense layer's name in files: `layers.N`, or `stacks.BUCKET.layers.N` if there are several buckets.
    #[must_use]
    pub fn layer_name(&self, bucket: usize, index: usize) -> String {
        match self.buckets.count {
            1 => format!("layers.{index}"),
            _ => format!("stacks.{bucket}.layers.{index}"),
        }
    }

    /// (inputs, outputs) of the dense layers of a stack, from the first hidden layer to the output.
    #[must_use]
    pub fn layer_sizes(&self) -> Vec<(usize, usize)> {
        let mut inputs = 2 * self.activation.outputs(self.l1);
        let mut layers = Vec::with_capacity(self.hidden.len() + 1);
        for (index, width) in self.hidden.iter().enumerate() {
            layers.push((inputs, width + usize::from(self.skip && index == 0)));
            inputs = self.hidden_activation(index).outputs(*width);
        }
        if self.concatenated {
            inputs = self.activation_widths()[1..].iter().sum();
        }
        layers.push((inputs, 1));
        layers
    }

    /// The outputs of the first hidden layer that are added to the network's output, and subtracted.
    #[must_use]
    pub fn skip_outputs(&self) -> Option<(usize, Option<usize>)> {
        let width = *self.hidden.first()?;
        match (self.skip, self.skip_difference) {
            (true, _) => Some((width, None)),
            (false, true) => Some((width - 2, Some(width - 1))),
            (false, false) => None,
        }
    }

    /// The activation after a hidden layer.
    #[must_use]
    pub fn hidden_activation(&self, index: usize) -> Activation {
        match (index, self.hidden_activation) {
            (0, activation) | (_, activation @ (Activation::Relu | Activation::Screlu)) => activation,
            (_, activation) if self.concatenated => activation,
            _ => Activation::Crelu,
        }
    }

    /// The activation before a dense layer.
    #[must_use]
    pub fn input_activation(&self, layer: usize) -> Activation {
        match layer {
            0 => self.activation,
            _ => self.hidden_activation(layer - 1),
        }
    }

    /// Numbers of activations: of one accumulator, then of each hidden layer.
    #[must_use]
    pub fn activation_widths(&self) -> Vec<usize> {
        let hidden = self.hidden.iter().enumerate().map(|(index, width)| self.hidden_activation(index).outputs(*width));
        std::iter::once(self.activation.outputs(self.l1)).chain(hidden).collect()
    }

    /// # Errors
    /// When there are no features or neurons, more than two hidden layers or 32 buckets, a width above 65,536, or an
    /// activation in a place that does not support it.
    pub fn validate(&self) -> Result<(), NetError> {
        let invalid = |reason: String| Err(NetError::Shape(reason));
        let is_valid = |width: usize| (1..=Self::MAX_WIDTH).contains(&width);
        if self.features == 0 {
            return invalid("a network needs at least one feature".into());
        }
        if !is_valid(self.l1) {
            return invalid(format!("an accumulator is 1 to {} wide, not {}", Self::MAX_WIDTH, self.l1));
        }
        if self.hidden.len() > 2 {
            return invalid(format!("at most two hidden layers, not {}", self.hidden.len()));
        }
        if let Some(width) = self.hidden.iter().find(|width| !is_valid(**width)) {
            return invalid(format!("a hidden layer is 1 to {} wide, not {width}", Self::MAX_WIDTH));
        }
        if !(1..=Self::MAX_BUCKETS).contains(&self.buckets.count) {
            return invalid(format!("1 to {} output buckets, not {}", Self::MAX_BUCKETS, self.buckets.count));
        }
        let of_hidden = [
            (self.skip, "a skip output"),
            (self.skip_difference, "a skip difference"),
            (self.concatenated, "concatenation"),
        ];
        if let (true, Some((_, what))) = (self.hidden.is_empty(), of_hidden.iter().find(|(is_used, _)| *is_used)) {
            return invalid(format!("{what} needs a hidden layer"));
        }
        if self.skip && self.skip_difference {
            return invalid("skip and skip difference cannot stand together".into());
        }
        if self.skip_difference && self.hidden.first() < Some(&2) {
            return invalid("a skip difference needs two outputs of the first hidden layer".into());
        }
        if self.narrow > self.features {
            return invalid(format!("{} narrow features of {}", self.narrow, self.features));
        }
        match (self.activation, self.hidden_activation) {
            (Activation::Dual, _) => invalid("dual is an activation of hidden layers, not of accumulators".into()),
            (_, Activation::Pairwise) => {
                invalid("pairwise is an activation of accumulators, not of hidden layers".into())
            }
            (Activation::Pairwise, _) if !self.l1.is_multiple_of(2) => {
                invalid(format!("pairwise halves the accumulator: {} is odd", self.l1))
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
            if index == 0 && self.skip_difference {
                f.write_str(" with skip difference")?;
            }
            if self.hidden_activation(index) != Activation::Crelu {
                write!(f, ", {}", self.hidden_activation(index).name())?;
            }
            f.write_str(" → ")?;
        }
        if self.concatenated {
            f.write_str("all → ")?;
        }
        f.write_str(if stacks { "1)" } else { "1" })?;
        match self.buckets.rule.expression() {
            Some(expression) => write!(f, ", bucket by {expression}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;
    use crate::json;

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
            let expected = format!("invalid network shape: {expected}");
            assert_eq!(shape.validate().expect_err("wrong").to_string(), expected);
        };
        assert!(shape(768, 256, &[32, 32]).validate().is_ok() && full().validate().is_ok());
        check(shape(0, 256, &[]), "a network needs at least one feature");
        check(shape(1, 0, &[]), "an accumulator is 1 to 65536 wide, not 0");
        check(shape(1, 8, &[1, 1, 1]), "at most two hidden layers, not 3");
        check(shape(1, 8, &[1, 0]), "a hidden layer is 1 to 65536 wide, not 0");
        check(Shape { l1: 7, ..full() }, "pairwise halves the accumulator: 7 is odd");
        check(Shape { hidden: vec![], ..full() }, "a skip output needs a hidden layer");
        check(
            Shape { skip: false, concatenated: true, hidden: vec![], ..full() },
            "concatenation needs a hidden layer",
        );
        check(Shape { skip_difference: true, ..full() }, "skip and skip difference cannot stand together");
        check(
            Shape { skip_difference: true, ..shape(1, 8, &[1]) },
            "a skip difference needs two outputs of the first hidden layer",
        );
        check(Shape { narrow: 9, ..shape(1, 8, &[1]) }, "9 narrow features of 1");
        let buckets = OutputBuckets { count: 33, rule: BucketRule::Cpw };
        check(Shape { buckets, ..full() }, "1 to 32 output buckets, not 33");
        let activation = Activation::Dual;
        check(Shape { activation, ..full() }, "dual is an activation of hidden layers, not of accumulators");
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
        let v16 = Shape { skip: false, skip_difference: true, concatenated: true, hidden: vec![32, 32], ..full() };
        assert_eq!(v16.layer_sizes(), [(1024, 32), (64, 32), (128, 1)]);
        assert_eq!(v16.activation_widths(), [512, 64, 64]);
        let text = "(22528 → 1024) × 2 pairwise + 8 psqt → 8 × (32 with skip difference, dual → 32, dual → all → 1)";
        assert_eq!(v16.to_string(), text);
        let tensors = plain.tensors();
        assert_eq!(tensors[0], ("ft.weight".into(), vec![768, 256]));
        assert_eq!(tensors[7], ("layers.2.bias".into(), vec![1]));
        assert_eq!(full().tensors()[2 + 7 * 6], ("stacks.7.layers.0.weight".into(), vec![16, 1024]));
    }

    #[test]
    fn buckets_by_piece_count() {
        let check = |count, rule, pieces: [usize; 5], expected: [usize; 5]| {
            let buckets = OutputBuckets { count, rule };
            assert_eq!(pieces.map(|pieces| buckets.of(pieces)), expected, "{buckets:?}");
        };
        check(8, BucketRule::Stockfish, [2, 4, 5, 6, 32], [0, 0, 1, 1, 7]);
        check(8, BucketRule::Cpw, [2, 5, 6, 31, 32], [0, 0, 1, 7, 7]);
        check(5, BucketRule::Cpw, [2, 8, 9, 30, 32], [0, 0, 1, 4, 4]);
        check(1, BucketRule::Stockfish, [2, 5, 6, 31, 32], [0; 5]);
    }

    /// The header of a plain network has no fields of later shapes.
    /// Files and the keys of stored trainings hold the text.
    #[test]
    fn bucket_rules_are_stored_as_text() {
        let check = |rule: BucketRule, expected: &str| {
            let buckets = OutputBuckets { count: 8, rule };
            assert_eq!(json::to_text(&buckets).expect("plain"), expected);
            assert_eq!(json::from_text::<OutputBuckets>(expected).expect("the same"), buckets);
        };
        check(BucketRule::Stockfish, r#"{"count":8,"rule":"stockfish"}"#);
        check(BucketRule::Cpw, r#"{"count":8,"rule":"cpw"}"#);
        check(BucketRule::Expression("file(K)".into()), r#"{"count":8,"rule":"file(K)"}"#);
        let rule = BucketRule::Expression("file(K)".into());
        let shape = Shape { buckets: OutputBuckets { count: 8, rule }, ..shape(768, 16, &[8]) };
        assert_eq!(shape.to_string(), "(768 → 16) × 2 → 8 × (8 → 1), bucket by file(K)");
    }

    #[test]
    fn header_format_is_stable() {
        let json = r#"{"features":7,"l1":3,"hidden":[2],"activation":"crelu"}"#;
        let read: Shape = json::from_text(json).expect("a shape");
        assert_eq!(read, shape(7, 3, &[2]));
        assert_eq!(json::to_text(&read).expect("written"), json);
        let text = json::to_text(&full()).expect("written");
        assert_eq!(json::from_text::<Shape>(&text).expect("a shape"), full());
    }
}
