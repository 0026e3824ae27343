//! The fuzz targets' kept inputs (`fuzz/seeds`) pass the targets' checks, on the stable toolchain too: inputs that once
//! were findings are among them. An ignored test writes the seeds that fsbench makes itself.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

#[path = "../fuzz/checks/mod.rs"]
mod checks;
#[path = "fuzz_seeds/made.rs"]
mod made;
#[cfg(feature = "report")]
#[path = "fuzz_seeds/records.rs"]
mod records;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target)
}

/// Far longer than any seed takes.
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn every_kept_input_passes_its_check() {
    for (target, check) in checks::ALL {
        let inputs: Vec<PathBuf> =
            std::fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{target} has no seeds");
        for path in inputs {
            println!("{}", path.display());
            let start = Instant::now();
            check(&std::fs::read(&path).unwrap());
            assert!(start.elapsed() < TIMEOUT, "{}: {:?}", path.display(), start.elapsed());
        }
    }
}

/// Seeds must get past the first checks of their format, or mutations of them find little.
#[test]
fn seeds_are_accepted() {
    for (target, seeds) in made::seeds() {
        for (name, bytes) in seeds {
            assert!(made::is_accepted(target, &bytes), "{target}/{name}");
            // Seeds are the same wherever they are made.
            let folder = std::env::temp_dir();
            let named = memchr::memmem::find(&bytes, folder.as_os_str().as_encoded_bytes());
            assert_eq!(named, None, "{target}/{name} names a temporary folder");
        }
    }
}

/// Writes what [`made::seeds`] makes: `cargo test --release --test fuzz_seeds -- --ignored`.
#[test]
#[ignore = "changes the kept seeds"]
fn write_seeds() {
    for (target, seeds) in made::seeds() {
        std::fs::create_dir_all(folder(target)).unwrap();
        for (name, bytes) in seeds {
            std::fs::write(folder(target).join(name), bytes).unwrap();
        }
    }
}
