//! Lines on the standard streams that nobody has to read: where the reader has gone away, work goes
//! on. (`println!` and `eprintln!` panic there.)

use std::io::{ErrorKind, Write};

/// A line on the standard output.
///
/// # Errors
/// It cannot be written, as to a full disk; but for a reader that has gone away.
pub fn tell(text: &str) -> std::io::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A line on the standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
