//! Tests of the program as users run it: output, errors, working folders, documents, completions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
#[path = "../engines/mod.rs"]
mod engines;

mod completions;
mod documents;
mod experiment;
mod help;
mod installed_copy;
mod learning_loop;
mod man;
mod output;
mod overwrite;
mod schema;
mod search;
mod slurm;
mod without_effect;
mod work;
mod workspace;
