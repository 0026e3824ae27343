//! Layouts of king buckets for a search, merged from the rows that a network has for every king square.

use serde_json::{Value, json};

use super::{Step, StepKind, StepWork};
use crate::experiment::executor::StepError;
use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;
use crate::experiment::runner_options::ExperimentMonitor;
use crate::record::NetResult;

/// The index is into [`Plan::runs`].
#[derive(Clone, Copy, Debug)]
pub struct KingBuckets(pub usize);

/// Games on which features are counted.
const GAMES: u64 = 10_000;

impl KingBuckets {
    /// The wanted numbers of buckets.
    fn counts<'a>(runner: &Runner<'a>) -> &'a [usize] {
        runner.experiment.measure.king_buckets.as_ref().map_or(&[], |(_, counts)| counts)
    }
}

impl Step for KingBuckets {
    fn kind(&self) -> StepKind {
        StepKind::measure("king buckets", 1)
    }

    fn index(&self) -> usize {
        self.0
    }

    fn name(&self, plan: &Plan) -> String {
        format!("king buckets from the squares of {}", plan.runs[self.0].key)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Value {
        json!([runner.data_hash(), GAMES, KingBuckets::counts(runner)])
    }
}

impl StepWork for KingBuckets {
    /// A number for every square, for each number of buckets.
    type Record = Vec<Vec<i32>>;

    fn run(
        self,
        runner: &mut Runner<'_>,
        _monitor: &mut dyn ExperimentMonitor,
    ) -> Result<Option<Vec<Vec<i32>>>, StepError> {
        let request = runner.net_request(self.0, Some(GAMES))?;
        runner.executor.king_buckets(&request, KingBuckets::counts(runner)).map(Some)
    }

    fn show(self, record: Vec<Vec<i32>>, runner: &mut Runner<'_>) {
        let key = runner.plan.runs[self.0].key.clone();
        runner.results.king_buckets.push(NetResult { key, record });
    }
}
