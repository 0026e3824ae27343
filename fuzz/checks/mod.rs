//! The properties that hold for any bytes, per format: reading them ends without a panic, and accepted input is valid.
//! What fsbench can write too is written and read again to the same value: samples of binpack, bulletformat, viriformat
//! and text, networks, definitions, manifests, journals' lines, experiments' records. Games of PGN and a service's
//! stream are only read, an experiment is only parsed, and a UCI dialogue is answered. The fuzz targets and
//! `tests/fuzz_seeds.rs` share these functions.

mod alpha_beta;
mod data;
mod definition;
#[cfg(feature = "report")]
mod documents;
mod journal;
mod network;
mod service;

use std::path::PathBuf;

pub use alpha_beta::uci;
pub use data::{binpack, bulletformat, foreign_text, fsd, pgn, text, viriformat};
pub use definition::definition;
#[cfg(feature = "report")]
pub use documents::{experiment, record};
use fsbench::output::checked::{in_envelope, open_envelope};
pub use journal::journal;
pub use network::{bullet_raw, nnue, safetensors};
pub use service::service_client;

/// A check of one input.
pub type Check = fn(&[u8]);

/// Every check, under the name of its target.
pub const ALL: &[(&str, Check)] = &[
    ("definition", definition),
    ("pgn", pgn),
    ("binpack", binpack),
    ("bulletformat", bulletformat),
    ("viriformat", viriformat),
    ("text", text),
    ("foreign_text", foreign_text),
    ("fsd", fsd),
    ("nnue", nnue),
    ("bullet_raw", bullet_raw),
    ("safetensors", safetensors),
    #[cfg(feature = "report")]
    ("experiment", experiment),
    ("service_client", service_client),
    ("uci", uci),
    ("journal", journal),
    #[cfg(feature = "report")]
    ("record", record),
];

/// A file with these bytes, in a folder that this thread's inputs reuse.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    thread_local! {
        static FOLDER: PathBuf = {
            let name = format!("fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).expect("a folder for the inputs");
            folder
        };
    }
    let path = FOLDER.with(|folder| folder.join(name));
    std::fs::write(&path, bytes).expect("room for an input");
    path
}

/// A document in an envelope, with the right checksum, so that mutations of it are read; another document as it is.
fn repaired_document(bytes: &[u8]) -> Vec<u8> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    match open_envelope(text.trim_end()) {
        Ok((content, _)) => in_envelope(content).into_bytes(),
        Err(_) => bytes.to_vec(),
    }
}

/// Splits an input at its first zero byte.
fn split_at_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
