//! The sample formats through the command line and the library: compared with the crates that define them, converted
//! into each other, and damaged.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod chess960;
mod convert;
mod damage;
mod every;
mod fixture;
mod foreign;
mod oracle;
mod robust;
mod stress;
mod texts;
mod verify;
mod viriformat_crate;
