//! See `shale::fuzz::compress`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::compress(data));
