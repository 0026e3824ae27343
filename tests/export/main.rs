//! `fsbench export`: the generated source is compiled and compared with fsbench's own encoder.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod bullet;
mod command;
mod compiled;
mod encoders;
mod generated;
#[path = "../generator/mod.rs"]
#[allow(dead_code, reason = "shared with tests/generated.rs")]
mod generator;
mod golden;
mod positions;
mod shipped;

use common::skip;

/// Whether these programs are there; says so if not.
fn has_all(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !compiled::has(program));
    if let Some(missing) = missing {
        skip::skip(missing, &format!("{missing} is not installed"));
    }
    missing.is_none()
}
