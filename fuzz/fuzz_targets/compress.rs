//! See `shaledb::fuzz::compress`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::compress(data));
