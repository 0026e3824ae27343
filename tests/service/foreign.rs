//! A broken or hostile service causes errors in its client, and nothing worse.

use std::path::{Path, PathBuf};
use std::process::Command;

use fsbench::data::Method;
use fsbench::service::{Client, Dtype, Layout, SlotHeader};
use serde_json::{Value, json};

use super::failures::RawService;
use super::fixture::{CopiedBatch, Fixture};

/// The description and memory of a good service, to be corrupted.
struct Recording {
    folder: tempfile::TempDir,
    line: Value,
    memory: Vec<u8>,
    byte: u8,
}

impl Recording {
    fn new(layout: Layout) -> Recording {
        let fixture = Fixture::new(Method::Eval);
        let mut raw = RawService::start(&fsbench::service::Request { layout, epochs: 0, ..fixture.request() });
        let byte = raw.byte();
        let about = raw.description().clone();
        let memory = std::fs::read(&about.shm).expect("ours");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let line = serde_json::to_value(&about).expect("json");
        drop(raw.input.take());
        Recording { folder, line, memory, byte }
    }

    fn memory_path(&self) -> PathBuf {
        self.folder.path().join("memory")
    }

    /// Byte offset in the memory of an array of the announced slot.
    fn array_start(&self, array: &str) -> usize {
        let arrays = self.line["arrays"].as_array().expect("a list");
        let array = arrays.iter().find(|known| known["name"] == array).expect("known");
        self.slot_start() + array["offset"].as_u64().expect("a number") as usize
    }

    /// Byte offset in the memory of the announced slot.
    fn slot_start(&self) -> usize {
        usize::from(self.byte) * self.line["slot_bytes"].as_u64().expect("a number") as usize
    }

    fn put(&mut self, at: usize, value: i32) {
        self.memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Starts a service that writes the line, announces the slot and keeps running.
    fn start(&self) -> Result<Client, fsbench::service::ServiceError> {
        let mut line = self.line.clone();
        if line["shm"].as_str().is_some_and(|path| path.starts_with("/proc")) {
            line["shm"] = json!(self.memory_path());
        }
        std::fs::write(self.memory_path(), &self.memory).expect("written");
        let output = [line.to_string().as_bytes(), b"\n", &[self.byte]].concat();
        let file = self.folder.path().join("output");
        std::fs::write(&file, output).expect("written");
        service_that_writes(&file)
    }
}

fn service_that_writes(output: &Path) -> Result<Client, fsbench::service::ServiceError> {
    let mut command = Command::new("sh");
    command.args(["-c", "cat \"$0\"; cat > /dev/null"]).arg(output);
    Client::start(command)
}

#[test]
fn a_batch_does_not_change_when_the_service_writes_to_its_slot() {
    let recorded = Recording::new(Layout::Csr);
    let mut client = recorded.start().expect("the recording is good");
    let batch = client.next().expect("a good batch").expect("a batch");
    let before = CopiedBatch::of(&batch);
    assert!(!before.csr[0].1.is_empty());
    std::fs::write(recorded.memory_path(), vec![0xff; recorded.memory.len()]).expect("written");
    assert!(CopiedBatch::of(&batch) == before);
}

/// Covers every number that a consumer follows.
#[test]
fn wrong_numbers_in_a_slot_are_errors() {
    let check = |layout: Layout, corrupt: &dyn Fn(&mut Recording), message: &str| {
        let mut recorded = Recording::new(layout);
        corrupt(&mut recorded);
        let error = recorded.start().expect("the line is good").next().err().expect("refused").to_string();
        assert!(error.contains("broke its protocol") && error.contains(message), "{error} instead of {message}");
    };
    let header = |field: usize, value: i32| {
        move |recording: &mut Recording| recording.put(recording.slot_start() + field, value)
    };
    let samples = std::mem::offset_of!(SlotHeader, samples);
    let positions = std::mem::offset_of!(SlotHeader, positions);
    let offsets = std::mem::offset_of!(SlotHeader, offsets);
    let indices = std::mem::offset_of!(SlotHeader, nstm_indices);
    let words = std::mem::offset_of!(SlotHeader, words);
    check(Layout::Csr, &header(samples, -1), "positions for 4294967295 samples");
    check(Layout::Csr, &header(positions, 99), "claims 99 positions for 100 samples");
    check(Layout::Csr, &header(offsets, 100), "claims 100 offsets");
    check(Layout::Csr, &header(indices, i32::MAX), "claims 2147483647 elements of nstm_indices");
    check(Layout::Csr, &header(indices, 7), "has nstm_offsets that do not ascend from 0 to 7");
    check(Layout::Bitset, &header(words, 1), "1 words for 100 positions");
    let more = |recording: &mut Recording| {
        recording.put(recording.slot_start() + samples, 101);
        recording.put(recording.slot_start() + positions, 101);
        recording.put(recording.slot_start() + offsets, 102);
    };
    check(Layout::Csr, &more, "elements of stm_offsets, which has 101 at most");
    let element = |array: &'static str, at: usize, value: i32| {
        move |recording: &mut Recording| recording.put(recording.array_start(array) + 4 * at, value)
    };
    check(Layout::Csr, &element("stm_offsets", 0, 1), "has stm_offsets that do not ascend");
    check(Layout::Csr, &element("stm_offsets", 3, -5), "has stm_offsets that do not ascend");
    check(Layout::Csr, &element("nstm_offsets", 50, i32::MAX), "has nstm_offsets that do not ascend");
    check(Layout::Csr, &element("stm_indices", 0, 768), "has stm_indices up to 768, and the set has 768");
    check(Layout::Csr, &element("nstm_indices", 9, -1), "has nstm_indices up to 4294967295");
    check(Layout::Csr, &|recording| recording.byte = 200, "announced slot 200, which does not exist");
}

