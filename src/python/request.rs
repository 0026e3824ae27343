//! The arguments of `fsbench.Batches`: its data, and the options of `samples-service`.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use serde_json::{Map, Value, json};

use super::error;
use super::preparation::StreamSource;
use crate::data::{DataFiles, InputPath, ScoreUnit};
use crate::json::from_value;
use crate::pipeline::{WeightedInput, inputs, sample_games};
use crate::service::{MAX_SLOTS, Request, Shard};

/// Slots beyond the threads: the number that a consumer can hold before batches are copied for it.
const SPARE_SLOTS: usize = 4;

/// The source of `Batches(data, set, **options)`.
///
/// # Errors
/// When an argument is wrong; the message names it.
pub fn source(set: &str, data: Option<&Bound<'_, PyAny>>, options: &Bound<'_, PyDict>) -> PyResult<StreamSource> {
    let Some(data) = data else {
        return Ok(StreamSource { request: request(set, sample_games()?.into(), options)?, mixture: None });
    };
    let inputs = inputs_of(data)?;
    // With weights they are what errors and `repr` call the mixture.
    let name = |input: &WeightedInput| match input.weight {
        1.0 => input.origin.path(),
        _ => PathBuf::from(input.to_string()),
    };
    let files = inputs.iter().map(name).collect();
    let files = DataFiles::new(files)
        .ok_or_else(|| error::request("data is an empty list; leave it out for the sample games"))?;
    let mixture = inputs.iter().any(|input| input.weight != 1.0).then_some(inputs);
    Ok(StreamSource { request: request(set, files, options)?, mixture })
}

/// The files of a path, a glob or a list of these, each perhaps with a weight.
fn inputs_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<WeightedInput>> {
    let wrong = |found: &Bound<'_, PyAny>| {
        let found = found.get_type().name()?;
        Ok::<_, PyErr>(PyTypeError::new_err(format!(
            "data is a path, a list of paths, or None for the sample games; found {found}"
        )))
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    match (data.extract(), data.try_iter()) {
        (Ok(path), _) => paths.push(path),
        (Err(_), _) if data.is_instance_of::<PyBytes>() => return Err(wrong(data)?),
        (Err(_), Err(_)) => return Err(wrong(data)?),
        (Err(_), Ok(several)) => {
            for path in several {
                let path = path?;
                let Ok(path) = path.extract() else { return Err(wrong(&path)?) };
                paths.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for path in paths {
        match path.to_str() {
            Some(text) => found.extend(inputs(&[text.to_owned()])?),
            None => found.push(WeightedInput::file(&path)),
        }
    }
    if found.iter().any(|input| input.origin == InputPath::Stdin) {
        return Err(error::request("data cannot be standard input (-); write it to a file first"));
    }
    Ok(found)
}

/// The request of the keyword arguments: the keys of a request's JSON document.
fn request(set: &str, data: DataFiles, options: &Bound<'_, PyDict>) -> PyResult<Request> {
    let schema = schemars::schema_for!(Request).to_value();
    let mut document = Map::new();
    for (name, value) in options {
        let name: String = name.extract()?;
        let is_option = schema["properties"].get(&name).is_some();
        if !is_option || ["set", "data", "shm"].contains(&name.as_str()) {
            return Err(PyTypeError::new_err(format!("Batches has no option {name}")));
        }
        if value.is_none() {
            continue;
        }
        let wrong = |why: String| error::request(format!("{name} cannot be {value}{why}"));
        let value = as_json(&name, &value).map_err(wrong)?;
        // One at a time, so that the error names the option.
        from_value::<Request>(&json!({ &name: &value }), "").map_err(|error| wrong(format!(": {}", error.message)))?;
        document.insert(name, value);
    }
    let mut request: Request = from_value(&document.into(), "").map_err(error::request)?;
    request.slots.get_or_insert(MAX_SLOTS.min(request.threads.saturating_add(SPARE_SLOTS)));
    Ok(Request { set: set.into(), data, ..request })
}

/// An option's value in a request's JSON document, or why there is none.
fn as_json(name: &str, value: &Bound<'_, PyAny>) -> Result<Value, String> {
    if let Ok(text) = value.extract::<String>() {
        return match name {
            "from_unit" => text.parse::<ScoreUnit>().map(|unit| json!(unit)),
            "shard" => text.parse::<Shard>().map(|shard| json!(shard)),
            _ => Ok(text.into()),
        }
        .map_err(|why| format!(": {why}"));
    }
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(yes.is_true().into());
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number.into());
    }
    value.extract::<f64>().map(Value::from).map_err(|_| String::new())
}
