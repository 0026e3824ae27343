//! The Python clients read the same batches as the Rust client.

use std::process::{Command, Stdio};

use fsbench::data::Method;
use fsbench::service::{Layout, Request, ShmNaming};
use serde_json::{Value, json};

use super::fixture::{CopiedBatch, Fixture, all_batches, program};
use super::skip::skip;

const SUMMARISE: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from samples_client import Samples
with Samples(sys.argv[2:]) as samples:
    for batch in samples:
        print(json.dumps({name: value if isinstance(value, int) else value.tolist() for name, value in batch.items()
                          if name != "result" and name != "score"}))
"#;

/// A consumer that uses only the standard library and was written from PROTOCOL.md alone: the document must suffice.
const FROM_PROTOCOL: &str = r#"
import json, mmap, struct, subprocess, sys
service = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
line = b""
while not line.endswith(b"\n"):
    line += service.stdout.read(1)
about = json.loads(line)
with open(about["shm"], "rb") as file:
    memory = mmap.mmap(file.fileno(), about["slots"] * about["slot_bytes"], prot=mmap.PROT_READ)
letters = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "f32": "f"}
def read(slot, about, count):
    return struct.unpack_from(f"<{count}{letters[about['dtype']]}", memory, slot * sizes + about["offset"])
sizes = about["slot_bytes"]
while True:
    byte = service.stdout.read(1)
    if not byte or byte[0] == 254:
        sys.exit("the service died or failed")
    if byte[0] == 255:
        break
    slot = byte[0]
    header = {field["name"]: read(slot, field, 1)[0] for field in about["header"]}
    batch = {name: header[name] for name in ("samples", "positions", "epoch", "batch")}
    for array in about["arrays"]:
        if array["name"] not in ("score", "result"):
            batch[array["name"]] = read(slot, array, header[array["count"]])
    print(json.dumps(batch))
    service.stdin.write(byte)
sys.exit(service.wait())
"#;

fn has_numpy() -> bool {
    let run = Command::new("python3").args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    let has_numpy = run.is_ok_and(|status| status.success());
    if !has_numpy {
        skip("numpy", "python3 with numpy is not installed");
    }
    has_numpy
}

fn scripts() -> String {
    format!("{}/scripts", env!("CARGO_MANIFEST_DIR"))
}

fn value(batch: &CopiedBatch, layout: Layout) -> Value {
    let mut value = json!({
        "samples": batch.samples, "positions": batch.positions, "epoch": batch.epoch, "batch": batch.number,
        "piece_count": batch.piece_counts, "ply": batch.plies, "sample_index": batch.sample_indices,
    });
    for (side, name) in ["stm", "nstm"].into_iter().enumerate() {
        match layout {
            Layout::Csr => {
                value[format!("{name}_offsets")] = json!(batch.csr[side].0);
                value[format!("{name}_indices")] = json!(batch.csr[side].1);
            }
            Layout::Bitset => value[format!("{name}_bits")] = json!(batch.bits[side]),
        }
    }
    value
}

#[test]
fn the_python_client_reads_the_same_batches() {
    if !has_numpy() {
        return;
    }
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        let request = Request { layout, ..fixture.request() };
        let expected: Vec<Value> = all_batches(&request).iter().map(|batch| value(batch, layout)).collect();
        for (shm, slots) in [(ShmNaming::Unnamed, 1), (ShmNaming::Named, 3)] {
            let seen = lines(SUMMARISE, &[&scripts()], &Request { shm, slots: Some(slots), ..request.clone() });
            assert!(!expected.is_empty() && seen == expected);
        }
    }
}

/// The JSON lines that a script prints about a request's batches.
fn lines(script: &str, before: &[&str], request: &Request) -> Vec<Value> {
    let mut command = Command::new("python3");
    command.args(["-c", script]).args(before).arg(program()).args(request.arguments().expect("UTF-8"));
    let run = command.output().expect("python runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let lines = String::from_utf8(run.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("json")).collect()
}

#[test]
fn a_consumer_written_from_the_protocol_reads_the_same_batches() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|run| run.status.success()) {
        skip("python", "python3 is not installed");
        return;
    }
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        let request = Request { layout, ..fixture.request() };
        let expected: Vec<Value> = all_batches(&request).iter().map(|batch| value(batch, layout)).collect();
        for (shm, slots) in [(ShmNaming::Unnamed, 3), (ShmNaming::Named, 1)] {
            let request = Request { shm, slots: Some(slots), ..request.clone() };
            assert!(!expected.is_empty() && lines(FROM_PROTOCOL, &[], &request) == expected);
        }
    }
}

#[test]
fn the_python_command_says_why_a_service_failed() {
    if !has_numpy() {
        return;
    }
    let request = Request::new("piece", "/nowhere.fsd", Method::Eval);
    let run = Command::new("python3")
        .args([&format!("{}/samples_client.py", scripts()), "--"])
        .arg(program())
        .args(request.arguments().expect("UTF-8"))
        .output()
        .expect("python runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{errors}");
    assert!(errors.contains("ended before its first batch (exit status 2); it says:"), "{errors}");
}
