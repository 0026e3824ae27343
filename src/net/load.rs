//! A network of whatever kind of file, as integers: a checkpoint's is quantised on the way.

use std::path::Path;

use super::{Checkpoint, NetError, NetFile, Scheme, Shape, load_float, quantise};

/// What a file held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StoredPrecision {
    Integer,
    /// Quantised when it was read.
    Float,
}

/// The network of a file. A checkpoint's is quantised by `scheme`; where none is named, by the one that its trainer noted in
/// it or beside it, else by the first that admits its shape.
///
/// # Errors
/// As [`NetFile::load`]; when the network does not fit the scheme, or a scheme is named for integers of another.
pub fn load_quantised(path: &Path, scheme: Option<&Scheme>) -> Result<(NetFile, StoredPrecision), NetError> {
    let foreign = match NetFile::load(path) {
        Ok(file) => {
            let (found, wanted) = (&file.net.scheme.name, scheme.map(|scheme| &scheme.name));
            return match wanted.filter(|wanted| *wanted != found) {
                Some(wanted) => Err(NetError::Scheme(format!(
                    "{} holds integers of scheme `{found}`, `{wanted}` was asked for; quantise its checkpoint",
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
        found => found?,
    };
    let scheme = scheme.cloned().or_else(|| noted(&training)).or_else(|| of_its_run(path));
    let scheme = scheme.unwrap_or_else(|| fitting(&net.shape));
    scheme.admits(&net.shape)?;
    Ok((NetFile { origin, net: quantise(&net, &scheme)? }, StoredPrecision::Float))
}

/// Of a checkpoint to go on from, or of weights alone.
fn noted(training: &serde_json::Value) -> Option<Scheme> {
    let name = training["scheme"].as_str().or_else(|| training["config"]["scheme"].as_str());
    name.and_then(Scheme::named)
}

/// Weights alone say nothing of it where a version before this one wrote them; the run's configuration beside them does.
fn of_its_run(path: &Path) -> Option<Scheme> {
    let text = std::fs::read(path.with_file_name("config.json")).ok()?;
    let config: serde_json::Value = serde_json::from_slice(&text).ok()?;
    config["scheme"].as_str().and_then(Scheme::named)
}

fn fitting(shape: &Shape) -> Scheme {
    Scheme::all().into_iter().find(|scheme| scheme.admits(shape).is_ok()).unwrap_or_default()
}
