//! Starts a sample service and reads its batches, as a trainer would.
//!
//!     cargo build --release && cargo run --release --example read_batches -- target/release/fsbench games.pgn.zst
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use std::path::Path;

use fsbench::data::Method;
use fsbench::service::{Client, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, data] = &arguments[..] else {
        return Err("usage: read_batches PROGRAM DATA (the fsbench program, and games or samples)".into());
    };
    let request = Request { batch_size: 1024, ..Request::new("piece", data.as_str(), Method::Eval) };
    let mut client = Client::spawn(Path::new(program), &request)?;
    let mut batches = 0;
    let mut positions = 0;
    let mut active = 0;
    while let Some(batch) = client.next()? {
        // Position i has the features `indices[offsets[i]..offsets[i + 1]]`.
        let stm = batch.stm();
        batches += 1;
        positions += stm.offsets.len() - 1;
        active += stm.indices.len();
    }
    println!("{batches} batches, {positions} positions, {:.1} active features each", active as f64 / positions as f64);
    Ok(())
}
