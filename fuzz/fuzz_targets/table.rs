//! See `shaledb::fuzz::table`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::table(data));
