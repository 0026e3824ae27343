//! The network half of an export: `network.rs` or `network.h` with accumulators and the integer forward pass, only the
//! code that the network's shape and scheme need, and `weights.bin` with its numbers.

mod describe;
#[cfg(test)]
mod tests;
mod values;
mod weights;

use shakmaty::Position;
use thiserror::Error;

use super::{ExportError, ExportFile, GoldenEval, Language, features};
use crate::chess::{Chess, Perspective};
use crate::features::FeatureSet;
use crate::json;
use crate::net::{BucketChooser, NetError, NetFile, QuantNet, WeightType, forward_integer};
use weights::SectionLayout;

/// The name of the file with the weights.
pub const WEIGHTS: &str = "weights.bin";

/// The name of the file, without its ending, with the expression that chooses the output bucket.
const BUCKET_RULE: &str = "bucket_rule";

/// The notice at the head of the sources.
const LICENCE: &str = "\
Written by `fsbench export`. This file belongs to whoever exported it, to use, change and distribute under any
terms, without any warranty. The licence of fsbench does not apply to it.";

#[derive(Debug, Error)]
pub enum NetworkExportError {
    #[error("the network has {network} inputs per perspective, but feature set `{set}` has {features} features")]
    Inputs { network: u32, set: String, features: u32 },
    #[error(transparent)]
    Network(#[from] NetError),
    #[error("the rule of the output buckets: {0}")]
    BucketRule(Box<ExportError>),
}

/// A network that is checked and can be exported.
///
/// ```
/// use fsbench::export::network::ExportedNetwork;
/// use fsbench::features::FeatureSet;
/// use fsbench::net::{FloatNet, NetFile, Origin, Scheme, Shape, quantise};
///
/// let set = FeatureSet::resolve("piece")?;
/// let float = FloatNet::zeros(&Shape::plain(set.num_features(), 16, vec![8]));
/// let net = quantise(&float, &Scheme::stockfish())?;
/// let file = NetFile { origin: Origin::of(&set), net };
/// let exported = ExportedNetwork::new(&file, &set)?;
/// assert!(exported.rust().contains("pub const L1: usize = 16;"));
/// assert_eq!(&exported.weights()[..8], b"fsbnet01");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExportedNetwork<'a> {
    file: &'a NetFile,
    layout: SectionLayout,
    buckets: BucketChooser,
    /// The encoder of the expression that chooses the output bucket, if there is one, in Rust and in C.
    bucket_rule: Option<[String; 2]>,
    /// A hash of the features, shape, scheme and layout: networks that agree in it have the same sources.
    architecture: u64,
}

impl<'a> ExportedNetwork<'a> {
    /// `set` is the network's feature set.
    ///
    /// # Errors
    /// When the network does not belong to the set, its shape or scheme is invalid, a weight or bias is outside the
    /// scheme's limits (sums could overflow), or the rule of its output buckets needs large tables.
    pub fn new(file: &'a NetFile, set: &FeatureSet) -> Result<ExportedNetwork<'a>, NetworkExportError> {
        let net = &file.net;
        file.origin.expect(set)?;
        if set.num_features() != net.shape.features {
            let network = net.shape.features;
            let features = set.num_features();
            return Err(NetworkExportError::Inputs { network, set: set.name().into(), features });
        }
        check(net)?;
        let layout = SectionLayout::of(net);
        let buckets = BucketChooser::new(&net.shape.buckets, set)?;
        let rule = buckets.expression();
        let bucket_rule = rule.map(|rule| rule_sources(rule.set())).transpose()?;
        let parts = (&file.origin.identity, &net.shape, &net.scheme, layout.narrow);
        let mut parts = json::to_bytes(&parts).expect("plain structures serialise");
        parts.extend(rule.iter().flat_map(|rule| rule.set().identity().to_string().into_bytes()));
        let architecture = first_u64(blake3::hash(&parts));
        Ok(ExportedNetwork { file, layout, buckets, bucket_rule, architecture })
    }

    /// The source in a language, and `weights.bin`.
    #[must_use]
    pub fn files(&self, language: Language) -> Vec<ExportFile> {
        let (ending, source) = match language {
            Language::Rust => ("rs", self.rust()),
            Language::C => ("h", self.c()),
        };
        let mut files = vec![ExportFile::new(&format!("network.{ending}"), source)];
        if let Some([rust, c]) = &self.bucket_rule {
            let rule = match language {
                Language::Rust => rust,
                Language::C => c,
            };
            files.push(ExportFile::new(&format!("{BUCKET_RULE}.{ending}"), rule.clone()));
        }
        files.push(ExportFile::new(WEIGHTS, self.weights()));
        files
    }

    /// The bytes of `weights.bin`.
    #[must_use]
    pub fn weights(&self) -> Vec<u8> {
        self.layout.file(&self.file.net, self.architecture)
    }

    /// The text of `network.rs`.
    #[must_use]
    pub fn rust(&self) -> String {
        self.values().render(include_str!("network.rs.template"))
    }

    /// The text of `network.h`.
    #[must_use]
    pub fn c(&self) -> String {
        self.values().render(include_str!("network.h.template"))
    }

    /// The chapter on the network in the README, in Markdown.
    #[must_use]
    pub fn readme(&self, language: Language) -> String {
        describe::readme(&self.layout, &self.file.net, language)
    }

    /// The evaluation of a position, from the side to move's view, by the plain forward pass. `set` is the network's
    /// feature set.
    #[must_use]
    pub fn evaluate(&self, set: &FeatureSet, position: &Chess) -> GoldenEval {
        let net = &self.file.net;
        let stm = Perspective::of(position.turn());
        let [mut first, mut second] = [Vec::new(), Vec::new()];
        set.encoder().encode(position.board(), stm, &mut first);
        set.encoder().encode(position.board(), stm.other(), &mut second);
        let bucket = self.buckets.of(position.board(), position.turn());
        let internal = net.scheme.score(forward_integer(net, bucket, &first, &second));
        GoldenEval { internal, cp: net.scheme.centipawns(internal) }
    }
}

/// The encoder of an expression for output buckets in Rust and in C. In C its names have a prefix of their
/// own, as it stands beside the encoder of the network's features.
fn rule_sources(set: &FeatureSet) -> Result<[String; 2], NetworkExportError> {
    let source =
        |language| features::source(set, language).map_err(|error| NetworkExportError::BucketRule(Box::new(error)));
    let c = source(Language::C)?.replace("fsb_", "fsb_bucket_").replace("FSB_", "FSB_BUCKET_");
    Ok([source(Language::Rust)?, c])
}

fn first_u64(hash: blake3::Hash) -> u64 {
    let (words, _) = hash.as_bytes().as_chunks::<8>();
    u64::from_le_bytes(words[0])
}

/// # Errors
/// When the shape or scheme is invalid, or numbers are outside the scheme's limits.
fn check(net: &QuantNet) -> Result<(), NetError> {
    net.shape.validate()?;
    net.scheme.validate()?;
    net.scheme.admits(&net.shape)?;
    for (bucket, stack) in net.stacks.iter().enumerate() {
        for (index, layer) in stack.iter().enumerate() {
            let name = net.shape.layer_name(bucket, index);
            layer.check_biases(&name, &net.scheme)?;
            // All weights of eight bits are valid.
            if net.scheme.weights == WeightType::I16 {
                layer.check_weights(&name, &net.scheme, net.shape.input_activation(index))?;
            }
        }
    }
    Ok(())
}
