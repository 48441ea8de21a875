//! See `shaledb::fuzz::manifest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::manifest(data));
