//! Lines on the standard streams that nobody has to read: where the reader has gone away, work goes
//! on. (`println!` and `eprintln!` panic there.)

use std::io::Write;

/// A line on the standard output.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A line on the standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
