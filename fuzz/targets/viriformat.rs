#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded(
    "viriformat",
    bytes,
    fsbench_fuzz::checks::viriformat
));
