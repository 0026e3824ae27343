//! Quantisation error, by network.

use super::NetworkMeasure;
use crate::json::to_value;
use crate::measure::{self, QuantisationOptions};
use crate::net::load_float;
use crate::record::{ErrorRecord, NetworkRecord};

pub const QUANTISATION_ERROR: NetworkMeasure = NetworkMeasure {
    name: ErrorRecord::KIND,
    version: 1,
    about: "Quantisation error, by network",
    words: "quantisation error",
    measure: |request| {
        let (float, checkpoint) = load_float(&request.weights)?;
        let options = QuantisationOptions { limit: request.games, ..QuantisationOptions::default() };
        let (record, _) = measure::quantisation(&request.load()?, &float, &checkpoint, &request.data, options)?;
        Ok(to_value(&record)?)
    },
};
