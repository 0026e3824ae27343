//! Records that no file in the repository holds, one of each kind, with every optional key.

use fsbench::record::{
    CostRatio, EqualSpeedRecord, ImportanceRecord, LossRecord, NetResult, PositionRecord, ShardRecord,
    write_checked_json,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

const IDENTITY: &str = "a72761e8cf6688b0561603b76bba78958d1586db49ce5f68b709e4e21f5c560a";

/// Names and bytes.
pub fn all(folder: &TempDir) -> Vec<(String, Vec<u8>)> {
    vec![
        ("loss".into(), read::<LossRecord>(&loss())),
        ("importance".into(), read::<ImportanceRecord>(&importance())),
        ("equal-speed".into(), read::<Vec<NetResult<EqualSpeedRecord>>>(&equal_speed())),
        ("position".into(), read::<PositionRecord>(&position())),
        ("shard".into(), read::<ShardRecord>(&json!({ "first": 3, "half_points": [0, 1, 2, 3, 4] }))),
        ("cost".into(), stored(folder, &cost())),
    ]
}

/// A document that is read as a `T` with all its keys.
fn read<T: DeserializeOwned + Serialize>(document: &Value) -> Vec<u8> {
    let value: T = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&value).unwrap(), *document);
    document.to_string().into_bytes()
}

/// A document in an envelope with its checksum.
fn stored<T: Serialize>(folder: &TempDir, value: &T) -> Vec<u8> {
    let path = folder.path().join("stored.json");
    write_checked_json(&path, value).unwrap();
    std::fs::read(path).unwrap()
}

fn data() -> Value {
    json!({ "path": "games.fsd", "format": "fsd", "score_unit": "centipawns", "samples": 900, "without_target": 3, "games": 20 })
}

fn function() -> Value {
    json!({
        "power": 2.6, "score_scale": 410.0, "output_scale": 361.0, "lambda": 0.75, "lambda_end": 0.5, "form": "power",
        "epsilon": 10.0,
    })
}

fn loss() -> Value {
    let subset = |part: &str| json!({ "part": part, "samples": 450, "loss": 0.03125, "interval": 0.001 });
    let by = json!({
        "pieces": [subset("3-6")], "ply": [subset("0-19")], "material": [subset("-2")], "score": [subset("0-49")],
        "king": [subset("e1")], "kings": [subset("same half")],
    });
    let network = |arithmetic: &str| {
        json!({
            "network": "net.safetensors", "arithmetic": arithmetic, "name": "PIECE", "identity": IDENTITY,
            "loss": 0.03, "interval": null, "by": by,
        })
    };
    json!({
        "data": data(), "loss": function(), "clusters": "game", "networks": [network("integer"), network("float")],
        "pairs": [{ "first": 0, "second": 1, "difference": -0.001, "interval": 0.0005, "by": by }],
    })
}

fn importance() -> Value {
    let group = |value: &str| json!({ "value": value, "rows": 12, "active": 1.5, "norm": 0.25, "rise": { "mean": 0.001, "interval": null } });
    json!({
        "name": "PIECE", "identity": IDENTITY, "data": data(), "function": function(), "clusters": "sample",
        "loss": 0.03,
        "blocks": [{ "block": "pieces", "whole": group(""), "axes": [{ "axis": "role", "values": [group("pawn")] }] }],
        "rows": { "total": 768, "never_active": 5, "without_effect": 7, "epsilon": 0.5 },
    })
}

fn machine() -> Value {
    json!({
        "cpu": "a processor", "cores": 2, "back_end": "avx2", "commit": "faa6f5db93", "node_type": "small",
        "recorded": "2026-11-23T09:53:31Z",
    })
}

fn equal_speed() -> Value {
    let setup = json!({ "strategy": "lazy", "back_end": "avx2" });
    let record = json!({
        "l1": 24, "speed": { "ratio": 1.01, "low": 0.99, "high": 1.02 },
        "tried": [{ "l1": 16, "ratio": 1.4, "low": 1.3, "high": 1.5 }], "tolerance": 0.02, "reference_l1": 32,
        "strategies": [setup, setup], "positions": 5000, "rounds": 9, "machine": machine(),
    });
    json!([{ "set": "compact", "method": "eval", "seed": 1, "record": record }])
}

fn position() -> Value {
    json!({
        "fen": "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "score": 93.5,
        "features": [{ "perspective": "white", "index": 17, "block": "pieces", "values": "P e2", "contribution": 80.25 }],
        "pieces": [{ "piece": "P", "square": "e2", "contribution": 90.0 }],
    })
}

fn cost() -> CostRatio {
    let document = json!({
        "nanoseconds_per_node": [812.5, 1020.25], "ratio": 0.796, "low": 0.79, "high": 0.802, "rounds": 31,
        "machine": machine(),
    });
    serde_json::from_value(document).unwrap()
}
