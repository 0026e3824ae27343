//! A network's shape, apart from the widths of its layers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::FeatureSet;
use crate::net::{Activation, BucketRule, NetError, OutputBuckets, Shape};

/// A network's shape apart from the widths of its layers
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeOptions {
    /// After the accumulators: relu, crelu, screlu or pairwise
    #[arg(long, value_enum, default_value_t)]
    pub activation: Activation,
    /// After the first hidden layer: crelu, screlu or dual; after the second, too, if it is screlu or the layers are
    /// concatenated, else crelu there
    #[arg(long, value_enum, default_value_t)]
    pub hidden_activation: Activation,
    /// Give the first hidden layer one more output, which is added to the network's
    #[arg(long)]
    pub skip: bool,
    /// Add the first hidden layer's last output but one, minus its last output, to the network's
    #[arg(long, conflicts_with = "skip")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_difference: bool,
    /// Let the output layer read the activations of every hidden layer, not only of the last one
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub concatenated: bool,
    /// Keep the feature transformer's weights of the first N features within eight bits, as Stockfish's files for
    /// threats have them
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(skip_serializing_if = "is_zero")]
    pub narrow: u32,
    /// Give every feature one value per bucket, which is added to the output as (stm − nstm) / 2
    #[arg(long)]
    pub psqt: bool,
    /// Output buckets: stacks of dense layers, one of which is chosen by the bucket rule; with an expression 1 stands
    /// for the number that it has
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub buckets: usize,
    /// What chooses a bucket: the number of pieces n, by stockfish: (n − 1) / 4 or cpw: (n − 2) / ⌈32 / N⌉; or an
    /// expression of the definition language with exactly one value in every position, seen by the side to move, as in
    /// "bucket(K, zones)" or "count(7 for P in pieces if role(P) != pawn)"
    #[arg(long, value_name = "RULE", default_value_t)]
    #[schemars(with = "String")]
    pub bucket_rule: BucketRule,
}

const fn is_zero(narrow: &u32) -> bool {
    *narrow == 0
}

impl Default for ShapeOptions {
    fn default() -> ShapeOptions {
        ShapeOptions {
            activation: Activation::Crelu,
            hidden_activation: Activation::Crelu,
            skip: false,
            skip_difference: false,
            concatenated: false,
            narrow: 0,
            psqt: false,
            buckets: 1,
            bucket_rule: BucketRule::Stockfish,
        }
    }
}

impl ShapeOptions {
    /// The options of a shape.
    #[must_use]
    pub fn of(shape: &Shape) -> ShapeOptions {
        let Shape { activation, hidden_activation, skip, skip_difference, concatenated, narrow, psqt, .. } = *shape;
        let OutputBuckets { count: buckets, rule: bucket_rule } = shape.buckets.clone();
        ShapeOptions {
            activation,
            hidden_activation,
            skip,
            skip_difference,
            concatenated,
            narrow,
            psqt,
            buckets,
            bucket_rule,
        }
    }

    /// The same options with the number of buckets that an expression has in networks of `set`.
    ///
    /// # Errors
    /// When the expression is no bucket rule, or the number of buckets is given and another one.
    pub fn for_set(&self, set: &FeatureSet) -> Result<ShapeOptions, NetError> {
        let Some(expression) = self.bucket_rule.expression() else { return Ok(self.clone()) };
        let count = set.bucket_expression(expression).map_err(NetError::BucketRule)?.count() as usize;
        match self.buckets {
            given if given == 1 || given == count => Ok(ShapeOptions { buckets: count, ..self.clone() }),
            given => Err(NetError::Shape(format!(
                "the bucket rule `{expression}` has {count} output buckets, not {given}; leave their number out"
            ))),
        }
    }

    /// The shape with these options and widths.
    ///
    /// # Errors
    /// See [`Shape::validate`].
    pub fn shape(&self, features: u32, l1: usize, hidden: &[usize]) -> Result<Shape, NetError> {
        let ShapeOptions {
            activation,
            hidden_activation,
            skip,
            skip_difference,
            concatenated,
            narrow,
            psqt,
            buckets,
            bucket_rule,
        } = self.clone();
        let shape = Shape {
            activation,
            hidden_activation,
            skip,
            skip_difference,
            concatenated,
            narrow,
            psqt,
            buckets: OutputBuckets { count: buckets, rule: bucket_rule },
            ..Shape::plain(features, l1, hidden.to_vec())
        };
        shape.validate().map(|()| shape)
    }
}
