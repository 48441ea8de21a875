//! What the fuzz targets of the command run; see `/fuzz`.
//!
//! Every function takes any bytes and must return: no panic, no endless loop. What is read does not
//! depend on how the bytes come in, and what is written comes back.

use crate::rows::{Layout, Options, Problem, Record, Rows};
use std::io::{self, Cursor, Read};

/// A function that takes any bytes and must return.
pub type Target = fn(&[u8]);

/// The targets by name; the names of their corpora and of their programs in /fuzz.
pub const TARGETS: [(&str, Target); 2] = [("rows", rows), ("rows_roundtrip", rows_roundtrip)];

/// So many rows of an input are read.
const ROWS_MAX: usize = 5000;

/// Gives a few bytes at a time.
struct Slow {
    data: Cursor<Vec<u8>>,
    step: usize,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let step = buffer.len().min(self.step);
        self.data.read(&mut buffer[..step])
    }
}

type Found = Vec<(u64, Result<Record, String>)>;

/// All that a reader says: rows with their lines, and the problems.
fn read(data: &[u8], options: &Options, step: usize) -> Found {
    let input = Box::new(Slow { data: Cursor::new(data.to_vec()), step });
    let mut found = Vec::new();
    let mut rows = match Rows::open(input, options) {
        Ok(rows) => rows,
        Err(problem) => {
            found.push((0, Err(format!("{problem:?}"))));
            return found;
        }
    };
    let mut record = Record::default();
    loop {
        let next = rows.next(&mut record);
        let goes_on = matches!(next, Ok(true) | Err(Problem::Row(..)));
        match next {
            Ok(true) => found.push((rows.line(), Ok(record.clone()))),
            Ok(false) => {}
            Err(problem) => found.push((rows.line(), Err(format!("{problem:?}")))),
        }
        // Of a few compressed bytes there may be any number of rows.
        if !goes_on || found.len() > ROWS_MAX {
            return found;
        }
    }
}

/// Reads the input as rows of some layout, in one piece and in small ones.
///
/// Input: layout u8, step u8, text.
pub fn rows(data: &[u8]) {
    let [kind, step, text @ ..] = data else { return };
    let columns = |delimiter, quotes, header| Layout::Columns { delimiter, quotes, header };
    let layout = match kind % 8 {
        0 => Layout::Pairs { escaped: false },
        1 => Layout::Pairs { escaped: true },
        2 | 3 => Layout::Json,
        4 => columns(b',', true, true),
        5 => columns(b';', true, false),
        6 => columns(b'\t', false, true),
        _ => columns(b'\t', false, false),
    };
    let mut options = Options { row_bytes_max: 1 << 20, ..Options::new(layout) };
    options.key = match kind / 8 % 4 {
        0 => Vec::new(),
        1 => vec!["a".to_owned()],
        2 => vec!["a".to_owned(), "b.c".to_owned()],
        _ => vec!["2".to_owned(), "1".to_owned()],
    };
    options.value = (kind / 32 % 2 == 1).then(|| "a".to_owned());
    let whole = read(text, &options, usize::MAX);
    let parts = read(text, &options, usize::from(*step).max(1));
    // How much comes out of damaged compressed bytes before the damage is met may differ.
    let damaged = |found: &Found| {
        found.iter().any(|(_, row)| row.as_ref().is_err_and(|what| what.contains("cut off")))
    };
    if damaged(&whole) || damaged(&parts) {
        return;
    }
    assert_eq!(whole, parts, "what is read depends on how it comes in");
    for pair in whole.windows(2) {
        assert!(pair[0].0 <= pair[1].0, "lines go backwards: {pair:?}");
    }
}

/// Writes fields of the input as CSV and reads them back.
///
/// Input: columns u8, step u8, fields with a byte of 0xff after each.
pub fn rows_roundtrip(data: &[u8]) {
    let [columns, step, text @ ..] = data else { return };
    let columns = usize::from(columns % 5) + 2;
    let fields: Vec<&[u8]> = text.split(|&byte| byte == 0xff).collect();
    let rows: Vec<&[&[u8]]> = fields.chunks_exact(columns).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names: Vec<String> = (0..columns).map(|number| format!("c{number}")).collect();
    // A writer into memory has nothing to fail of.
    writer.write_record(&names).expect("in memory");
    for row in &rows {
        writer.write_record(*row).expect("in memory");
    }
    let text = writer.into_inner().expect("in memory");
    let layout = Layout::Columns { delimiter: b',', quotes: true, header: true };
    let mut options = Options::new(layout);
    options.key = vec!["c0".to_owned()];
    options.value = Some("c1".to_owned());
    let found = read(&text, &options, usize::from(*step).max(1));
    assert_eq!(found.len(), rows.len(), "as many rows");
    for ((_, found), row) in found.into_iter().zip(rows) {
        match found {
            Ok(record) => assert_eq!((&record.key[..], &record.value[..]), (row[0], row[1])),
            Err(what) => assert!(row[0].is_empty(), "{what}"),
        }
    }
}
