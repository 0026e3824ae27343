#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded(
    "bullet_raw",
    bytes,
    fsbench_fuzz::checks::bullet_raw
));
