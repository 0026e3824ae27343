#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded("foreign_text", bytes, fsbench_fuzz::checks::foreign_text));
