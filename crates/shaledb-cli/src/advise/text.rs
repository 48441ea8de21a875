//! A sample of a file of rows: stretches from all over it, each begun where a record begins.

use super::records::Records;
use super::sample::{STRETCH_BYTES_MIN, Sample, Seen, Stretch, stretches_of};
use crate::exit::{Exit, Failure, Outcome};
use crate::import::source;
use shaledb_cli::rows::{self, Layout, Options, Problem, Record, Rows};
use shaledb_lab::generate::Random;
use shaledb_lab::units::bytes;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is read from the beginning only is cut into so many stretches.
const STRETCHES_OF_HEAD: u64 = 64;

/// So many rows must be right for a place to be where a record begins.
const ROWS_OF_PROOF: usize = 20;
/// So many line ends are tried.
const PLACES: usize = 200;

/// Rows of the file's beginning that are read before all else: a wrong format shows there.
const ROWS_OF_HEAD: usize = 100;

/// To find the number of a line all before it must be read, which is done for so many bytes.
const LINES_BYTES_MAX: u64 = 8 << 30;

/// Reads some `sample_bytes` of a file.
pub(super) fn sample(path: &Path, options: &Options, sample_bytes: u64) -> Outcome<Sample> {
    let stop = crate::signals::stop_flag()?;
    let name = path.display().to_string();
    let Some((mut file, length)) = seekable(path, options)? else {
        return head(path, &name, options, sample_bytes, &stop);
    };
    if length == 0 {
        return Err(bad(&name, 1, "the file is empty: there is nothing to advise on"));
    }
    refuse_binary(&mut file, &name, options)?;
    if length <= sample_bytes {
        return head(path, &name, options, u64::MAX, &stop);
    }
    let mut text = Text::open(file, length, &name, options)?;
    let count = stretches_of(sample_bytes);
    let length_of_one = sample_bytes / count;
    let mut random = Random::named(1, "advise", 0);
    let mut stretches = Vec::new();
    let mut lost = 0;
    for number in 0..count {
        let (from, to) = (length * number / count, length * (number + 1) / count);
        let room = (to - from).saturating_sub(length_of_one);
        let offset = from + random.below(room + 1);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new(Exit::Stopped, "stopped: there is no advice"));
        }
        match text.stretch(offset, length_of_one)? {
            Some(stretch) => stretches.push(stretch),
            None => lost += 1,
        }
    }
    if lost * 4 > count {
        return Err(text.no_begin()?);
    }
    let mut notes = Vec::from_iter(rowless(&stretches, length_of_one));
    if lost > 0 {
        notes.push(format!(
            "In {lost} of {count} stretches no place was found where a record begins; they were \
             left out."
        ));
    }
    let sample = Sample::new(stretches, Some(length), Seen::Spread, notes);
    if sample.rows == 0 {
        return Err(bad(&name, 1, "no row begins in what was read. Raise --sample"));
    }
    Ok(sample)
}

/// What is to be said of places in which no row begins.
pub(super) fn rowless(stretches: &[Stretch], length: u64) -> Option<String> {
    let empty = stretches.iter().filter(|stretch| stretch.rows.is_empty()).count();
    (empty > 0).then(|| {
        format!(
            "In {empty} of {} places no row begins within {}: they are in longer rows, which are \
             about as much of the source and were not read. The bounds are wider for it; a larger \
             --sample narrows them.",
            stretches.len(),
            bytes(length)
        )
    })
}

/// The file, if any place of it can be read by itself.
pub(super) fn seekable(path: &Path, options: &Options) -> Outcome<Option<(File, u64)>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let open = || -> std::io::Result<(File, std::fs::Metadata)> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        Ok((file, meta))
    };
    let (mut file, meta) = open().map_err(|error| Failure::file("open", path, &error))?;
    if !meta.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    (&mut file)
        .take(4096)
        .read_to_end(&mut start)
        .map_err(|error| Failure::file("read", path, &error))?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_array = options.layout == Layout::Json && first == Some(&b'[');
    let is_packed = rows::is_packed(&start);
    Ok((!is_array && !is_packed).then_some((file, meta.len())))
}

/// Whether a file begins as compressed ones do.
fn is_packed(path: &Path) -> Outcome<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.map_err(|error| Failure::file("read", path, &error))?;
    Ok(rows::is_packed(&start))
}

