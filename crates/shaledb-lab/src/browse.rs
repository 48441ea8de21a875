//! Rows of a database that an engine has on disk, for who samples it. A driver whose engine knows
//! how much lies before a key serves it to another process, so that no engine is linked to `shale`.
//!
//! A request is a line of JSON on the driver's standard input, an answer a line of JSON on its
//! standard output; rows follow theirs as bytes. The driver ends with its input.

use crate::stores::engine::Result;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// The word on the command line by which a driver browses instead of running a step.
pub const WORD: &str = "browse";
/// The longest key or value that is taken from a driver: what a damaged answer says is not
/// allocated.
const BYTES_MAX: usize = 1 << 30;

/// What an engine says of a whole tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Entries of the tables, replaced ones and deletes too.
    pub table_entries: u64,
    /// Entries in memory.
    pub memtable_entries: u64,
    /// Bytes of keys and values in the tables before compression; 0 if that is not known.
    pub raw_bytes: u64,
    /// Whether there are values that [`Browse::stored_before`] does not count: in files of their
    /// own, or in memory.
    pub has_uncounted: bool,
    /// The last key; `None` if there are no rows.
    pub last: Option<Vec<u8>>,
    /// The other trees of the database, if this one has no rows.
    pub others: Vec<String>,
}

/// A row, and what is stored before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// As [`Browse::stored_before`] its key; 0 if that was not asked for.
    pub before: u64,
}

/// A tree that is read at places which its reader chooses by what is stored before them.
pub trait Browse {
    /// What the engine says of the whole.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn about(&mut self) -> Result<About>;

    /// About how many bytes tables have of rows before a key.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn stored_before(&mut self, key: &[u8]) -> Result<u64>;

    /// Rows in order from the first key that is not less than `from`, until they have `bytes` of
    /// keys and values: at least one, unless there are no more. What is stored before each is
    /// looked up with `places` only: that takes longer than the row.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    fn rows(&mut self, from: &[u8], bytes: u64, places: bool) -> Result<Vec<Entry>>;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    About,
    StoredBefore(Vec<u8>),
    Rows(Vec<u8>, u64, bool),
}

/// What a request gets: for rows how many follow.
type Answer<T> = std::result::Result<T, String>;

