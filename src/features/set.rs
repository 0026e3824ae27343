//! A feature set: a definition with its blocks side by side in one index space.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::chess::{Board, Perspective};

use super::compiled::{CompiledBlock, lowered, merges};
use super::definition::{self, Definition};
use super::encoder::Encoder;
use super::encoder_kind::EncoderKind;
use super::error::{FeatureError, SourceText};
use super::explain::{self, ExplainedFeature};
use super::identity::Identity;
use super::reference;
use super::spec::{BlockSpec, FactorSpec, Multiplicity};
use super::syntax::SyntaxError;

/// One summand of a set, with a context of its own.
#[derive(Debug)]
pub struct Block {
    pub name: String,
    /// Lowest index.
    pub offset: u32,
    /// Number of features.
    pub size: u32,
    /// The block's indices, ascending, where a selection interleaves them with other blocks' indices.
    scattered: Option<Box<[u32]>>,
    /// As resolved; the compiled block may have another form.
    spec: BlockSpec,
    pub(super) compiled: CompiledBlock,
    /// Whether bindings with different rows of the compiled block may yield one feature.
    pub(super) merges: bool,
}

impl Block {
    fn new(spec: &BlockSpec) -> Result<Block, FeatureError> {
        let failed = |error: SyntaxError| {
            SourceText::new(spec.name.as_str(), spec.canonical.as_str()).error(error.message, error.span, None)
        };
        let lowered = lowered(spec).map_err(failed)?;
        let compiled = CompiledBlock::new(lowered.as_ref().unwrap_or(spec)).map_err(failed)?;
        let merges = lowered.is_some() && merges(&compiled);
        let indices = spec.selected().map(|selected| {
            let mut indices: Vec<u32> = selected.collect();
            indices.sort_unstable();
            indices
        });
        let (offset, size) = match &indices {
            None => (spec.offset, spec.product.size),
            Some(indices) => (indices.first().map_or(spec.offset, |first| *first), indices.len() as u32),
        };
        let has_gaps = |indices: &Vec<u32>| indices.last().is_some_and(|last| last - offset >= size);
        let scattered = indices.filter(has_gaps).map(Vec::into_boxed_slice);
        Ok(Block { name: spec.name.clone(), offset, size, scattered, spec: spec.clone(), compiled, merges })
    }

    /// The block's indices; `None` where a selection interleaves them with other blocks' features.
    pub fn range(&self) -> Option<Range<u32>> {
        self.scattered.is_none().then(|| self.offset..self.offset + self.size)
    }

    /// Whether a feature of the set belongs to the block.
    #[inline]
    pub fn contains(&self, index: u32) -> bool {
        match &self.scattered {
            None => index.wrapping_sub(self.offset) < self.size,
            Some(indices) => indices.binary_search(&index).is_ok(),
        }
    }

    /// The block's indices, ascending.
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        let range = self.range();
        range.into_iter().flatten().chain(self.scattered.iter().flatten().copied())
    }

    pub fn spec(&self) -> &BlockSpec {
        &self.spec
    }

    /// Whether the compiled block's rows are turned into features by a table.
    pub(super) fn is_renumbered(&self) -> bool {
        self.compiled.spec().renumbering.is_some()
    }

    /// The top-level factors of the block's product, from the slowest stride to the fastest. A sum in brackets is one
    /// axis.
    ///
    /// ```
    /// let set = fsbench::features::FeatureSet::resolve("square(P) * role(P) * color(P) for P in pieces")?;
    /// let axes = set.blocks()[0].axes().iter().map(|axis| (axis.name.as_str(), axis.size, axis.stride));
    /// assert!(axes.eq([("square(P)", 64, 12), ("role(P)", 6, 2), ("color(P)", 2, 1)]));
    /// # Ok::<(), fsbench::features::FeatureError>(())
    /// ```
    pub fn axes(&self) -> &[FactorSpec] {
        &self.spec().product.factors
    }

    /// Number of contexts that the block distinguishes.
    pub fn contexts(&self) -> u32 {
        self.compiled.contexts().count()
    }

    /// Whether [`Block::contexts`] is an upper bound.
    pub fn contexts_are_a_bound(&self) -> bool {
        self.compiled.contexts().is_bound()
    }

    /// Whether several bindings in one position may yield a feature that counts once. Never says no wrongly.
    pub(crate) fn may_repeat(&self) -> bool {
        self.compiled.shares_rows() || (self.merges && self.spec.multiplicity == Multiplicity::Set)
    }

    /// The number of the context of two kings on squares of the perspective's board, turned for Black, not mirrored.
    pub(crate) fn context_of_kings(&self, own: u32, enemy: u32) -> u32 {
        self.compiled.contexts().id(own, enemy)
    }

    /// The number of the compiled block's first row: 0 where a table gives indices later.
    pub(super) fn first_element(&self) -> u32 {
        if self.is_renumbered() { 0 } else { self.offset }
    }
}

