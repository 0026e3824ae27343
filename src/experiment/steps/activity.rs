//! Share of active neurons, by network.

use super::NetworkMeasure;
use crate::json::to_value;
use crate::measure;
use crate::record::{ActivityRecord, NetworkRecord};

pub const ACTIVITY: NetworkMeasure = NetworkMeasure {
    name: ActivityRecord::KIND,
    version: 1,
    about: "Share of active neurons, by network",
    words: "activity",
    measure: |request| Ok(to_value(&measure::activity(&request.load()?, &request.data, request.games)?.0)?),
};
