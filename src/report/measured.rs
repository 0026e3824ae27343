//! What measures of networks give the report: a column a number, as the mean over a row's networks.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::record::{ActivityRecord, ErrorRecord, NetworkRecord, PlannedRow, Results, WrongSignRecord};
use crate::statistics::Estimate;
use crate::units::SortedMap;

/// A column of the summary.
pub(super) struct MeasuredColumn {
    /// Its name in JSON, CSV and Parquet.
    pub(super) name: &'static str,
    /// Its heading in tables; `None` if only files have it.
    pub(super) heading: Option<&'static str>,
    /// Explanation in words.
    pub(super) meaning: &'static str,
    /// Whether tables show it times 100.
    pub(super) is_share: bool,
    /// The number of each of a row's networks.
    values: fn(&Results, &PlannedRow) -> Vec<f64>,
}

/// All of them, in the order of the tables.
pub(super) const MEASURED_COLUMNS: [MeasuredColumn; 6] = [
    MeasuredColumn {
        name: "l1_active",
        heading: Some("active neurons %"),
        meaning: "share of accumulator outputs above zero",
        is_share: true,
        values: |results, row| {
            numbers(results, row, &|activity: &ActivityRecord| Some(activity.layers.first()?.active))
        },
    },
    MeasuredColumn {
        name: "l1_saturated",
        heading: None,
        meaning: "share of accumulator outputs at the activation's upper bound",
        is_share: true,
        values: |results, row| {
            numbers(results, row, &|activity: &ActivityRecord| Some(activity.layers.first()?.saturated))
        },
    },
    MeasuredColumn {
        name: "l1_never",
        heading: Some("never active"),
        meaning: "number of accumulator neurons that are zero in every position",
        is_share: false,
        values: |results, row| {
            numbers(results, row, &|activity: &ActivityRecord| Some(activity.layers.first()?.never_active as f64))
        },
    },
    MeasuredColumn {
        name: "within_tolerance",
        heading: Some("integer agrees %"),
        meaning: "share of positions whose expected results by the float and by the integer network differ by at most \
                  0.03",
        is_share: true,
        values: |results, row| numbers(results, row, &|error: &ErrorRecord| Some(error.within_tolerance)),
    },
    MeasuredColumn {
        name: "error_mean",
        heading: Some("integer error"),
        meaning: "mean difference between the expected results by the float and by the integer network",
        is_share: false,
        values: |results, row| numbers(results, row, &|error: &ErrorRecord| Some(error.mean)),
    },
    MeasuredColumn {
        name: "wrong_sign",
        heading: Some("wrong sign %"),
        meaning: "share of the validation positions with a score that is not 0 in which the integer network's evaluation \
                  has the other sign or is 0",
        is_share: true,
        values: |results, row| numbers(results, row, &WrongSignRecord::share),
    },
];

/// A number of each record of a kind, of a row's networks.
fn numbers<T: NetworkRecord>(results: &Results, row: &PlannedRow, number: &dyn Fn(&T) -> Option<f64>) -> Vec<f64> {
    let mut numbers = Vec::new();
    for result in results.networks.of::<T>() {
        if result.key.set == row.set && result.key.method == row.method {
            numbers.extend(number(&result.record));
        }
    }
    numbers
}

/// The numbers of a row, by column; columns that were not measured are missing.
#[derive(Clone, Debug, Default)]
pub struct MeasuredNumbers(SortedMap<&'static str, Estimate>);

impl MeasuredNumbers {
    pub(super) fn of(results: &Results, row: &PlannedRow) -> MeasuredNumbers {
        let mut numbers = SortedMap::new();
        for column in &MEASURED_COLUMNS {
            if let Some(estimate) = Estimate::over(&(column.values)(results, row)) {
                numbers.insert(column.name, estimate);
            }
        }
        MeasuredNumbers(numbers)
    }

    /// The number of a column.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Estimate> {
        self.0.get(name).copied()
    }
}

impl Serialize for MeasuredNumbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(MEASURED_COLUMNS.iter().map(|column| (column.name, self.get(column.name))))
    }
}

impl JsonSchema for MeasuredNumbers {
    fn schema_name() -> Cow<'static, str> {
        "MeasuredNumbers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let estimate = generator.subschema_for::<Option<Estimate>>();
        let mut properties = Map::new();
        for column in &MEASURED_COLUMNS {
            let mut property = estimate.clone();
            property.insert("description".into(), column.meaning.into());
            properties.insert(column.name.into(), property.to_value());
        }
        let required: Vec<Value> = MEASURED_COLUMNS.iter().map(|column| column.name.into()).collect();
        json_schema!({ "type": "object", "properties": properties, "required": required })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meaning_names_the_tolerance_of_experiments() {
        let is_of_tolerance = |column: &&MeasuredColumn| column.name == "within_tolerance";
        let column = MEASURED_COLUMNS.iter().find(is_of_tolerance).expect("a column");
        assert!(column.meaning.ends_with(&format!(" {}", ErrorRecord::TOLERANCE)));
    }
}
