//! See `shaledb::fuzz::entry`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::entry(data));
