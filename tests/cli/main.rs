//! The program from outside: where it runs, what it prints and refuses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
#[path = "../engines/mod.rs"]
mod engines;

mod documents;
mod elsewhere;
mod experiment;
mod output;
mod overwrite;
mod program;
mod schema;
