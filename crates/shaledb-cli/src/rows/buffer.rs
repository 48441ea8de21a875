//! Bytes that were read and not used yet, by line or by hand.

use super::record::{Problem, too_long};
use std::io::{self, Read};

const READ_BYTES: usize = 128 << 10;

/// A window of the input that grows as far as one row needs.
pub(super) struct Buffer {
    input: Box<dyn Read>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    is_at_end: bool,
    max: usize,
    /// Of the first byte of the window, from 1.
    line: u64,
}

/// A line: its number, its text and its end.
pub(super) type Line<'a> = (u64, &'a [u8], LineEnd);

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The file did.
    File,
    Lf,
    CrLf,
}

impl Buffer {
    pub(super) fn new(input: Box<dyn Read>, max: usize) -> Buffer {
        let bytes = vec![0; READ_BYTES];
        Buffer { input, bytes, start: 0, end: 0, is_at_end: false, max, line: 1 }
    }

    /// The bytes that are there.
    pub(super) fn window(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The line of the window's first byte.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Reads more; false at the end of the input.
    pub(super) fn more(&mut self) -> Result<bool, Problem> {
        if self.is_at_end {
            return Ok(false);
        }
        self.check(self.end - self.start)?;
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.bytes.len() - self.end < READ_BYTES / 2 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        let read = loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        self.is_at_end = read == 0;
        Ok(read > 0)
    }

    /// Refuses a row of the window that is too long, also if it happens to be there as a whole.
    pub(super) fn check(&self, bytes: usize) -> Result<(), Problem> {
        match bytes > self.max {
            true => Err(Problem::Rest(self.line, too_long(self.max))),
            false => Ok(()),
        }
    }

    /// Passes over bytes of the window.
    pub(super) fn pass(&mut self, count: usize) -> &[u8] {
        let passed = &self.bytes[self.start..self.start + count];
        self.start += count;
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        passed
    }

    /// Passes over the next line.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>, Problem> {
        let mut looked = 0;
        let (length, end) = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.window()[looked..]) {
                let at = looked + at;
                self.check(at)?;
                break match at > 0 && self.window()[at - 1] == b'\r' {
                    true => (at - 1, LineEnd::CrLf),
                    false => (at, LineEnd::Lf),
                };
            }
            looked = self.window().len();
            if !self.more()? {
                if looked == 0 {
                    return Ok(None);
                }
                break (looked, LineEnd::File);
            }
        };
        let number = self.line;
        self.line += u64::from(end != LineEnd::File);
        let text = self.start..self.start + length;
        self.start = text.end
            + match end {
                LineEnd::File => 0,
                LineEnd::Lf => 1,
                LineEnd::CrLf => 2,
            };
        Ok(Some((number, &self.bytes[text], end)))
    }
}
