//! The option `--threads` of commands that work on several cores.

use super::Failure;
use crate::service::Request;

#[derive(Clone, Debug, clap::Args)]
pub struct Threads {
    /// Number of threads [default: one per core]
    #[arg(long, global = true, value_name = "T", value_parser = Request::parse_threads)]
    threads: Option<usize>,
}

impl Threads {
    /// Creates the thread pool. Must be called before any parallel work.
    pub fn start(&self) -> Result<(), Failure> {
        let Some(threads) = self.threads else { return Ok(()) };
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(Failure::work)
    }
}
