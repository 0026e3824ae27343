//! What a run or a measure leaves behind: plain, serialisable, and all that `report` reads.

mod environment;
mod file;
mod measures;
mod results;
mod run;

pub use crate::data::{Histogram, LegalMoves, Logistic, Method, Mobility, ScoreBin, Stats as DatasetStats};
pub use environment::{Environment, Stages, Timestamp};
pub use file::{RecordFileError, read_json, write_atomically, write_json};
pub use measures::{
    ActivityRecord, BucketActivity, ErrorRecord, LayerActivity, LegalCounts, MoveCounts, SpeedEntry, SpeedRecord,
    UpdatesRecord,
};
pub use results::{NetResult, PlannedRow, Results, ResultsError, SetResult, Study};
pub use run::{EpochRecord, RunKey, RunRecord};
