//! `--threads` of verbs that spread their work over the cores.

use super::Failure;
use crate::service::Request;

#[derive(Clone, Debug, clap::Args)]
pub struct Threads {
    /// Threads to work with [default: one a core]
    #[arg(long, global = true, value_name = "T", value_parser = Request::parse_threads)]
    threads: Option<usize>,
}

impl Threads {
    /// Call before any work: the pool is made once.
    pub fn start(&self) -> Result<(), Failure> {
        let Some(threads) = self.threads else { return Ok(()) };
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(Failure::work)
    }
}
