//! CSV as Python's csv module reads it: on random text, which rows there are, in which lines they
//! begin, and what is refused.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shaledb_cli::rows::{Layout, Options, Problem, Record, Rows};
use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

/// For each text in hexadecimal a JSON list: of rows, each the line before it and its fields, and
/// whether the module refused what came after them.
const ORACLE: &str = r#"
import csv, io, json, sys
csv.field_size_limit(1 << 30)
for line in sys.stdin:
    text = bytes.fromhex(line).decode()
    reader = csv.reader(io.StringIO(text, newline=''), strict=True)
    rows, refused = [], False
    while True:
        before = reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error:
            refused = True
            break
        if row:
            rows.append([before + 1, row])
    print(json.dumps([rows, refused]))
"#;

type Said = (Vec<(u64, Vec<String>)>, bool);

fn python(texts: &[String]) -> Vec<Said> {
    let mut child = Command::new("python3")
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is the oracle of this test");
    let mut input = child.stdin.take().unwrap();
    let lines: String = texts
        .iter()
        .map(|text| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The line that a row begins at, and its fields.
type Row = (u64, Option<Vec<String>>);

/// What we say: rows, and whether what came after them was refused. A row whose first field is empty
/// or that has another number of fields is refused too, but the next one can be read.
fn ours(text: &str) -> (Vec<Row>, bool) {
    let layout = Layout::Columns { delimiter: b',', quotes: true, header: false };
    let options = Options { key: vec!["1".to_owned()], ..Options::new(layout) };
    let mut found = Vec::new();
    let mut rows = match Rows::open(Box::new(Cursor::new(text.as_bytes().to_vec())), &options) {
        Ok(rows) => rows,
        Err(Problem::Rest(..) | Problem::Row(..)) => return (found, true),
        Err(other) => panic!("{other:?}"),
    };
    let mut record = Record::default();
    loop {
        match rows.next(&mut record) {
            Ok(true) => {
                found.push((rows.line(), Some(fields(&record.value))));
            }
            Ok(false) => return (found, false),
            Err(Problem::Row(_, what)) if what.contains("closing quote") => return (found, true),
            Err(Problem::Row(line, _)) => found.push((line, None)),
            Err(Problem::Rest(..)) => return (found, true),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// The values of an object's members, in order.
fn fields(object: &[u8]) -> Vec<String> {
    let members = shaledb_cli::rows::Members::parse(object).unwrap();
    let values = members.0.iter().map(|(_, value)| shaledb_cli::rows::text_of(value));
    values.map(|text| text.unwrap().into_owned()).collect()
}

/// Whether a carriage return stands alone inside quotes: to the module it ends a line there.
fn has_quoted_return(rows: &[(u64, Vec<String>)]) -> bool {
    rows.iter().flat_map(|(_, row)| row).any(|field| field.replace("\r\n", "").contains('\r'))
}

#[test]
fn rows_are_those_of_the_csv_module() {
    const PIECES: [&str; 14] =
        ["a", "b", ",", ",", "\"", "\"", "\"\"", "\n", "\n", "\r\n", "\r", " ", "\u{e9}", "\0"];
    let seed = std::env::var("SHALE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut random = Pcg64::seed_from_u64(seed);
    let texts: Vec<String> = (0..20_000)
        .map(|_| {
            let pieces = random.random_range(1..16);
            (0..pieces).map(|_| PIECES[random.random_range(0..PIECES.len())]).collect()
        })
        .collect();
    let (mut rows, mut refusals) = (0, 0);
    for (text, (theirs, refused)) in texts.iter().zip(python(&texts)) {
        let story = format!("SHALE_SEED={seed}: {text:?}: {theirs:?}, refused: {refused}");
        let (found, ours_refused) = ours(text);
        assert_eq!(ours_refused, refused, "{story}; ours: {found:?}");
        // A first row that is refused is no row of theirs.
        assert_eq!(found.len(), theirs.len(), "{story}; ours: {found:?}");
        let same_lines = !has_quoted_return(&theirs);
        let width = theirs.first().map_or(0, |(_, row)| row.len());
        for ((line, row), (their_line, their_row)) in found.iter().zip(&theirs) {
            match row {
                Some(row) => assert_eq!(row, their_row, "{story}"),
                None => assert!(their_row.len() != width || their_row[0].is_empty(), "{story}"),
            }
            assert!(!same_lines || line == their_line, "{story}: line {line}");
            rows += 1;
        }
        refusals += u32::from(refused);
    }
    assert!(rows > 10_000 && refusals > 1000, "{rows} rows and {refusals} refusals are too few");
}