/// Text has no zero bytes; what else is wrong with it the reader of rows says.
pub(super) fn refuse_binary(file: &mut File, name: &str, options: &Options) -> Outcome<()> {
    let mut start = Vec::new();
    let read =
        file.seek(SeekFrom::Start(0)).and_then(|_| file.take(64 << 10).read_to_end(&mut start));
    read.map_err(|error| Failure::file("read", Path::new(name), &error))?;
    // UTF-16 has zero bytes too; the reader knows it and says what to do.
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        Rows::open(Box::new(Cursor::new(start.clone())), options)
            .map_err(|problem| failure(problem, name, 0))?;
    }
    let Some(at) = memchr::memchr(0, &start) else { return Ok(()) };
    let line = 1 + memchr::memchr_iter(b'\n', &start[..at]).count() as u64;
    Err(bad(name, line, &format!("byte {at} is zero, so this is no text but a binary file")))
}

/// Reads a source from its beginning: all of it, or up to a bound.
pub(super) fn head(
    path: &Path,
    name: &str,
    options: &Options,
    sample_bytes: u64,
    stop: &Arc<AtomicBool>,
) -> Outcome<Sample> {
    let source = source::open(path, stop)?;
    let is_packed = is_packed(path)?;
    let mut rows =
        Rows::open(source.input, options).map_err(|problem| failure(problem, name, 0))?;
    let stretch_bytes = sample_bytes.min(16 << 20) / STRETCHES_OF_HEAD;
    let mut stretches = vec![Stretch::default()];
    let mut record = Record::default();
    let (mut bytes_read, mut of_stretch) = (0u64, 0u64);
    let mut is_whole = false;
    // How much was stored of the rows so far, when more was last asked for: all before it was used.
    let mut known: Option<(u64, u64)> = None;
    while bytes_read < sample_bytes || known.is_none() && source.total_bytes.is_some() {
        let before = source.done_bytes.load(Ordering::Relaxed);
        let more = rows.next(&mut record).map_err(|problem| failure(problem, name, 0))?;
        if !more {
            is_whole = true;
            break;
        }
        if source.done_bytes.load(Ordering::Relaxed) > before && bytes_read > 0 {
            known = Some((before, bytes_read));
        }
        let length = (record.key.len() + record.value.len()) as u64;
        (bytes_read, of_stretch) = (bytes_read + length, of_stretch + length);
        let row = (record.key.clone(), record.value.clone());
        if let Some(stretch) = stretches.last_mut() {
            stretch.rows.push(row);
            stretch.units = of_stretch;
        }
        if of_stretch >= stretch_bytes {
            of_stretch = 0;
            stretches.push(Stretch { at: bytes_read as f64, ..Stretch::default() });
        }
    }
    stretches.retain(|stretch| !stretch.rows.is_empty());
    if stretches.is_empty() {
        return Err(bad(name, rows.line().max(1), "there are no rows: nothing to advise on"));
    }
    let stored = source.done_bytes.load(Ordering::Relaxed);
    let (stored, of_stored) = known.unwrap_or((stored, bytes_read));
    let stored = stored.max(1) as f64;
    // The last piece of a packed file may have the beginning of a block that was not used.
    let piece = if is_packed { rows::PACKED_PIECE_BYTES as f64 } else { 0.0 };
    let mut notes = Vec::new();
    // Units are bytes of rows; the file's length says how many of them there are in all.
    let total = match (is_whole, source.total_bytes) {
        (true, _) => Some(bytes_read),
        (false, Some(total)) => {
            notes.push(
                "The file can be read from its beginning only (it is compressed, or one JSON \
                 array), so nothing is known of the rest: the bounds are wide. Unpack it for \
                 better ones."
                    .to_owned(),
            );
            Some(((of_stored as f64 * total as f64 / stored) as u64).max(bytes_read))
        }
        (false, None) => {
            notes.push(format!(
                "A pipe does not tell its length: the first {} were read, and sizes are for 1 GB \
                 of keys and values.",
                bytes(bytes_read)
            ));
            None
        }
    };
    let whole = total.unwrap_or(bytes_read).max(1) as f64;
    stretches.iter_mut().for_each(|stretch| stretch.at /= whole);
    let seen = if is_whole { Seen::All } else { Seen::Head };
    let total_bound = if is_whole { 0.0 } else { piece / stored };
    Ok(Sample { total_bound, ..Sample::new(stretches, total, seen, notes) })
}

/// A file that is read here and there.
pub(super) struct Text<'a> {
    file: File,
    length: u64,
    name: &'a str,
    options: &'a Options,
    records: Records,
    /// The line that names the columns, which each stretch is read with.
    head: Vec<u8>,
    /// Why the first stretch has no begin that could be found, and where it was looked for. Lines
    /// are counted only if that is said, since all before it is read for them.
    no_begin: Option<(Problem, u64)>,
}

