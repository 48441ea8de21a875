//! Why the lab cannot do something, of a kind that a program can tell from others.

use std::fmt;
use std::io;
use std::path::Path;

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for does not fit together, or does not exist.
    Usage,
    /// A run is not there.
    Missing,
    /// Another process works on it.
    Busy,
    /// A disk is full or would be.
    DiskFull,
    /// The system refused an operation on a file.
    Io,
    /// Anything else.
    Other,
}

impl Kind {
    /// Of what the system has refused.
    pub fn of_system(error: &io::Error) -> Kind {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::DiskFull,
            _ => Kind::Io,
        }
    }
}

/// A problem, in words.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    text: String,
}

impl Problem {
    /// Of a kind, with the words for it.
    pub fn new(kind: Kind, text: impl Into<String>) -> Problem {
        Problem { kind, text: text.into() }
    }

    /// A file with which something could not be done, such as `read`.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Problem {
        let text = format!("could not {what} {}: {error}", path.display());
        Problem::new(Kind::of_system(error), text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_kind_of_its_own() {
        let of = |kind: io::ErrorKind| Problem::file("write", Path::new("a"), &kind.into());
        assert_eq!(of(io::ErrorKind::StorageFull).kind, Kind::DiskFull);
        assert_eq!(of(io::ErrorKind::PermissionDenied).kind, Kind::Io);
        assert!(of(io::ErrorKind::NotFound).to_string().starts_with("could not write a: "));
    }
}
