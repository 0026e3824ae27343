//! The sample service from a consumer's side: the built binary, its pipes and its shared memory.

#![allow(clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;
mod content;
mod direct;
mod failures;
mod fixture;
mod foreign;
mod named;
mod python;
mod several;
mod shards;
use common::skip;
