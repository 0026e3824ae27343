#![no_main]
//! Every target in one program, which is linked once: the variable FSBENCH_FUZZ_TARGET names the one to run.

use std::sync::LazyLock;

use fsbench_fuzz::checks::{ALL, Check};
use fsbench_fuzz::mutate::{is_text, mutate};

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FSBENCH_FUZZ_TARGET").expect("FSBENCH_FUZZ_TARGET names a target"));

static CHECK: LazyLock<Check> = LazyLock::new(|| {
    let found = ALL.iter().find(|(target, _)| *target == *TARGET);
    found.unwrap_or_else(|| panic!("there is no target {} in this build", *TARGET)).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded(&TARGET, bytes, *CHECK));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 || !is_text(&TARGET) {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    mutate(&TARGET, data, size, max_size, seed)
});
