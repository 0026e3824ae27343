//! The arguments of `fsbench.Batches`: its data, and the options of `samples-service`.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use super::error;
use super::preparation::StreamSource;
use crate::data::{DataFiles, InputPath, ScoreUnit};
use crate::features::nearest;
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
    if data.cast::<PyMapping>().is_ok() {
        return Err(PyTypeError::new_err(
            "data is a path or a list of paths, not a mapping; a weight follows its path: \"games.pgn@0.25\"",
        ));
    }
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
        if path.as_os_str().is_empty() {
            return Err(error::request("data has an empty path; None stands for the sample games"));
        }
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
            let known = schema["properties"].as_object().into_iter().flat_map(|options| options.keys());
            let nearest = nearest(&name, known.map(String::as_str));
            let hint = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
            return Err(PyTypeError::new_err(format!("Batches has no option {name}{hint}")));
        }
        if value.is_none() {
            continue;
        }
        let found = as_json(&name, &value)?;
        // One at a time, so that the error names the option.
        check_option::<Request>(&name, &value, &found)?;
        document.insert(name, found);
    }
    let mut request: Request = from_value(&document.into(), "").map_err(error::request)?;
    request.slots.get_or_insert(MAX_SLOTS.min(request.threads.saturating_add(SPARE_SLOTS)));
    Ok(Request { set: set.into(), data, ..request })
}

/// Refuses an option's value that the type `T` of all options does not take.
///
/// # Errors
/// Names the option, and says what it takes.
pub fn check_option<T: DeserializeOwned>(name: &str, given: &Bound<'_, PyAny>, found: &Value) -> PyResult<()> {
    let problem = |value: &Value| from_value::<T>(&json!({ name: value }), "").err().map(|error| error.message);
    let Some(message) = problem(found) else { return Ok(()) };
    // What is no text is answered by a type's name in place of the texts that it has.
    let expected = error::expected_in_python(&message);
    let expected = expected.or_else(|| error::expected_in_python(&problem(&"".into())?));
    let given = given.repr()?;
    Err(error::request(match expected {
        Some(expected) => format!("{name} is {expected}, not {given}"),
        None => format!("{name} cannot be {given}: {message}"),
    }))
}

/// A value of Python in a JSON document. What is neither text, truth nor finite number becomes a list, which no option
/// takes.
///
/// # Errors
/// For a wrong unit or shard.
pub fn as_json(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = value.extract::<String>() {
        let read = match name {
            "from_unit" => text.parse::<ScoreUnit>().map(|unit| json!(unit)),
            "shard" => text.parse::<Shard>().map(|shard| json!(shard)),
            _ => Ok(text.as_str().into()),
        };
        return read.map_err(|why| error::request(format!("{name} cannot be {text}: {why}")));
    }
    if let Some((_, example)) = [("from_unit", "internal:208"), ("shard", "0/2")].iter().find(|(text, _)| *text == name)
    {
        return Err(error::request(format!("{name} is a text such as \"{example}\", not {value}")));
    }
    Ok(if let Ok(yes) = value.extract::<bool>() {
        yes.into()
    } else if let Ok(number) = value.extract::<u64>() {
        number.into()
    } else {
        let number = value.extract::<f64>().ok().and_then(Number::from_f64);
        number.map_or_else(|| json!([]), Value::Number)
    })
}
