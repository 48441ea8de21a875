//! See `shaledb::fuzz::block`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::block(data));
