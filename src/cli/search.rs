//! `fsbench search`: an experiment that looks for a better set.

use super::{Failure, run};

/// Look for a better feature set: try changes of one, round by round, and keep those that win
///
/// The file is an experiment with a table [search]. A round lists changes of the incumbent (blocks to add, mirroring,
/// king buckets …), leaves out those beyond the limits, trains the others for a short time from the incumbent's network,
/// the best of them longer, the finalists from scratch, and lets these play the incumbent at equal cost. A winner
/// becomes the incumbent. In the end the winner plays the first set on openings that were kept for it. The same command
/// resumes a search; `fsbench work` shares one, and `fsbench run` does the same as this command.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLE, mut_args = run::hidden_from_search)]
#[group(skip)]
pub struct Arguments {
    #[command(flatten)]
    run: run::Arguments,
}

const EXAMPLE: &str = r#"Example, to add to an experiment with one row and [match] equal_cost:
  [search]
  hours  = 8
  blocks = ["axis-h", "mobility-bitset", "square(T) * role(P) for P in pieces, T in targets(P)"]

  fsbench search experiments/search.toml --scale try     # does everything work?
  fsbench search experiments/search.toml --plan          # how much it tries, and how long a round takes
  fsbench search experiments/search.toml                 # the tree: report.html; the winner: winner.toml

`fsbench run --help` lists all keys, `fsbench help experiments` explains them."#;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let experiment = run::read(&arguments.run.experiment, arguments.run.scale.as_deref())?;
    if experiment.search.is_none() {
        return Err(Failure::Request(anyhow::anyhow!(
            "{}: no table [search]: write one that says what to try, as `fsbench search --help` shows, or use `fsbench \
             run`",
            arguments.run.experiment.display()
        )));
    }
    run::run_experiment(&arguments.run, experiment)
}
