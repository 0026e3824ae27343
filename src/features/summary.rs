//! The facts of a definition: the document of `fsbench define`.

use schemars::JsonSchema;
use serde::Serialize;

use super::analysis::{ActiveCounts, Analysis, Budget, Lossless, StatusCounts};
use super::error::FeatureError;
use super::factor::{FactorCheck, Factors};
use super::selection::index_ranges;
use super::set::{Block, FeatureSet};
use super::spec::FactorSpec;
use crate::units::SortedMap;

/// Sizes, contexts, dead features, losslessness and cost of a set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SetSummary<'a> {
    /// The set's name.
    pub name: &'a str,
    /// What its definition says of it.
    pub about: Option<&'a str>,
    /// Inputs per perspective.
    pub num_features: u32,
    /// Hash of what the definition means: sets of one identity have the same features.
    pub identity: String,
    /// Combinations of the blocks' contexts; a move that changes its context refreshes a block.
    pub contexts: usize,
    /// Whether `contexts` is an upper bound, because there are too many assignments to try.
    pub contexts_bound: bool,
    pub dead: StatusCounts,
    /// Whether both perspectives' features determine the placement of pieces: yes, no or unknown.
    pub lossless: &'static str,
    /// If not lossless, two positions with the same features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<[String; 2]>,
    pub active: ActiveSummary,
    /// Whether a search without a limit may resolve more features.
    #[serde(skip)]
    pub can_resolve_more: bool,
    /// Mean share of active features.
    pub density: Option<f64>,
    /// Bytes of the encoder's tables.
    pub table_bytes: usize,
    /// Number of inputs that the factor adds while training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_inputs: Option<u32>,
    /// The blocks, in order.
    pub blocks: Vec<BlockSummary<'a>>,
    /// Parts of the definition that are likely mistakes.
    pub warnings: Vec<String>,
    /// Features that no legal position activates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_indices: Option<Vec<u32>>,
    /// For live features, a position that activates them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses: Option<SortedMap<u32, String>>,
}

/// Active features per perspective. Mean and maximum are `None` if encoding takes too long.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActiveSummary {
    /// Mean number of active features.
    pub mean: Option<f64>,
    /// Largest number of active features that was seen.
    pub max: Option<usize>,
    /// Upper bound over all legal positions.
    pub bound: usize,
    /// Positions of the sample.
    pub positions: usize,
    /// Where these positions come from.
    pub sample: &'static str,
}

/// One block of a set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockSummary<'a> {
    /// The block's name.
    pub name: &'a str,
    /// Lowest index.
    pub offset: u32,
    /// Its features.
    pub size: u32,
    /// First and last index of each run of consecutive indices, if a selection has mixed the blocks' indices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<(u32, u32)>>,
    /// Its contexts; 1 if it does not look at a king.
    pub contexts: u32,
    /// Whether `contexts` is an upper bound.
    pub contexts_bound: bool,
    pub dead: StatusCounts,
    /// How an index is computed.
    pub formula: String,
    pub axes: Vec<AxisSummary<'a>>,
}

/// One axis of a block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AxisSummary<'a> {
    /// The factor as written.
    pub name: &'a str,
    /// Its values.
    pub size: u32,
    /// The distance of neighbouring values' indices.
    pub stride: u32,
}

impl<'a> SetSummary<'a> {
    /// Examines the set within a budget. The analysis comes along, for the features that are dead or have a witness.
    /// `progress` gets a block and the number of its features left to examine.
    ///
    /// # Errors
    /// When the features do not determine the inputs of a factor.
    pub fn within(
        set: &'a FeatureSet,
        budget: Budget,
        mut progress: impl FnMut(&Block, usize),
    ) -> Result<(SetSummary<'a>, Analysis), FeatureError> {
        let factors = Factors::within(set, budget)?;
        let activity = ActiveCounts::of(set, budget);
        let lossless = Lossless::within(set, budget);
        let analysis = Analysis::within(set, budget, |block, left| progress(&set.blocks()[block], left));
        let mut summary = describe(set, &analysis, activity, &lossless);
        summary.warnings = set.warnings(&analysis, budget);
        summary.can_resolve_more = budget.limited() && summary.dead.unresolved > 0;
        summary.virtual_inputs = match factors {
            FactorCheck::None => None,
            FactorCheck::Determined(factors) => Some(factors.size),
            FactorCheck::Undecided { size, .. } => {
                let message = "within the time limit it is not known whether the features determine the factor";
                summary.warnings.push(format!("{}: {message}; training checks it, and so does --thorough", set.name()));
                Some(size)
            }
        };
        Ok((summary, analysis))
    }
}

fn describe<'a>(
    set: &'a FeatureSet,
    analysis: &Analysis,
    activity: Option<ActiveCounts>,
    lossless: &Lossless,
) -> SetSummary<'a> {
    let counterexample = match lossless {
        Lossless::No(pair) => Some([pair[0].fen(), pair[1].fen()]),
        Lossless::Yes | Lossless::Unknown => None,
    };
    let mean = activity.map(|activity| activity.mean);
    let active = ActiveSummary {
        mean,
        max: activity.map(|activity| activity.max),
        bound: set.max_active(),
        positions: activity.map_or(0, |activity| activity.positions),
        sample: "random play",
    };
    let blocks = set.blocks().iter().enumerate();
    SetSummary {
        name: set.name(),
        about: set.about(),
        num_features: set.num_features(),
        identity: set.identity().to_string(),
        contexts: set.contexts(),
        contexts_bound: set.blocks().iter().any(Block::contexts_are_a_bound),
        dead: analysis.tally(),
        lossless: lossless.word(),
        counterexample,
        active,
        can_resolve_more: false,
        density: mean.map(|mean| mean / f64::from(set.num_features())),
        table_bytes: set.encoder().table_bytes(),
        virtual_inputs: None,
        warnings: Vec::new(),
        blocks: blocks.map(|(at, block)| describe_block(block, analysis.block_tally(at))).collect(),
        dead_indices: None,
        witnesses: None,
    }
}

fn describe_block<'a>(block: &'a Block, dead: StatusCounts) -> BlockSummary<'a> {
    let axis = |axis: &'a FactorSpec| AxisSummary { name: &axis.name, size: axis.size, stride: axis.stride };
    BlockSummary {
        name: &block.name,
        offset: block.offset,
        size: block.size,
        runs: block.range().is_none().then(|| index_ranges(block.indices())),
        contexts: block.contexts(),
        contexts_bound: block.contexts_are_a_bound(),
        dead,
        formula: formula(&block.spec().as_written),
        axes: block.axes().iter().map(axis).collect(),
    }
}

/// A definition's text in mathematical notation.
#[must_use]
pub fn formula(text: &str) -> String {
    let symbols = [
        (" * ", " × "),
        (" + ", " ⊕ "),
        (" - ", " − "),
        (" in ", " ∈ "),
        (" != ", " ≠ "),
        (" <= ", " ≤ "),
        (" >= ", " ≥ "),
    ];
    symbols.iter().fold(text.to_owned(), |text, (ascii, symbol)| text.replace(ascii, symbol))
}