impl<'a> Text<'a> {
    pub(super) fn open(
        file: File,
        length: u64,
        name: &'a str,
        options: &'a Options,
    ) -> Outcome<Text<'a>> {
        let records = Records::of(options.layout);
        let mut text =
            Text { file, length, name, options, records, head: Vec::new(), no_begin: None };
        let mut start = text.read(0, STRETCH_BYTES_MIN as usize)?;
        if matches!(options.layout, Layout::Columns { header: true, .. }) {
            if start.contains(&b'\r') && !start.contains(&b'\n') && !start.contains(&b'"') {
                let what = "lines end with CR alone. Stretches of a file are found by LF: convert \
                            it, such as by tr '\\r' '\\n'";
                return Err(bad(name, 1, what));
            }
            let mut from = 0;
            text.head = loop {
                let end = text.complete(&mut start, 0, from)?;
                // Import passes over empty lines.
                let line = &start[from..end];
                let is_empty = line.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
                if is_empty && end < start.len() {
                    from = end;
                    continue;
                }
                break line.to_vec();
            };
        }
        let mut rows = text.rows(start)?;
        let mut record = Record::default();
        for _ in 0..ROWS_OF_HEAD {
            match rows.next(&mut record) {
                Ok(true) => {}
                // The last of what was read is cut off.
                Ok(false) | Err(Problem::Rest(..)) => break,
                Err(Problem::Row(line, what)) => {
                    if text.is_last(line)? {
                        break;
                    }
                    return Err(failure(Problem::Row(line, what), name, 0));
                }
                Err(problem) => return Err(failure(problem, name, 0)),
            }
        }
        Ok(text)
    }

    /// The line that names the columns; empty where there is none.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether this line is the last one of what is read first, and so may be cut off.
    fn is_last(&mut self, line: u64) -> Outcome<bool> {
        let start = self.read(0, STRETCH_BYTES_MIN as usize)?;
        Ok(line > memchr::memchr_iter(b'\n', &start).count() as u64)
    }

    fn rows(&self, text: Vec<u8>) -> Outcome<Rows> {
        Rows::open(Box::new(Cursor::new(text)), self.options)
            .map_err(|problem| failure(problem, self.name, 0))
    }

    /// The bytes from `offset` on, fewer at the end of the file.
    fn read(&mut self, offset: u64, length: usize) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        let read = self
            .file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| (&mut self.file).take(length as u64).read_to_end(&mut bytes));
        read.map_err(|error| Failure::file("read", Path::new(self.name), &error))?;
        Ok(bytes)
    }

    /// Where the record ends that begins at `from` in the bytes that stand at `offset`; reads on as
    /// far as it takes.
    fn complete(&mut self, bytes: &mut Vec<u8>, offset: u64, from: usize) -> Outcome<usize> {
        loop {
            if let Some(end) = self.records.end(bytes, from) {
                return Ok(end);
            }
            let at = offset + bytes.len() as u64;
            if at >= self.length {
                return Ok(bytes.len());
            }
            self.read_on(bytes, offset, from)?;
        }
    }

    /// Reads on in a row that is at `from` in the bytes that stand at `offset`, and has no end in
    /// them; refuses rows that are too long.
    fn read_on(&mut self, bytes: &mut Vec<u8>, offset: u64, from: usize) -> Outcome<()> {
        if bytes.len() - from > self.options.row_bytes_max {
            let what = format!(
                "the row has more than {} bytes. Check the --format, or allow longer rows with \
                 --max-row",
                self.options.row_bytes_max
            );
            let line = self.line_at(offset + from as u64)?;
            return Err(bad(self.name, line, &what));
        }
        let more = self.read(offset + bytes.len() as u64, bytes.len().max(64 << 10))?;
        if more.is_empty() {
            let error = std::io::Error::other("the file has become shorter");
            return Err(Failure::file("read", Path::new(self.name), &error));
        }
        bytes.extend(more);
        Ok(())
    }

    /// The records that begin in `length` bytes from `offset` on; `None` if no place was found
    /// where one begins.
    pub(super) fn stretch(&mut self, offset: u64, length: u64) -> Outcome<Option<Stretch>> {
        // The byte before tells whether a record begins here.
        let first =
            offset.saturating_sub(1).max(self.head.len() as u64 - u64::from(!self.head.is_empty()));
        let mut bytes = self.read(first, length as usize)?;
        let is_begin = first == 0 && self.head.is_empty();
        let start = if is_begin { Some(0) } else { self.begin(&mut bytes, first)? };
        let Some(start) = start else { return Ok(None) };
        let mut end = start;
        while (end as u64) < length && first + (end as u64) < self.length {
            end = self.complete(&mut bytes, first, end)?;
        }
        let mut text = self.head.clone();
        text.extend(&bytes[start..end]);
        let mut rows = self.rows(text)?;
        let mut record = Record::default();
        let mut stretch = Stretch {
            at: first as f64 / self.length as f64,
            units: (end - start) as u64,
            ..Stretch::default()
        };
        loop {
            match rows.next(&mut record) {
                Ok(true) => stretch.rows.push((record.key.clone(), record.value.clone())),
                Ok(false) => break,
                Err(problem) => {
                    let before = self.lines_before(first + start as u64)?;
                    return Err(failure(problem, self.name, before));
                }
            }
        }
        Ok(Some(stretch))
    }

    /// Where a record begins in the bytes that stand at `offset`. A line end may be inside of a
    /// quoted field, so a place counts if the rows from there on are right.
    fn begin(&mut self, bytes: &mut Vec<u8>, offset: u64) -> Outcome<Option<usize>> {
        let mut from = 0;
        for _ in 0..PLACES {
            let mut found = memchr::memchr(b'\n', &bytes[from..]);
            while found.is_none() && offset + (bytes.len() as u64) < self.length {
                self.read_on(bytes, offset, from)?;
                found = memchr::memchr(b'\n', &bytes[from..]);
            }
            let Some(found) = found else { return Ok(Some(bytes.len())) };
            let start = from + found + 1;
            if !self.records.may_hold_line_ends() {
                return Ok(Some(start));
            }
            let mut end = start;
            let mut count = 0;
            while count < ROWS_OF_PROOF
                && let Some(next) = self.records.end(bytes, end)
            {
                (end, count) = (next, count + 1);
            }
            from = start;
            if count > 0 && self.records.has_bare_quote(&bytes[start..]) {
                continue;
            }
            let mut text = self.head.clone();
            text.extend(&bytes[start..end]);
            let mut rows = self.rows(text)?;
            let mut record = Record::default();
            let problem = loop {
                match rows.next(&mut record) {
                    Ok(true) => {}
                    Ok(false) => break None,
                    Err(problem) => break Some(problem),
                }
            };
            match problem {
                None if count > 0 => return Ok(Some(start)),
                Some(problem) if self.no_begin.is_none() => {
                    self.no_begin = Some((problem, offset + start as u64));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Why no place was found where a record begins.
    pub(super) fn no_begin(&mut self) -> Outcome<Failure> {
        let Some((problem, offset)) = self.no_begin.take() else {
            let what = "no place was found where a record begins. Check the --format";
            return Ok(bad(self.name, 1, what));
        };
        let before = self.lines_before(offset)?;
        Ok(failure(problem, self.name, before))
    }

    /// What is to be added to a stretch's line numbers; the stretch begins at `offset`.
    fn lines_before(&mut self, offset: u64) -> Outcome<u64> {
        let head = memchr::memchr_iter(b'\n', &self.head).count() as u64;
        Ok((self.line_at(offset)? - 1).saturating_sub(head))
    }

    /// The line of the byte at `offset`, or of the last byte that is near enough to be counted up
    /// to.
    fn line_at(&mut self, offset: u64) -> Outcome<u64> {
        let mut lines = 1;
        let mut at = 0;
        while at < offset.min(LINES_BYTES_MAX) {
            let bytes = self.read(at, (offset - at).min(1 << 20) as usize)?;
            if bytes.is_empty() {
                break;
            }
            lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
            at += bytes.len() as u64;
        }
        Ok(lines)
    }
}

/// A bad line of the input.
fn bad(name: &str, line: u64, what: &str) -> Failure {
    Failure::new(Exit::BadInput, format!("{name}: line {line}: {what}"))
        .with("file", name)
        .with("line", line)
}

/// What a problem means for the user, where `before` lines stand before what was read.
pub(super) fn failure(problem: Problem, name: &str, before: u64) -> Failure {
    match problem {
        Problem::Row(line, what) | Problem::Rest(line, what) => bad(name, before + line, &what),
        Problem::Options(what) => {
            Failure::usage(format!("{name}: line 1: {what}")).with("file", name).with("line", 1)
        }
        Problem::Read(error) if rows::is_bad_input(&error) => {
            Failure::new(Exit::BadInput, format!("{name}: {error}")).with("file", name)
        }
        Problem::Read(error) => Failure::file("read", Path::new(name), &error),
    }
}