/// The encoders of this process that are in use, by the hash of the definition's text: a definition is compiled once as
/// long as a set of it is held.
#[derive(Default)]
struct CompiledEncoders(Vec<(blake3::Hash, Weak<Encoder>)>);

static COMPILED: Mutex<CompiledEncoders> = Mutex::new(CompiledEncoders(Vec::new()));

impl CompiledEncoders {
    fn find(key: &blake3::Hash) -> Option<Arc<Encoder>> {
        let CompiledEncoders(known) = &*COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(of, _)| of == key)?.1.upgrade()
    }

    fn add(key: blake3::Hash, encoder: &Arc<Encoder>) {
        let CompiledEncoders(known) = &mut *COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, encoder)| *of != key && encoder.strong_count() > 0);
        known.push((key, Arc::downgrade(encoder)));
    }
}

/// A definition, resolved and compiled. Sets of one definition share what was compiled, while one of them is held.
///
/// ```
/// use fsbench::features::FeatureSet;
///
/// // A shipped name, a path to a TOML file or an expression.
/// let set = FeatureSet::resolve("file(K) * square(P) for P in pieces")?;
/// assert_eq!(set.num_features(), 8 * 64);
/// assert_eq!(set.contexts(), 8);
/// // Letters, spaces and names do not matter to the identity.
/// let other = FeatureSet::from_definition("name = \"other\"\nfeatures = \"file(K)*square(Q) for Q in pieces\"")?;
/// assert_eq!(set.identity(), other.identity());
/// # Ok::<(), fsbench::features::FeatureError>(())
/// ```
#[derive(Debug)]
pub struct FeatureSet {
    name: String,
    about: Option<String>,
    encoder: Arc<Encoder>,
    num_features: u32,
    identity: Identity,
    definition: String,
    remarks: Vec<String>,
}

