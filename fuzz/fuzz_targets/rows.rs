//! See `shale_cli::fuzz::rows`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale_cli::fuzz::rows(data));
