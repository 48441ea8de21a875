//! Lines of a key, a tab and a value.
//!
//! With escapes, a carriage return in a key or value is written `\r`; so one before a line end is a
//! part of the end. Without, it might be a part of the value: all lines end as the first one does.

use super::buffer::{Buffer, LineEnd};
use super::record::{Problem, Record};
use crate::text::unescape;
use std::io::Read;

pub(super) struct Pairs {
    lines: Buffer,
    escaped: bool,
    first_end: Option<LineEnd>,
}

impl Pairs {
    pub(super) fn new(input: Box<dyn Read>, max: usize, escaped: bool) -> Pairs {
        Pairs { lines: Buffer::new(input, max), escaped, first_end: None }
    }

    /// Reads the next pair; gives its line.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<Option<u64>, Problem> {
        loop {
            let Some((line, text, end)) = self.lines.next_line()? else { return Ok(None) };
            let first_end = *self.first_end.get_or_insert(end);
            if text.is_empty() {
                continue;
            }
            let bad = |what: String| Problem::Row(line, what);
            if !self.escaped && end != first_end && end != LineEnd::File {
                return Err(bad(format!(
                    "the line ends with {}, but the first line ends with {}. A carriage return \
                     may be part of the value: use --escaped, and write \\r for it",
                    end.name(),
                    first_end.name()
                )));
            }
            if memchr::memchr(b'\r', text).is_some() {
                return Err(bad(
                    "there is a carriage return in the line, which may end a line or be part of a \
                     value. End lines with LF, and write \\r in values with --escaped"
                        .to_owned(),
                ));
            }
            pair(text, self.escaped, record).map_err(bad)?;
            return Ok(Some(line));
        }
    }
}

impl LineEnd {
    fn name(self) -> &'static str {
        match self {
            LineEnd::File => "the file",
            LineEnd::Lf => "LF",
            LineEnd::CrLf => "CR LF",
        }
    }
}

fn pair(line: &[u8], escaped: bool, record: &mut Record) -> Result<(), String> {
    let at = memchr::memchr(b'\t', line)
        .ok_or("there is no tab between the key and the value. Check the --format")?;
    let (key, value) = (&line[..at], &line[at + 1..]);
    if escaped {
        record.key = unescape(key)?;
        record.value = unescape(value)?;
    } else {
        record.key.extend(key);
        record.value.extend(value);
    }
    Ok(())
}
