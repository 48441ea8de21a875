//! See `shale::fuzz::table_roundtrip`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::table_roundtrip(data));
