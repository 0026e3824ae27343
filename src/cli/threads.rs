//! `--threads` of verbs that spread their work over the cores.

use super::Failure;
use crate::service::Request;

#[derive(Clone, Debug, clap::Args)]
pub struct Threads {
    /// Threads to work with [default: one a core]
    #[arg(long, global = true, value_name = "T", value_parser = parse)]
    threads: Option<usize>,
}

/// A number of threads, as every verb takes it.
pub fn parse(text: &str) -> Result<usize, String> {
    let most = Request::MAX_THREADS;
    let number = text.parse().map_err(|_| format!("it must be a number from 1 to {most}"))?;
    if (1..=most).contains(&number) { Ok(number) } else { Err(format!("it must be 1 to {most}")) }
}

impl Threads {
    /// Call before any work: the pool is made once.
    pub fn start(&self) -> Result<(), Failure> {
        let Some(threads) = self.threads else { return Ok(()) };
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(Failure::work)
    }
}
