//! The program from outside: where it runs, what it prints and refuses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod documents;
mod elsewhere;
mod experiment;
mod output;
mod overwrite;
mod program;
mod schema;