/// What a driver's main function does when its first argument is [`WORD`]: it opens what the next
/// two name, the folder and the tree, and serves it.
pub fn main<B: Browse>(open: impl FnOnce(&Path, &str) -> Result<B>) -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    let served = match arguments.as_slice() {
        [folder, tree] => serve(
            open(Path::new(folder), &tree.to_string_lossy()),
            &mut std::io::stdin().lock(),
            &mut std::io::BufWriter::new(std::io::stdout().lock()),
        ),
        _ => Err(format!("{WORD} takes a folder and the name of a tree").into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::say::note(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn serve<B: Browse>(
    opened: Result<B>,
    requests: &mut impl BufRead,
    answers: &mut impl Write,
) -> Result<()> {
    let mut store = match opened {
        Ok(store) => store,
        Err(error) => {
            // Whoever asks gets it as the answer to the first question.
            requests.read_line(&mut String::new())?;
            return say(answers, &Answer::<()>::Err(error.to_string()));
        }
    };
    let mut line = String::new();
    while {
        line.clear();
        requests.read_line(&mut line)? > 0
    } {
        match serde_json::from_str(&line)? {
            Request::About => say(answers, &store.about().map_err(|error| error.to_string()))?,
            Request::StoredBefore(key) => {
                say(answers, &store.stored_before(&key).map_err(|error| error.to_string()))?;
            }
            Request::Rows(from, bytes, places) => {
                let rows = store.rows(&from, bytes, places).map_err(|error| error.to_string());
                say(answers, &rows.as_ref().map(Vec::len))?;
                for row in rows.into_iter().flatten() {
                    for bytes in [&row.key, &row.value] {
                        answers.write_all(&(bytes.len() as u64).to_le_bytes())?;
                        answers.write_all(bytes)?;
                    }
                    answers.write_all(&row.before.to_le_bytes())?;
                }
                answers.flush()?;
            }
        }
    }
    Ok(())
}

fn say<T: Serialize>(answers: &mut impl Write, answer: &T) -> Result<()> {
    serde_json::to_writer(&mut *answers, answer)?;
    answers.write_all(b"\n")?;
    Ok(answers.flush()?)
}

/// A tree that a driver serves.
#[derive(Debug)]
pub struct Driven {
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    driver: Child,
}

impl Driven {
    /// Starts a driver on a tree of the database in a folder.
    ///
    /// # Errors
    ///
    /// It does not start. What it cannot open it says at the first question.
    pub fn start(mut driver: Command, folder: &Path, tree: &str) -> Result<Driven> {
        driver.arg(WORD).arg(folder).arg(tree);
        driver.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut driver = driver.spawn().map_err(|error| {
            format!("could not run {}: {error}", driver.get_program().to_string_lossy())
        })?;
        let requests = driver.stdin.take();
        let answers = driver.stdout.take().ok_or("the driver has no standard output")?;
        Ok(Driven { requests, answers: BufReader::new(answers), driver })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let requests = self.requests.as_mut().ok_or("the driver has no standard input")?;
        // If it is gone, the missing answer tells.
        let _ = say(requests, request);
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the driver ended without an answer. Build it again with `cargo xtask \
                        peers` if it is older than `shale`"
                .into());
        }
        serde_json::from_str::<Answer<T>>(&line)?.map_err(Into::into)
    }

    fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.answers.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > BYTES_MAX {
            return Err(format!("the driver tells of a row of {length} bytes").into());
        }
        let mut bytes = vec![0; length];
        self.answers.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Browse for Driven {
    fn about(&mut self) -> Result<About> {
        self.ask(&Request::About)
    }

    fn stored_before(&mut self, key: &[u8]) -> Result<u64> {
        self.ask(&Request::StoredBefore(key.to_vec()))
    }

    fn rows(&mut self, from: &[u8], bytes: u64, places: bool) -> Result<Vec<Entry>> {
        let count: usize = self.ask(&Request::Rows(from.to_vec(), bytes, places))?;
        (0..count)
            .map(|_| Ok(Entry { key: self.bytes()?, value: self.bytes()?, before: self.number()? }))
            .collect()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.requests.take());
        let _ = self.driver.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Three;

    impl Browse for Three {
        fn about(&mut self) -> Result<About> {
            Ok(About { table_entries: 3, last: Some(b"c\n".to_vec()), ..About::default() })
        }

        fn stored_before(&mut self, key: &[u8]) -> Result<u64> {
            if key.is_empty() { Err("no key".into()) } else { Ok(u64::from(key[0])) }
        }

        fn rows(&mut self, from: &[u8], bytes: u64, places: bool) -> Result<Vec<Entry>> {
            let all = [b"a".as_slice(), b"b", b"c\n"].map(|key| Entry {
                key: key.to_vec(),
                value: vec![b'\n'; 70_000],
                before: if places { 7 } else { 0 },
            });
            let rows = all.into_iter().filter(|row| row.key.as_slice() >= from);
            Ok(rows.take(bytes as usize / 70_000 + 1).collect())
        }
    }

    /// Answers to requests that are written down.
    fn answers(requests: &str) -> Vec<u8> {
        let mut answers = Vec::new();
        serve(Ok(Three), &mut requests.as_bytes(), &mut answers).unwrap();
        answers
    }

    /// What `cat` says who gets such answers, whatever it is asked.
    fn driven(answers: &[u8]) -> Driven {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers");
        std::fs::write(&path, answers).unwrap();
        let mut driver = Command::new("sh");
        driver.args(["-c", "cat \"$0\""]).arg(&path);
        let mut driven = Driven::start(driver, dir.path(), "t").unwrap();
        // The file is read before the folder goes.
        driven.answers.fill_buf().unwrap();
        driven
    }

    #[test]
    fn what_is_served_is_what_is_read() {
        let requests = "\"about\"\n{\"stored_before\":[9]}\n{\"stored_before\":[]}\n\
                        {\"rows\":[[98],1000000,true]}\n{\"rows\":[[100],1,false]}\n";
        let answers = answers(requests);
        let mut driven = driven(&answers);
        assert_eq!(driven.about().unwrap(), Three.about().unwrap());
        assert_eq!(driven.stored_before(&[9]).unwrap(), 9);
        assert_eq!(driven.stored_before(&[]).unwrap_err().to_string(), "no key");
        assert_eq!(
            driven.rows(b"b", 1_000_000, true).unwrap(),
            Three.rows(b"b", 1_000_000, true).unwrap()
        );
        assert_eq!(driven.rows(b"d", 1, false).unwrap(), []);
        let ended = driven.about().unwrap_err().to_string();
        assert!(ended.contains("without an answer"), "{ended}");
    }

    #[test]
    fn what_cannot_be_opened_is_told_at_the_first_question() {
        let mut answers = Vec::new();
        let opened: Result<Three> = Err("no such folder".into());
        serve(opened, &mut "\"about\"\n".as_bytes(), &mut answers).unwrap();
        assert_eq!(driven(&answers).about().unwrap_err().to_string(), "no such folder");
    }

    #[test]
    fn damaged_answers_are_refused() {
        let mut long = b"{\"Ok\":1}\n".to_vec();
        long.extend(u64::MAX.to_le_bytes());
        let refused = driven(&long).rows(b"", 1, true).unwrap_err().to_string();
        assert!(refused.contains("18446744073709551615"), "{refused}");
        assert!(driven(b"{\"Ok\":2}\n\x01\x00").rows(b"", 1, true).is_err());
        assert!(driven(b"nothing\n").about().is_err());
    }
}
