//! Training through the samples service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod buckets;
#[path = "../common/mod.rs"]
mod common;
mod fixture;
mod late;
mod locked;
mod recipe;
mod runs;
mod scores;
mod shapes;
mod shares;
mod signals;
mod sources;
mod starts;
mod tch;
mod validation;
