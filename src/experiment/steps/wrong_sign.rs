//! Share of the validation positions in which the network's sign differs from the score's.

use super::NetworkMeasure;
use crate::json::to_value;
use crate::measure;
use crate::record::{NetworkRecord, WrongSignRecord};

pub const WRONG_SIGN: NetworkMeasure = NetworkMeasure {
    name: WrongSignRecord::KIND,
    version: 1,
    about: "Share of the validation positions with a score that is not 0 in which the network's evaluation has the \
            other sign or is 0, by network",
    words: "wrong signs",
    measure: |request| Ok(to_value(&measure::wrong_sign(&request.load()?, &request.config, request.games)?)?),
};
