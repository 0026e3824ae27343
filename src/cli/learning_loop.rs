//! `fsbench loop`: an experiment that makes its own data, by a network that learns from its own games.

use super::{Failure, run};

/// Let a network learn from its own games, iteration after iteration
///
/// The file is an experiment with a table [loop] and one row. In each iteration the last accepted network plays games
/// against itself, a new one learns from those of the last iterations, and replaces it if it wins the gate, a
/// sequential test at equal nodes. The first games are played by the row's `start`, or by a network of material values,
/// which fsbench writes itself. In the end the last accepted network plays the first accepted one. All that a loop
/// makes is in its results folder; the same command goes on with an interrupted loop, and with one that is given more
/// iterations or hours.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLE, mut_args = run::hidden_from_loop)]
#[group(skip)]
pub struct Arguments {
    #[command(flatten)]
    run: run::Arguments,
}

const EXAMPLE: &str = r#"Example, beside name, seeds = [1], [train] and one [[runs]] of method "eval":
  [loop]
  hours     = 8
  nodes     = 5000         # per move of the games to learn from
  positions = 200_000      # per iteration
  window    = 2_000_000    # the last iterations that a training sees
  elo0      = 0
  elo1      = 10
  [match]                  # the gate
  nodes     = 2000
  pairs     = 1000

  fsbench loop experiments/loop.toml --scale try    # does everything work?
  fsbench loop experiments/loop.toml --plan         # what an iteration costs
  fsbench loop experiments/loop.toml                # results/loop-cpu: loop.md, report.html, iteration-001/ …
  fsbench report results/loop-cpu                   # how far is it?

`fsbench run --help` lists all keys, `fsbench help experiments` explains them."#;

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let experiment = run::read(&arguments.run.experiment, arguments.run.scale.as_deref())?;
    if experiment.learning_loop.is_none() {
        return Err(Failure::Request(anyhow::anyhow!(
            "{}: no table [loop]: write one that says how long it goes on and what it plays, as `fsbench loop --help` \
             shows, or use `fsbench run`",
            arguments.run.experiment.display()
        )));
    }
    run::run_experiment(&arguments.run, experiment)
}