impl FeatureSet {
    /// A path to a TOML file, a bare name (`piece`, `piece.toml`) or an inline expression.
    ///
    /// # Errors
    /// When nothing has that name, its file cannot be read, or the definition is wrong.
    pub fn resolve(request: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::load(request)?)
    }

    /// The shipped set of a name, ignoring the user's folder `feature_sets`. File formats refer to sets by these names.
    ///
    /// # Errors
    /// When no shipped set has that name.
    pub fn shipped(name: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::shipped(name)?)
    }

    /// From a self-contained definition such as [`FeatureSet::definition`] gives.
    ///
    /// # Errors
    /// When the text is not a definition.
    pub fn from_definition(text: &str) -> Result<FeatureSet, FeatureError> {
        FeatureSet::compile(definition::parse(text)?)
    }

    pub(super) fn compile(definition: Definition) -> Result<FeatureSet, FeatureError> {
        let key = blake3::hash(definition.text.as_bytes());
        let encoder = match CompiledEncoders::find(&key) {
            Some(encoder) => encoder,
            None => {
                let blocks = definition.blocks.iter().map(Block::new).collect::<Result<Vec<Block>, FeatureError>>()?;
                let encoder = Arc::new(Encoder::new(blocks));
                CompiledEncoders::add(key, &encoder);
                encoder
            }
        };
        Ok(FeatureSet {
            identity: definition.identity(),
            name: definition.name,
            about: definition.about,
            encoder,
            num_features: definition.size,
            definition: definition.text,
            remarks: definition.remarks,
        })
    }

    /// The same set, of which no feature is ever active: for timing what following moves costs besides features.
    #[must_use]
    pub fn without_features(&self) -> FeatureSet {
        FeatureSet {
            name: self.name.clone(),
            about: self.about.clone(),
            encoder: self.encoder.part(&[]),
            num_features: self.num_features,
            identity: self.identity.clone(),
            definition: self.definition.clone(),
            remarks: self.remarks.clone(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Inputs per perspective.
    pub fn num_features(&self) -> u32 {
        self.num_features
    }

    #[inline]
    pub fn blocks(&self) -> &[Block] {
        self.encoder.blocks()
    }

    /// The fast encoder.
    #[inline]
    pub fn encoder(&self) -> &Arc<Encoder> {
        &self.encoder
    }

    /// How the features that a move adds and removes are found.
    pub fn encoder_kind(&self) -> EncoderKind {
        if self.encoder.obstacle().is_some() { EncoderKind::Interpreter } else { EncoderKind::MachineCode }
    }

    /// A TOML definition that needs no other file.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// Legal parts of the definition's files that have less effect than they seem to, one line each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// An upper bound on the active features per perspective in legal positions.
    pub fn max_active(&self) -> usize {
        self.blocks().iter().map(|block| block.compiled.max_active(block.size)).sum()
    }

    /// The active features by the reference encoder, ascending.
    pub fn reference(&self, board: &Board, pov: Perspective) -> Vec<u32> {
        let features = |block: &Block| {
            let elements = reference::active(block.spec(), board, pov).into_iter();
            elements.filter_map(|element| block.spec().index_of(element)).collect::<Vec<_>>()
        };
        let mut active: Vec<u32> = self.blocks().iter().flat_map(features).collect();
        active.sort_unstable();
        active
    }

    /// One block's active features by the reference encoder, ascending, with the squares and values they stand for;
    /// once per binding that yields them.
    pub fn explain(&self, block: usize, board: &Board, pov: Perspective) -> Vec<ExplainedFeature> {
        explain::explain(self.blocks()[block].spec(), board, pov)
    }

    /// Distinct combinations of the blocks' contexts over all placements of the kings (over pairs that are not
    /// adjacent when some block looks at the enemy king).
    pub fn contexts(&self) -> usize {
        let tables: Vec<_> = self.blocks().iter().map(|block| block.compiled.contexts()).collect();
        let enemies = if tables.iter().any(|table| table.reads_enemy()) { 64 } else { 1 };
        let pairs = (0..64).flat_map(|own| (0..enemies).map(move |enemy| (own, enemy)));
        let apart = pairs.filter(|(own, enemy)| enemies == 1 || !crate::chess::too_close(*own, *enemy));
        let mut combinations: Vec<Vec<u32>> =
            apart.map(|(own, enemy)| tables.iter().map(|table| table.id(own, enemy)).collect()).collect();
        combinations.sort_unstable();
        combinations.dedup();
        combinations.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_compiled_once_while_it_is_held() {
        let text = "name = \"a\"\nfeatures = \"rank(P) * square(K) for P in pieces\"";
        let set = FeatureSet::from_definition(text).expect("a definition");
        let again = FeatureSet::from_definition(set.definition()).expect("the same");
        assert!(Arc::ptr_eq(set.encoder(), again.encoder()));
        let other = FeatureSet::from_definition(&text.replace("rank", "file")).expect("another");
        assert!(!Arc::ptr_eq(set.encoder(), other.encoder()));
        let encoder = Arc::downgrade(set.encoder());
        drop((set, again));
        assert!(encoder.upgrade().is_none(), "nothing keeps it");
    }
}
