//! Experiments and records.

use std::path::Path;

use fsbench::experiment::Experiment;
use fsbench::record::{
    ActivityRecord, CostRatio, Environment, EqualSpeedRecord, ErrorRecord, ImportanceRecord, LossRecord, MatchResult,
    NetResult, NetworkRecord, PositionRecord, Results, RunKey, RunRecord, SetResult, ShardRecord, SpeedRecord,
    StageSeconds, Study, Timestamp, UpdatesRecord, ValidationRecord, WrongSignRecord, read_checked_json,
    write_checked_json,
};
use fsbench::report::{Summary, WIDTH, html, markdown, text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{file, repaired_document};

pub fn experiment(bytes: &[u8]) {
    let Ok(content) = String::from_utf8(bytes.to_vec()) else { return };
    for scale in [None, Some("full")] {
        if let Ok(experiment) = Experiment::parse(Path::new("x.toml"), content.clone(), scale) {
            assert!(!experiment.rows.is_empty() && !experiment.seeds.is_empty());
        }
    }
}

/// Reads a value and, if it is one, writes and reads it again.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let again: T = serde_json::from_slice(&serde_json::to_vec(&value).expect("JSON")).expect("just written");
    assert_eq!(again, value);
    Some(value)
}

/// Measures of networks of a kind, as results take them.
fn of_networks<T: NetworkRecord + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Vec<(&'static str, RunKey, Value)> {
    let results = round_trip::<Vec<NetResult<T>>>(bytes).unwrap_or_default().into_iter();
    results.map(|NetResult { key, record }| (T::KIND, key, serde_json::to_value(record).expect("JSON"))).collect()
}

/// Reads a value from a file with a checksum and, if it is one, writes and reads it again.
fn stored_round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let path = file("stored.json", bytes);
    let Ok(value) = read_checked_json::<T>(&path) else { return };
    write_checked_json(&path, &value).expect("room for a document");
    assert_eq!(read_checked_json::<T>(&path).expect("just written"), value);
}

fn no_environment() -> Environment {
    Environment {
        recorded: Timestamp::from_unix(0),
        fsbench: String::new(),
        commit: String::new(),
        cpu: String::new(),
        back_end: String::new(),
        cores: 1,
        os: String::new(),
        threads: 1,
        timed_on: None,
        seconds: StageSeconds::default(),
    }
}

/// The input: documents separated by zero bytes. Each is read as every record; the first of a kind joins the results of
/// which a report is made. Those that fsbench keeps with a checksum are read from a file, too. The Parquet files of
/// losses are not among the inputs: their record has their hash, and without it polars panics, or asks for memory
/// without bound.
pub fn record(bytes: &[u8]) {
    let mut results: Option<Results> = None;
    for document in bytes.split(|byte| *byte == 0).take(16) {
        if let Some(study) = round_trip::<Study>(document) {
            let environment = results.take().map_or_else(no_environment, |results| results.environment);
            results = Some(Results::empty(study, environment));
        }
        let environment = round_trip::<Environment>(document);
        round_trip::<ImportanceRecord>(document);
        round_trip::<LossRecord>(document);
        round_trip::<PositionRecord>(document);
        round_trip::<ValidationRecord>(document);
        let validation = round_trip::<Vec<NetResult<ValidationRecord>>>(document);
        for document in [document, &repaired_document(document)] {
            stored_round_trip::<CostRatio>(document);
            stored_round_trip::<ShardRecord>(document);
        }
        let runs = round_trip::<Vec<RunRecord>>(document);
        let updates = round_trip::<Vec<SetResult<UpdatesRecord>>>(document);
        let speed = round_trip::<Vec<NetResult<SpeedRecord>>>(document);
        let equal_speed = round_trip::<Vec<NetResult<EqualSpeedRecord>>>(document);
        let matches = round_trip::<Vec<MatchResult>>(document);
        let networks = [
            of_networks::<ActivityRecord>(document),
            of_networks::<ErrorRecord>(document),
            of_networks::<WrongSignRecord>(document),
        ];
        let Some(results) = &mut results else { continue };
        for (kind, key, record) in networks.into_iter().flatten() {
            results.networks.push(kind, key, record);
        }
        results.environment = environment.unwrap_or(results.environment.clone());
        results.runs.extend(runs.into_iter().flatten());
        results.updates.extend(updates.into_iter().flatten());
        results.speed.extend(speed.into_iter().flatten());
        results.equal_speed.extend(equal_speed.into_iter().flatten());
        results.validation.extend(validation.into_iter().flatten());
        results.matches.extend(matches.into_iter().flatten());
    }
    if let Some(results) = results {
        let summary = Summary::of(&results);
        assert!(!text(&summary, WIDTH).is_empty());
        assert!(!markdown(&summary).is_empty());
        let _ = html(&summary);
    }
}
