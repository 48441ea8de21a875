//! Tasks of the developers: comparisons with peers, sanitizers, long tests.
fn main() {}
