//! Links from the results folder to the networks of finished runs.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::record::RunKey;
use crate::system;

/// A finished run of an experiment, and where its network is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainedRun {
    #[serde(flatten)]
    pub key: RunKey,
    /// The run's folder.
    pub folder: PathBuf,
    /// The quantised network in that folder.
    pub network: PathBuf,
    /// A link to the network in the results folder, if the file system supports links.
    pub link: Option<PathBuf>,
}

/// The links' folder in a results folder.
const LINK_FOLDER: &str = "networks";

/// Creates the link `networks/METHOD-LABEL-seedN.safetensors` in the results folder; `None` if that fails.
pub(super) fn link(results: &Path, key: &RunKey, network: &Path) -> Option<PathBuf> {
    let link = results.join(LINK_FOLDER).join(format!("{}.safetensors", key.file_stem()));
    if std::fs::read_link(&link).is_ok_and(|target| target == network) {
        return Some(link);
    }
    std::fs::create_dir_all(link.parent()?).ok()?;
    // Replace the link of an earlier run of this row, but no file of the user's.
    if link.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        std::fs::remove_file(&link).ok()?;
    }
    system::symlink_file(network, &link).ok()?;
    Some(link)
}
