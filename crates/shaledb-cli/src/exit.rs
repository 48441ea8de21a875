//! How a command ends: exit codes, and errors as people and programs read them.

use shaledb_lab::problem::{Kind, Problem};
use shaledb_lab::say;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The codes, as `shale --help` documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// A key that was asked for is not there.
    NotFound = 1,
    /// The command line is wrong, or a setting is.
    Usage = 2,
    /// The system refused an operation on a file.
    Io = 3,
    /// Data on disk is damaged.
    Corruption = 4,
    /// Another process has the database open.
    Locked = 5,
    /// There is no such database or tree.
    NoSuch = 6,
    /// Input to import is bad, or a row does not fit the format of an export.
    BadInput = 7,
    /// The disk is full, or the limit on space is reached.
    DiskFull = 8,
    /// Anything else.
    Other = 9,
    /// `bench report --fail-on-regression` found one.
    Regressed = 10,
    /// The user stopped it.
    Stopped = 130,
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Exit {
        match kind {
            Kind::Usage => Exit::Usage,
            Kind::Missing => Exit::NoSuch,
            Kind::Busy => Exit::Locked,
            Kind::DiskFull => Exit::DiskFull,
            Kind::Io => Exit::Io,
            Kind::Other => Exit::Other,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The part of the help that documents the codes.
pub(crate) const CODES: &str = "\
Exit codes:
  0  done
  1  a key that was asked for is not there
  2  the command line or a setting is wrong
  3  the system refused an operation on a file
  4  data on disk is damaged (`shale verify` lists all damage, `shale repair` salvages)
  5  another process has the database open, or works on the run
  6  there is no such database, tree or run
  7  the input of an import is bad, or a row cannot be written in the format of an export
  8  no space is left on the device, or by the space limit, or a run would find none
  9  anything else
  10  a measured figure regressed (`shale bench report --fail-on-regression`)
  130  stopped by Ctrl-C or SIGTERM; the message says what was kept

Keys and values are bytes. Arguments and printed lines have escapes: \\xNN is a byte in hexadecimal,
\\t a tab, \\n and \\r line ends, \\0 a zero byte, \\\\ a backslash. With --hex they are hexadecimal
instead, with --raw the bytes themselves.

Environment:
  SHALE_LOG   what to log on the standard error, such as info or shaledb=debug";

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    text: String,
    /// What else a program may want to know.
    details: serde_json::Map<String, serde_json::Value>,
    /// The reader of our output has gone away: nothing to complain about. The code stays that of
    /// what was found.
    quiet: bool,
}

/// What every command gives.
pub(crate) type Outcome<T = Exit> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Failure {
        Failure { exit, text: text.into(), details: serde_json::Map::new(), quiet: false }
    }

    /// Adds to what is printed as JSON.
    pub(crate) fn with(mut self, name: &str, detail: impl Into<serde_json::Value>) -> Failure {
        self.details.insert(name.to_owned(), detail.into());
        self
    }

    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, text)
    }

    /// An error on a file that is not the database's.
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Failure {
        let problem = Problem::file(what, path, error);
        Failure::new(problem.kind.into(), problem.to_string())
    }

    /// What the command has found, if nobody reads what it prints of that.
    pub(crate) fn if_unread(self, exit: Exit) -> Failure {
        if self.quiet { Failure { exit, ..self } } else { self }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn object(&self) -> serde_json::Value {
        let mut object = self.details.clone();
        object.insert("error".to_owned(), self.text.as_str().into());
        object.insert("code".to_owned(), (self.exit as u8).into());
        object.into()
    }

    /// Says it, as text or as a JSON object, and gives the code.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        if !self.quiet {
            match json {
                true => say::note(&self.object().to_string()),
                false => say::note(&format!("error: {}", self.text)),
            }
        }
        self.exit.into()
    }
}

impl From<shaledb::Error> for Failure {
    fn from(error: shaledb::Error) -> Failure {
        use shaledb::Error as E;
        let exit = match &error {
            E::Io { .. } => Exit::Io,
            E::DiskFull { .. } | E::SpaceLimit { .. } => Exit::DiskFull,
            E::Corruption { .. } => Exit::Corruption,
            E::Config { .. } | E::InvalidArgument(_) => Exit::Usage,
            E::Locked { .. } => Exit::Locked,
            E::NoSuchTree(_) | E::NoDatabase(_) => Exit::NoSuch,
            _ => Exit::Other,
        };
        let hint = match &error {
            E::NoDatabase(_) => "; `shale import` or `shale put` creates one",
            E::NoSuchTree(_) => "; `shale trees` lists the trees, --tree names one",
            _ => "",
        };
        let failure = Failure::new(exit, format!("{error}{hint}"));
        match &error {
            E::Corruption { path, offset, what } => failure
                .with("file", path.to_string_lossy())
                .with("offset", *offset)
                .with("what", what.as_str()),
            _ => failure,
        }
    }
}

/// An error as an element of a list in JSON; of damage with its place.
pub(crate) fn as_json(error: &shaledb::Error) -> serde_json::Value {
    Failure::from(error.clone()).object()
}

impl From<io::Error> for Failure {
    /// An error of the standard streams.
    fn from(error: io::Error) -> Failure {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if quiet { Exit::Done } else { Kind::of_system(&error).into() };
        let text = format!("could not write to the standard output: {error}");
        Failure { quiet, ..Failure::new(exit, text) }
    }
}

impl From<shaledb_lab::stores::engine::Failure> for Failure {
    fn from(error: shaledb_lab::stores::engine::Failure) -> Failure {
        match error.downcast::<shaledb::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => match error.downcast::<io::Error>() {
                Ok(error) => (*error).into(),
                Err(error) => {
                    let kind = error.downcast_ref::<Problem>().map(|problem| problem.kind);
                    Failure::new(kind.unwrap_or(Kind::Other).into(), error.to_string())
                }
            },
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::new(Exit::Other, format!("could not write the result as JSON: {error}"))
    }
}
