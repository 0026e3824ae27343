//! What was measured of trained networks: for each kind of measure, a record a network. A results folder has them in
//! files `KIND.json`.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::measures::KINDS;
use super::results::{NetResult, read_or_empty};
use super::{RecordFileError, RunKey, write_json};
use crate::json::{from_value, to_value};
use crate::units::{SortedMap, sort_by_key};

/// A measure's record of a network.
pub trait NetworkRecord: Serialize + DeserializeOwned {
    /// The measure's name: of its table `[measure.KIND]`, its steps and its file.
    const KIND: &'static str;
}

/// A kind of records, whatever they are.
pub(super) struct RecordKind {
    name: &'static str,
    load: fn(&Path) -> Result<Vec<NetResult<Value>>, RecordFileError>,
}

impl RecordKind {
    pub(super) const fn of<T: NetworkRecord>() -> RecordKind {
        RecordKind { name: T::KIND, load: load::<T> }
    }
}

fn file(kind: &str) -> String {
    format!("{kind}.json")
}

/// Reads a folder's records of a kind, so that a file of anything else is refused.
fn load<T: NetworkRecord>(folder: &Path) -> Result<Vec<NetResult<Value>>, RecordFileError> {
    let mut values = Vec::new();
    for NetResult { key, record } in read_or_empty::<NetResult<T>>(folder, &file(T::KIND))? {
        let failed = |source| RecordFileError::Serialise { path: folder.join(file(T::KIND)), source };
        values.push(NetResult { key, record: to_value(&record).map_err(failed)? });
    }
    Ok(values)
}

/// The records of an experiment's networks by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkRecords(SortedMap<&'static str, Vec<NetResult<Value>>>);

impl NetworkRecords {
    #[must_use]
    pub const fn new() -> NetworkRecords {
        NetworkRecords(SortedMap::new())
    }

    pub(super) fn load(folder: &Path) -> Result<NetworkRecords, RecordFileError> {
        let mut records = NetworkRecords::new();
        for kind in &KINDS {
            let loaded = (kind.load)(folder)?;
            if !loaded.is_empty() {
                records.0.insert(kind.name, loaded);
            }
        }
        Ok(records)
    }

    /// Writes the file of each kind.
    pub(super) fn save(&self, folder: &Path) -> Result<(), RecordFileError> {
        for kind in &KINDS {
            write_json(&folder.join(file(kind.name)), self.0.get(kind.name).unwrap_or(&Vec::new()))?;
        }
        Ok(())
    }

    /// The records of a kind.
    #[must_use]
    pub fn of<T: NetworkRecord>(&self) -> Vec<NetResult<T>> {
        let mut records = Vec::new();
        for NetResult { key, record } in self.0.get(T::KIND).into_iter().flatten() {
            if let Ok(record) = from_value(record, "") {
                records.push(NetResult { key: key.clone(), record });
            }
        }
        records
    }

    /// Adds a record of a kind, as JSON.
    pub fn push(&mut self, kind: &'static str, key: RunKey, record: Value) {
        self.0.get_or_default(kind).push(NetResult { key, record });
    }

    /// Puts every kind's networks in order.
    pub fn sort(&mut self, place: &dyn Fn(&RunKey) -> Option<usize>) {
        for records in self.0.values_mut() {
            sort_by_key(records, &|result| place(&result.key));
        }
    }

    pub(super) fn append(&mut self, others: NetworkRecords) {
        for (kind, records) in others.0 {
            self.0.get_or_default(kind).extend(records);
        }
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&RunKey) -> bool) {
        for records in self.0.values_mut() {
            records.retain(|result| keep(&result.key));
        }
        self.0.retain(|_, records| !records.is_empty());
    }

    pub(super) fn keys_mut(&mut self) -> impl Iterator<Item = &mut RunKey> {
        self.0.values_mut().flatten().map(|result| &mut result.key)
    }
}
