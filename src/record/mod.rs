//! Serialisable records of runs and measures. They are all that `report` reads.

mod environment;
mod equal_speed;
mod file;
mod importance;
mod joined;
mod learning_loop;
mod loss;
pub mod machine;
mod matches;
mod measures;
mod network_records;
mod neuron;
mod own_figures;
mod results;
mod run;
mod scaling;
mod screen;
mod search;
mod speed;
mod validation;

pub use crate::data::Method;
pub use crate::pipeline::stats::{DatasetStats, Histogram, LegalMovesAtPly, LogisticFit, RoleMobility, ScoreBin};
pub use environment::{Environment, StageSeconds, Timestamp};
pub use equal_speed::{EQUAL_SPEED, EqualSpeedRecord, SpeedRatio, WidthSpeed};
pub use file::{
    RecordFileError, keep_first_json, read_checked_json, read_json, write_atomically, write_checked_json, write_json,
};
pub use importance::{AxisImportance, BlockImportance, ImportanceRecord, Rise, RowCounts, RowGroup};
pub use learning_loop::{GateVerdict, GeneratedGames, LoopIteration, LoopMatch, LoopRecord, LoopTraining};
pub use loss::{Arithmetic, Cluster, LossBreakdown, LossData, LossPair, LossRecord, NetworkLoss, SubsetLoss};
pub use machine::Machine;
pub use matches::{
    Adjudication, CostRatio, GameCounts, MatchConditions, MatchKind, MatchOpenings, MatchPlayer, MatchRecord,
    MatchResult, ShardRecord,
};
pub use measures::{
    ActivityRecord, BucketActivity, ErrorRecord, LayerActivity, LegalCounts, MoveCounts, UpdatesRecord, WrongSignRecord,
};
pub use network_records::{NetworkRecord, NetworkRecords};
pub use neuron::{FeatureContribution, NeuronWeights, PieceContribution, PositionRecord, WeightPanel};
pub use own_figures::{FeatureCost, OwnFigures};
pub use results::{
    LEARNING_LOOP, NetResult, PlannedRow, Published, Results, ResultsError, RowAtEqualSpeed, SetResult, Study,
};
pub use run::{EpochRecord, RunKey, RunRecord, to_file_name_char};
pub use scaling::{Scaling, ScalingBy};
pub use screen::{ScreenRecord, ScreenedCosts};
pub use search::{
    CandidateStage, LastComparison, LiftedCandidate, LossDifference, PlayedCandidate, SearchCandidate,
    SearchPrediction, SearchRecord, SearchRound, SearchWinner, TrainedCandidate,
};
pub use speed::{FtPermutedSpeed, SpeedBeside, SpeedEntry, SpeedRecord, SpeedSetup, TimeBreakdown};
pub use validation::{ClassLosses, LossFunction, LossSums, ValidationLosses, ValidationRecord};
