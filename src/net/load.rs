//! Loads a network from a file of any kind as integers; the network of a checkpoint is quantised.

use std::path::Path;

use super::bullet::{OrderEvidence, OutputOrder};
use super::nnue::{Architecture, Nnue, is_nnue};
use super::{Checkpoint, NetError, NetFile, Scheme, bullet, load_float, quantise, read_description};
use crate::features::FeatureSet;
use crate::json;

/// What [`load`] must know of a file beyond its contents.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The architecture of a `.nnue` file whose header fits two.
    pub architecture: Option<Architecture>,
    /// The scheme by which a checkpoint is quantised; `None` as for [`load_quantised`].
    pub scheme: Option<Scheme>,
    /// Read a raw bullet file for this feature set (a name, a path or an expression).
    pub bullet: Option<(String, bullet::BulletLayout)>,
}

/// A network with the metadata of its file.
#[derive(Clone, Debug)]
pub struct LoadedNetwork {
    pub file: NetFile,
    /// `nnue`, `fsbench`, `bullet`, or `checkpoint, quantised`.
    pub format: &'static str,
    /// Only of `.nnue` files.
    pub architecture: Option<Architecture>,
    pub description: Option<String>,
    /// Only of bullet's files: the order in which the output weights were read, and their own evidence for it.
    pub output_order: Option<(OutputOrder, OrderEvidence)>,
}

/// Loads a network file of any kind: fsbench's, a checkpoint, a `.nnue` file or, if the options say so, bullet's.
///
/// # Errors
/// When the file cannot be read, is damaged or of another kind, or does not fit the options.
pub fn load(path: &Path, options: &LoadOptions) -> Result<LoadedNetwork, NetError> {
    if let Some((set, layout)) = &options.bullet {
        let set = FeatureSet::resolve(set).map_err(NetError::Definition)?;
        let (file, evidence) = bullet::load(path, &set, *layout)?;
        let output_order = Some((layout.output_order, evidence));
        return Ok(LoadedNetwork { file, format: "bullet", architecture: None, description: None, output_order });
    }
    if !is_nnue(path)? {
        let (file, precision) = load_quantised(path, options.scheme.as_ref())?;
        let format = if precision == StoredPrecision::Float { "checkpoint, quantised" } else { "fsbench" };
        let description = if precision == StoredPrecision::Float { None } else { read_description(path)? };
        return Ok(LoadedNetwork { file, format, architecture: None, description, output_order: None });
    }
    let nnue = Nnue::load(path, options.architecture)?;
    let architecture = Some(nnue.architecture);
    let description = Some(String::from_utf8_lossy(&nnue.description).into_owned());
    let file = nnue.into_file()?;
    Ok(LoadedNetwork { file, format: "nnue", architecture, description, output_order: None })
}

/// The numbers that a network's file holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StoredPrecision {
    Integer,
    /// A checkpoint, quantised on loading.
    Float,
}

/// Loads a network file, a `.nnue` file or a checkpoint. A checkpoint is quantised by `scheme`; without it, by the
/// scheme of its training run, or else by the first scheme that supports its shape.
///
/// ```no_run
/// use fsbench::engine::{BackEnd, Evaluator, Model, Strategy};
///
/// let (file, _) = fsbench::net::load_quantised("runs/first/best.safetensors".as_ref(), None)?;
/// let set = file.origin.feature_set()?;
/// let model = Model::new(&file.net);
/// let evaluator = Evaluator::new(&set, &model, Strategy::LazyCached, BackEnd::best())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`NetFile::load`]; when the network does not fit the scheme, or the file holds integers of another scheme.
pub fn load_quantised(path: &Path, scheme: Option<&Scheme>) -> Result<(NetFile, StoredPrecision), NetError> {
    let foreign = match NetFile::load(path) {
        Ok(file) => {
            let stored = &file.net.scheme.name;
            let wanted = scheme.map(|scheme| &scheme.name);
            return match wanted.filter(|wanted| *wanted != stored) {
                Some(wanted) => Err(NetError::Scheme(format!(
                    "{} is already quantised by scheme `{stored}`; to use `{wanted}`, load its checkpoint",
                    path.display()
                ))),
                None => Ok((file, StoredPrecision::Integer)),
            };
        }
        Err(error @ NetError::Foreign { .. }) => error,
        Err(error) => return Err(error),
    };
    let (net, Checkpoint { origin, training }) = match load_float(path) {
        Err(NetError::Foreign { .. }) => return Err(foreign),
        result => result?,
    };
    let scheme = scheme.cloned().or_else(|| scheme_of_checkpoint(&training));
    let scheme = scheme.unwrap_or_else(|| Scheme::first_admitting(&net.shape));
    scheme.admits(&net.shape)?;
    Ok((NetFile { origin, net: quantise(&net, &scheme)? }, StoredPrecision::Float))
}

/// The scheme in a checkpoint's training state, or in the metadata of a file with weights alone: its name, or all of it.
fn scheme_of_checkpoint(training: &serde_json::Value) -> Option<Scheme> {
    if training["scheme"].is_object() {
        return json::from_value(&training["scheme"], "").ok();
    }
    let name = training["scheme"].as_str().or_else(|| training["config"]["scheme"].as_str());
    name.and_then(Scheme::named)
}