#[test]
fn wrong_descriptions_are_errors() {
    let recorded = Recording::new(Layout::Csr);
    let check = |corrupt: &dyn Fn(&mut Value), message: &str| {
        let mut line = recorded.line.clone();
        corrupt(&mut line);
        let Recording { folder: _, line: _, memory, byte } = &recorded;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let corrupted = Recording { folder, line, memory: memory.clone(), byte: *byte };
        let error = corrupted.start().err().expect("refused").to_string();
        assert!(error.contains(message), "{error} instead of {message}");
    };
    check(&|line| line["slots"] = json!(0), "describes 0 slots");
    check(&|line| line["slot_bytes"] = json!(0), "slots of 0 bytes");
    check(&|line| line["slot_bytes"] = json!(u64::MAX - 63), "describes slots of");
    check(&|line| line["slot_bytes"] = json!(1u64 << 40), "bytes, but its description says");
    check(&|line| line["shm"] = json!("/dev/shm/nowhere"), "open the service's");
    check(&|line| line["positions_per_sample"] = json!(3), "3 positions per sample");
    check(&|line| line["arrays"][0]["offset"] = json!(u64::MAX - 63), "does not lie in a slot");
    check(&|line| line["arrays"][0]["len"] = json!(u64::MAX), "does not lie in a slot");
    check(&|line| line["arrays"][0]["count"] = json!("words"), "stm_offsets has another type or count");
    check(&|line| line["arrays"][1]["dtype"] = json!(Dtype::U8), "stm_indices has another type or count");
    check(&|line| drop(line["arrays"].as_array_mut().expect("a list").pop()), "describes no array sample_index");
    check(&|line| line["version"] = json!(9), "speaks version 9");
    check(&|line| *line = json!([]), "not a description");
    let endless = Client::start({
        let mut command = Command::new("sh");
        command.args(["-c", "tr '\\0' x < /dev/zero"]);
        command
    });
    let error = endless.err().expect("refused").to_string();
    assert!(error.contains("first line is longer than"), "{error}");
}
