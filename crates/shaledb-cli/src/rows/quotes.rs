//! Watches what the CSV reader is given, for what that reader lets pass: a quote that never ends,
//! and text between a closing quote and the next delimiter. It also counts lines, which end with
//! LF, CR LF or a CR, and bounds what one row may have the reader keep.
//!
//! It knows where fields begin as the reader does: after a delimiter, a line end, or at the start.

use super::record::too_long;
use std::collections::VecDeque;
use std::io::{self, Read};

/// A reader in between.
pub(super) struct Watched {
    input: Box<dyn Read>,
    delimiter: u8,
    has_quotes: bool,
    state: State,
    /// The byte before the next one; a line end before the first one.
    previous: u8,
    /// How many bytes have passed.
    offset: u64,
    /// Where lines have ended that no row has been taken from yet.
    line_ends: VecDeque<u64>,
    /// The line ends that rows were taken from.
    lines: u64,
    /// Where text follows a closing quote.
    strays: VecDeque<u64>,
    /// The line of the quote that opened last.
    opened_line: u64,
    row_start: u64,
    max: usize,
    is_at_end: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Outside,
    Inside,
    /// After a quote inside quotes: the field ends, or the quote is doubled.
    Quote,
}

impl Watched {
    pub(super) fn new(
        input: Box<dyn Read>,
        delimiter: u8,
        has_quotes: bool,
        max: usize,
    ) -> Watched {
        Watched {
            input,
            delimiter,
            has_quotes,
            state: State::Outside,
            previous: b'\n',
            offset: 0,
            line_ends: VecDeque::new(),
            lines: 0,
            strays: VecDeque::new(),
            opened_line: 0,
            row_start: 0,
            max,
            is_at_end: false,
        }
    }

    /// The line of a quote that is open at the end of the input.
    pub(super) fn open_at_end(&self) -> Option<u64> {
        (self.is_at_end && self.state == State::Inside).then_some(self.opened_line)
    }

    /// Takes what is known of a row that ends before `end`: in which line it ends, and whether text
    /// follows a closing quote in it.
    pub(super) fn take_row(&mut self, end: u64) -> (u64, bool) {
        while self.line_ends.front().is_some_and(|&at| at < end) {
            self.line_ends.pop_front();
            self.lines += 1;
        }
        let mut stray = false;
        while self.strays.front().is_some_and(|&at| at < end) {
            self.strays.pop_front();
            stray = true;
        }
        self.row_start = end;
        // The last row may have no line end.
        let cut = self.is_at_end && end == self.offset && !matches!(self.previous, b'\n' | b'\r');
        (self.lines + u64::from(cut), stray)
    }

    /// Whether a row that ends before `end` is.
    pub(super) fn is_too_long(&self, end: u64) -> bool {
        end - self.row_start > self.max as u64
    }

    /// The longest row.
    pub(super) fn row_bytes_max(&self) -> usize {
        self.max
    }

    /// The line in which the row begins that was not taken yet.
    pub(super) fn next_line(&self) -> u64 {
        self.lines + 1
    }

    fn watch(&mut self, chunk: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match self.state {
                State::Quote => {
                    let ends = byte == self.delimiter || matches!(byte, b'\r' | b'\n');
                    self.state = if byte == b'"' { State::Inside } else { State::Outside };
                    if byte == b'"' {
                        self.previous = byte;
                        at += 1;
                    } else if !ends {
                        self.strays.push_back(self.offset + at as u64);
                    }
                }
                State::Inside => {
                    let quote = memchr::memchr(b'"', &chunk[at..]);
                    let end = quote.map_or(chunk.len(), |quote| at + quote);
                    for line_end in memchr::memchr_iter(b'\n', &chunk[at..end]) {
                        self.line_ends.push_back(self.offset + (at + line_end) as u64);
                    }
                    self.previous = chunk[end.min(chunk.len() - 1)];
                    if quote.is_some() {
                        self.state = State::Quote;
                    }
                    at = end + usize::from(quote.is_some());
                }
                State::Outside => at = self.watch_outside(chunk, at),
            }
        }
        self.offset += chunk.len() as u64;
    }

    /// Up to the next quote that opens a field, which is passed over.
    fn watch_outside(&mut self, chunk: &[u8], start: usize) -> usize {
        let mut end = chunk.len();
        let mut opens = false;
        if self.has_quotes {
            for quote in memchr::memchr_iter(b'"', &chunk[start..]).map(|quote| start + quote) {
                let before = if quote > start { chunk[quote - 1] } else { self.previous };
                if before == self.delimiter || matches!(before, b'\r' | b'\n') {
                    (end, opens) = (quote, true);
                    break;
                }
            }
        }
        for at in memchr::memchr2_iter(b'\n', b'\r', &chunk[start..end]).map(|at| start + at) {
            let before = if at > start { chunk[at - 1] } else { self.previous };
            // Of CR LF the CR counts.
            if chunk[at] == b'\r' || before != b'\r' {
                self.line_ends.push_back(self.offset + at as u64);
            }
        }
        if opens {
            self.state = State::Inside;
            self.opened_line = self.lines + self.line_ends.len() as u64 + 1;
            self.previous = b'"';
            return end + 1;
        }
        if end > start {
            self.previous = chunk[end - 1];
        }
        end
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // All that passed after the last row is of one that is not complete.
        if self.is_too_long(self.offset) {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long(self.max)));
        }
        let read = loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.is_at_end = read == 0;
        self.watch(&buffer[..read]);
        Ok(read)
    }
}
