//! `fsbench net` and `eval` on malformed files: status 2 and one line with the reason.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Output};

fn fsbench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fsbench")).args(arguments).output().unwrap()
}

#[test]
fn broken_files_are_bad_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.nnue");
    let name = path.to_str().unwrap();
    let check = |bytes: &[u8], expected: &str| {
        std::fs::write(&path, bytes).unwrap();
        for arguments in [&["net", "info", name][..], &["eval", "--net", name, "--fen", "8/8/8/8/8/8/8/Kk6 w - -"]] {
            let output = fsbench(arguments);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{error}");
            assert!(output.stdout.is_empty() && error.contains(expected), "{error}");
        }
    };
    let header = |hash: u32, length: u32| [0x7AF3_2F20u32, hash, length].map(u32::to_le_bytes).concat();
    check(&header(0x1C10_2EF2, u32::MAX), "the description needs 4294967295 bytes from byte 12");
    check(&header(0x1C10_2EF2, 0), "the file ends at byte 12");
    check(&header(0x1234_5678, 0), "hash 12345678 belongs to no known architecture");
    check(b"", "is not a complete safetensors file");
    let output = fsbench(&["net", "info", name, "--arch", "stockfish-11"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("known are stockfish-12, stockfish-14"));
}
