//! What a run or a measure leaves behind: plain, serialisable, and all that `report` reads.

mod measures;

pub use measures::{
    ActivityRecord, ErrorRecord, LayerActivity, LegalCounts, MoveCounts, SpeedEntry, SpeedRecord, UpdatesRecord,
};
