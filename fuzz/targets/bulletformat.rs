#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { let _ = bytes; let _ = fsbench::features::FeatureSet::from_definition("a"); });
