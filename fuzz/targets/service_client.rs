#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fsbench_fuzz::bounded(
    "service_client",
    bytes,
    fsbench_fuzz::checks::service_client
));
