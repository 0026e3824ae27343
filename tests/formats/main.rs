//! The sample formats from the outside: against the crates that define them, from one to the other, and broken.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod convert;
mod every;
mod fixture;
mod oracle;
mod robust;
mod stress;
mod verify;
