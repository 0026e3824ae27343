//! Services that are not to be trusted: errors, and nothing worse.

use std::path::{Path, PathBuf};
use std::process::Command;

use fsbench::data::Method;
use fsbench::service::{Client, Dtype, Header, Layout};
use serde_json::{Value, json};

use super::failures::Raw;
use super::fixture::{Copied, Fixture};

/// What a good service said and wrote, to be spoilt.
struct Recorded {
    folder: tempfile::TempDir,
    line: Value,
    memory: Vec<u8>,
    byte: u8,
}

impl Recorded {
    fn new(layout: Layout) -> Recorded {
        let fixture = Fixture::new(Method::Eval);
        let mut raw = Raw::start(&fsbench::service::Request { layout, epochs: 0, ..fixture.request() });
        let byte = raw.byte();
        let about = raw.description().clone();
        let memory = std::fs::read(&about.shm).expect("ours");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let line = serde_json::to_value(&about).expect("json");
        drop(raw.input.take());
        Recorded { folder, line, memory, byte }
    }

    fn memory_path(&self) -> PathBuf {
        self.folder.path().join("memory")
    }

    /// Bytes from the segment's start of an array of the announced slot.
    fn at(&self, array: &str) -> usize {
        let arrays = self.line["arrays"].as_array().expect("a list");
        let array = arrays.iter().find(|known| known["name"] == array).expect("known");
        self.slot() + array["offset"].as_u64().expect("a number") as usize
    }

    fn slot(&self) -> usize {
        usize::from(self.byte) * self.line["slot_bytes"].as_u64().expect("a number") as usize
    }

    fn put(&mut self, at: usize, value: i32) {
        self.memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// A service that says the line, announces the slot and goes on living.
    fn start(&self) -> Result<Client, fsbench::service::ServiceError> {
        let mut line = self.line.clone();
        if line["shm"].as_str().is_some_and(|path| path.starts_with("/proc")) {
            line["shm"] = json!(self.memory_path());
        }
        std::fs::write(self.memory_path(), &self.memory).expect("written");
        let said = [line.to_string().as_bytes(), b"\n", &[self.byte]].concat();
        std::fs::write(self.folder.path().join("said"), said).expect("written");
        speaking(&self.folder.path().join("said"))
    }
}

fn speaking(said: &Path) -> Result<Client, fsbench::service::ServiceError> {
    let mut command = Command::new("sh");
    command.args(["-c", "cat \"$0\"; cat > /dev/null"]).arg(said);
    Client::start(command)
}

#[test]
fn what_a_service_writes_later_does_not_reach_a_batch() {
    let recorded = Recorded::new(Layout::Csr);
    let mut client = recorded.start().expect("it says what a good one said");
    let batch = client.next().expect("a good batch").expect("a batch");
    let before = Copied::of(&batch);
    assert!(!before.csr[0].1.is_empty());
    std::fs::write(recorded.memory_path(), vec![0xff; recorded.memory.len()]).expect("written");
    assert!(Copied::of(&batch) == before);
}

/// Every number that a consumer is led by.
#[test]
fn wrong_numbers_in_a_slot_are_errors() {
    let check = |layout: Layout, spoil: &dyn Fn(&mut Recorded), message: &str| {
        let mut recorded = Recorded::new(layout);
        spoil(&mut recorded);
        let error = recorded.start().expect("the line is good").next().err().expect("refused").to_string();
        assert!(error.contains("broke its protocol") && error.contains(message), "{error} instead of {message}");
    };
    let header = |field: usize, value: i32| move |it: &mut Recorded| it.put(it.slot() + field, value);
    let samples = std::mem::offset_of!(Header, samples);
    let positions = std::mem::offset_of!(Header, positions);
    let offsets = std::mem::offset_of!(Header, offsets);
    let indices = std::mem::offset_of!(Header, nstm_indices);
    let words = std::mem::offset_of!(Header, words);
    check(Layout::Csr, &header(samples, -1), "positions for 4294967295 samples");
    check(Layout::Csr, &header(positions, 99), "claims 99 positions for 100 samples");
    check(Layout::Csr, &header(offsets, 100), "claims 100 offsets");
    check(Layout::Csr, &header(indices, i32::MAX), "claims Some(2147483647) elements of nstm_indices");
    check(Layout::Csr, &header(indices, 7), "has nstm_offsets that do not ascend from 0 to 7");
    check(Layout::Bitset, &header(words, 1), "1 words for 100 positions");
    let more = |it: &mut Recorded| {
        it.put(it.slot() + samples, 101);
        it.put(it.slot() + positions, 101);
        it.put(it.slot() + offsets, 102);
    };
    check(Layout::Csr, &more, "elements of stm_offsets, which has 101 at most");
    let element =
        |array: &'static str, at: usize, value: i32| move |it: &mut Recorded| it.put(it.at(array) + 4 * at, value);
    check(Layout::Csr, &element("stm_offsets", 0, 1), "has stm_offsets that do not ascend");
    check(Layout::Csr, &element("stm_offsets", 3, -5), "has stm_offsets that do not ascend");
    check(Layout::Csr, &element("nstm_offsets", 50, i32::MAX), "has nstm_offsets that do not ascend");
    check(Layout::Csr, &element("stm_indices", 0, 768), "has stm_indices up to 768, and the set has 768");
    check(Layout::Csr, &element("nstm_indices", 9, -1), "has nstm_indices up to 4294967295");
    check(Layout::Csr, &|it| it.byte = 200, "announced slot 200, which does not exist");
}

#[test]
fn descriptions_that_cannot_be_followed_are_errors() {
    let recorded = Recorded::new(Layout::Csr);
    let check = |spoil: &dyn Fn(&mut Value), message: &str| {
        let mut line = recorded.line.clone();
        spoil(&mut line);
        let Recorded { folder: _, line: _, memory, byte } = &recorded;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let spoilt = Recorded { folder, line, memory: memory.clone(), byte: *byte };
        let error = spoilt.start().err().expect("refused").to_string();
        assert!(error.contains(message), "{error} instead of {message}");
    };
    check(&|line| line["slots"] = json!(0), "describes 0 slots");
    check(&|line| line["slot_bytes"] = json!(0), "slots of 0 bytes");
    check(&|line| line["slot_bytes"] = json!(u64::MAX - 63), "describes slots of");
    check(&|line| line["slot_bytes"] = json!(1u64 << 40), "bytes, ");
    check(&|line| line["shm"] = json!("/dev/shm/nowhere"), "open the service's");
    check(&|line| line["positions_per_sample"] = json!(3), "3 positions a sample");
    check(&|line| line["arrays"][0]["offset"] = json!(u64::MAX - 63), "does not lie in a slot");
    check(&|line| line["arrays"][0]["len"] = json!(u64::MAX), "does not lie in a slot");
    check(&|line| line["arrays"][0]["count"] = json!("words"), "stm_offsets is of another kind");
    check(&|line| line["arrays"][1]["dtype"] = json!(Dtype::U8), "stm_indices is of another kind");
    check(&|line| drop(line["arrays"].as_array_mut().expect("a list").pop()), "describes no array sample_index");
    check(&|line| line["version"] = json!(9), "speaks version 9");
    check(&|line| *line = json!([]), "no description");
    let endless = Client::start({
        let mut command = Command::new("sh");
        command.args(["-c", "tr '\\0' x < /dev/zero"]);
        command
    });
    let error = endless.err().expect("refused").to_string();
    assert!(error.contains("first line is longer than"), "{error}");
}
