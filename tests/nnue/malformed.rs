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
    check(&header(0x1234_5678, 0), "version 7af32f20 with hash 12345678 is no Stockfish network");
    // Another program's network says in its description whose it is.
    let mut shogi = [0x7AF3_2F16u32, 0x3C10_3E72, 30].map(u32::to_le_bytes).concat();
    shogi.extend(b"Features=HalfKP[125388->256x2]and its weights");
    check(&shogi, "version 7af32f16 with hash 3c103e72 is no Stockfish network");
    check(&shogi, "it calls itself \"Features=HalfKP[125388->256x2]\"");
    check(&shogi, "stockfish-14 (7af32f20, 3c103e72)");
    check(&[&[9, 0, 0, 1][..], &[0; 99]].concat(), "byte 0: version 01000009 is not of a .nnue file");
    check(b"", "is an empty file");
    check(b"<!DOCTYPE html>\n<html><title>404</title></html>", "is an HTML page");
    check(b"\n<HTML lang=\"en\">", "is an HTML page");
    check(b"version https://git-lfs.github.com/spec/v1\noid sha256:01\nsize 12345", "is a Git LFS pointer");
    check(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], "is a compressed file (gzip; decompress it first)");
    check(&[0x28, 0xb5, 0x2f, 0xfd, 4, 0, 0, 0, 0, 3], "is a compressed file (zstd; decompress it first)");
    check(b"PK\x03\x04\0\0archive/data.pkl", "is a zip archive, not a network");
    check(b"[Event \"x\"]\n\n1. e4 e5 *\n", "is text, not a network");
    check(b"BINP\0\0\0\0\0\0\0\0", "is a Stockfish binpack, not a network");
    let output = fsbench(&["net", "info", name, "--arch", "stockfish-11"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("known are stockfish-12, stockfish-14"));
}
