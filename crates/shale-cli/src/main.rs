//! The `shale` command.
fn main() {}
