//! What `fsbench show` draws and prints of a network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weights of one neuron of the feature transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeuronWeights {
    /// Index of the neuron, from 0.
    pub neuron: usize,
    /// How much the neuron's output can move the score: the spread of its weights over the features, times the sum of
    /// the absolute weights of its output. Comparable within a network only.
    pub influence: f64,
    /// In units of the activation's upper bound, like the weights.
    pub bias: f64,
    /// Panels by block; the panels with the largest weights if there are too many.
    pub panels: Vec<WeightPanel>,
    /// Panels that are left out.
    pub left_out: usize,
}

/// Weights in rows and columns, such as a piece's weights on each square.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeightPanel {
    /// The block and the values of the axes that are not drawn.
    pub title: String,
    /// Weights in a row of the panel.
    pub columns: usize,
    /// From the lowest row up, as on a board; `None` where there is no feature. The mean where several features share a
    /// cell, such as one per king square.
    pub weights: Vec<Option<f64>>,
}

/// The contributions of a position's features and pieces to its score. A contribution is the score minus the score
/// without the feature or piece. Contributions do not add up to the score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionRecord {
    /// The position.
    pub fen: String,
    /// In centipawns, from the side to move's view, like all contributions.
    pub score: f64,
    pub features: Vec<FeatureContribution>,
    /// All pieces but the kings.
    pub pieces: Vec<PieceContribution>,
}

/// An active feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureContribution {
    /// `white` or `black`.
    pub perspective: String,
    /// The feature's index.
    pub index: u32,
    /// The block's name.
    pub block: String,
    /// The values of its axes.
    pub values: String,
    /// Centipawns that the score loses without it.
    pub contribution: f64,
}

/// A piece on the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PieceContribution {
    /// FEN letter.
    pub piece: char,
    /// The piece's square.
    pub square: String,
    /// Centipawns that the score loses without it.
    pub contribution: f64,
}
