//! fsbench's errors as Python exceptions, with the same messages in Python's words.

use std::error::Error as StdError;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::chess::FenError;
use crate::data::DataError;
use crate::engine::EngineError;
use crate::features::FeatureError;
use crate::net::NetError;
use crate::service::{Request, ServiceError};
use crate::train::TrainError;

create_exception!(fsbench, Error, PyException, "Something that fsbench was asked for failed.");
create_exception!(
    fsbench,
    RequestError,
    Error,
    "The request was wrong: a definition, a position, an option or a file. The message says what to do."
);

/// An exception for a wrong request.
#[allow(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
pub fn request(error: impl ToString) -> PyErr {
    RequestError::new_err(in_python(&error.to_string()))
}

/// An exception for work that failed.
pub fn work(error: &dyn StdError) -> PyErr {
    Error::new_err(in_python(&error.to_string()))
}

/// The exception `other` in place of one that Python code raised; what is no `Exception`, as Ctrl-C, stays itself.
pub fn unless_interrupt(py: Python<'_>, raised: PyErr, other: impl FnOnce() -> PyErr) -> PyErr {
    if raised.is_instance_of::<PyException>(py) { other() } else { raised }
}

/// The value that an error of serde says was expected, in Python's words; `None` if it says no such thing.
pub fn expected_in_python(message: &str) -> Option<String> {
    let (_, expected) = message.split_once("expected ")?;
    let expected = expected.strip_prefix("one of ").unwrap_or(expected);
    Some(match expected {
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "usize" | "u64" => "a whole number from 0 on".into(),
        "f64" => "a finite number".into(),
        "a boolean" => "True or False".into(),
        "a string" => "a text".into(),
        _ if expected.starts_with('`') => expected.replace('`', "\""),
        _ => return None,
    })
}

/// A message in which options of `samples-service` have the names of Python's arguments.
pub fn in_python(message: &str) -> String {
    let schema = schemars::schema_for!(Request).to_value();
    let mut message = message.replace("--read built", "read=\"built\"");
    message = message.replace("`dataset build` then takes --needs result", "give needs=\"result\" for that");
    for name in schema["properties"].as_object().into_iter().flat_map(|options| options.keys()) {
        message = message.replace(&format!("--{}", name.replace('_', "-")), name);
    }
    message
}

impl From<FeatureError> for PyErr {
    fn from(error: FeatureError) -> PyErr {
        request(error)
    }
}

impl From<FenError> for PyErr {
    fn from(error: FenError) -> PyErr {
        request(error)
    }
}

impl From<EngineError> for PyErr {
    fn from(error: EngineError) -> PyErr {
        request(error)
    }
}

impl From<TrainError> for PyErr {
    fn from(error: TrainError) -> PyErr {
        request(error)
    }
}

impl From<DataError> for PyErr {
    fn from(error: DataError) -> PyErr {
        if error.is_request() { request(error) } else { work(&error) }
    }
}

impl From<NetError> for PyErr {
    fn from(error: NetError) -> PyErr {
        if error.is_request() { request(error) } else { work(&error) }
    }
}

impl From<ServiceError> for PyErr {
    fn from(error: ServiceError) -> PyErr {
        if error.is_request() { request(error) } else { work(&error) }
    }
}
