//! See `shale::fuzz::ops`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::ops(data));
