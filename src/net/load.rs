//! Loads a network from a file of any kind as integers; the network of a checkpoint is quantised.

use std::path::Path;

use super::{Checkpoint, NetError, NetFile, Scheme, Shape, load_float, quantise};

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
/// let (set, model) = (file.origin.feature_set()?, Model::new(&file.net));
/// let evaluator = Evaluator::new(&set, &model, Strategy::LazyCached, BackEnd::best())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`NetFile::load`]; when the network does not fit the scheme, or the file holds integers of another scheme.
pub fn load_quantised(path: &Path, scheme: Option<&Scheme>) -> Result<(NetFile, StoredPrecision), NetError> {
    let foreign = match NetFile::load(path) {
        Ok(file) => {
            let (stored, wanted) = (&file.net.scheme.name, scheme.map(|scheme| &scheme.name));
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
    let scheme = scheme.cloned().or_else(|| scheme_of_checkpoint(&training)).or_else(|| scheme_of_run(path));
    let scheme = scheme.unwrap_or_else(|| first_admitting(&net.shape));
    scheme.admits(&net.shape)?;
    Ok((NetFile { origin, net: quantise(&net, &scheme)? }, StoredPrecision::Float))
}

/// The scheme in a checkpoint's training state, or in the metadata of a file with weights alone.
fn scheme_of_checkpoint(training: &serde_json::Value) -> Option<Scheme> {
    let name = training["scheme"].as_str().or_else(|| training["config"]["scheme"].as_str());
    name.and_then(Scheme::named)
}

/// The scheme in the run's configuration beside the file: earlier versions did not store it with weights alone.
fn scheme_of_run(path: &Path) -> Option<Scheme> {
    let text = std::fs::read(path.with_file_name("config.json")).ok()?;
    let config: serde_json::Value = serde_json::from_slice(&text).ok()?;
    config["scheme"].as_str().and_then(Scheme::named)
}

fn first_admitting(shape: &Shape) -> Scheme {
    Scheme::all().into_iter().find(|scheme| scheme.admits(shape).is_ok()).unwrap_or_default()
}
