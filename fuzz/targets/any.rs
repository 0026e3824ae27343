#![no_main]
//! Every target in one program, which is linked once: the variable FSBENCH_FUZZ_TARGET names the one to run.

use std::sync::LazyLock;

use fsbench_fuzz::checks::{ALL, Check};

static CHECK: LazyLock<Check> = LazyLock::new(|| {
    let name = std::env::var("FSBENCH_FUZZ_TARGET").expect("FSBENCH_FUZZ_TARGET names a target");
    let found = ALL.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("there is no target {name} in this build")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded(bytes, *CHECK));
