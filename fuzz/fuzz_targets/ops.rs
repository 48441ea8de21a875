//! See `shaledb::fuzz::ops`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::ops(data));
