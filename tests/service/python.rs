//! The Python client sees what the Rust client sees.

use std::process::{Command, Stdio};

use fsbench::data::Method;
use fsbench::service::{Layout, Request};
use serde_json::{Value, json};

use super::fixture::{Copied, Fixture, all, program};

const SUMMARISE: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from samples_client import Samples
with Samples(sys.argv[2:]) as samples:
    for batch in samples:
        print(json.dumps({name: value if isinstance(value, int) else value.tolist() for name, value in batch.items()
                          if name != "result" and name != "score"}))
"#;

fn python_is_able() -> bool {
    let run = Command::new("python3").args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    let able = run.is_ok_and(|status| status.success());
    if !able {
        println!("skipped: python3 with numpy is not installed");
    }
    able
}

fn scripts() -> String {
    format!("{}/scripts", env!("CARGO_MANIFEST_DIR"))
}

fn value(batch: &Copied, layout: Layout) -> Value {
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
    if !python_is_able() {
        return;
    }
    for (method, layout) in [(Method::Eval, Layout::Csr), (Method::Pqr, Layout::Bitset)] {
        let fixture = Fixture::new(method);
        let request = Request { layout, ..fixture.request() };
        let run = Command::new("python3")
            .args(["-c", SUMMARISE, &scripts()])
            .arg(program())
            .args(request.arguments())
            .output()
            .expect("python runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let lines = String::from_utf8(run.stdout).expect("text");
        let seen: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("json")).collect();
        let expected: Vec<Value> = all(&request).iter().map(|batch| value(batch, layout)).collect();
        assert!(!expected.is_empty() && seen == expected);
    }
}

#[test]
fn the_python_command_passes_on_why_a_service_failed() {
    if !python_is_able() {
        return;
    }
    let request = Request::new("piece", "/nowhere.fsd", Method::Eval);
    let run = Command::new("python3")
        .args([&format!("{}/samples_client.py", scripts()), "--"])
        .arg(program())
        .args(request.arguments())
        .output()
        .expect("python runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{errors}");
    assert!(errors.contains("ended before its first batch (exit status 2); it said:"), "{errors}");
}

#[test]
fn the_pytorch_example_learns() {
    if !python_is_able() {
        return;
    }
    let fixture = Fixture::new(Method::Eval);
    let request = Request { epochs: 20, ..fixture.request() };
    let run = Command::new("python3")
        .args([&format!("{}/train_pytorch.py", scripts()), "--l1", "16", "--steps", "0", "--lr", "0.003", "--"])
        .arg(program())
        .args(request.arguments())
        .output()
        .expect("python runs");
    let (text, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{errors}");
    if text.starts_with("skipped") {
        println!("{text}");
        return;
    }
    let losses: Vec<f64> =
        text.lines().last().expect("a summary").split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(losses.len() == 2 && losses[1] < losses[0], "{text}");
}
