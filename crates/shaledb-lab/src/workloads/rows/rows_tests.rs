//! A file of rows gives back what was written, and a broken one is refused; loads and look-ups do
//! what the file says.

use super::file::{RowReader, RowWriter, Written};
use super::work::{client_costs, run};
use super::*;
use crate::run::work::Named;
use crate::setup::Setup;
use crate::stores::kv::KvStore;
use crate::stores::model::Model;
use std::path::Path;

fn written(path: &Path, rows: u32) -> Written {
    let mut writer = RowWriter::create(path).unwrap();
    for number in 0..rows {
        let value = vec![b'v'; (number % 700) as usize];
        writer.add(format!("key{number:07}").as_bytes(), &value).unwrap();
    }
    writer.finish().unwrap()
}

fn options(path: &Path, rows: u32) -> RowsOptions {
    let Written { rows, bytes, key_bytes_max } = written(path, rows);
    RowsOptions { file: path.to_owned(), rows, bytes, key_bytes_max, repeats: false, gets: 500 }
}

#[test]
fn rows_come_back_as_they_were_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let all = written(&path, 5000);
    assert_eq!((all.rows, all.key_bytes_max), (5000, 10));
    let mut reader = RowReader::open(&path).unwrap();
    let mut bytes = 0;
    for number in 0..5000 {
        assert!(reader.next().unwrap());
        assert_eq!(reader.key, format!("key{number:07}").as_bytes());
        assert_eq!(reader.value.len(), number % 700);
        bytes += (reader.key.len() + reader.value.len()) as u64;
    }
    assert!(!reader.next().unwrap() && !reader.next().unwrap());
    assert_eq!(bytes, all.bytes);
}

#[test]
fn a_file_that_is_cut_off_or_is_none_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    written(&path, 3);
    let whole = std::fs::read(&path).unwrap();
    // The first row has 18 bytes.
    for (length, rows) in [(0, 0), (18, 1), (whole.len(), 3)] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let mut reader = RowReader::open(&path).unwrap();
        let count = std::iter::from_fn(|| reader.next().unwrap().then_some(())).count();
        assert_eq!(count, rows);
    }
    for length in (1..whole.len()).filter(|length| *length != 18 && *length != 37) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let mut reader = RowReader::open(&path).unwrap();
        let error = loop {
            match reader.next() {
                Ok(more) => assert!(more, "{length} bytes look whole"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    std::fs::write(&path, [0xff; 40]).unwrap();
    let error = RowReader::open(&path).unwrap().next().unwrap_err().to_string();
    assert!(error.ends_with("is no file of rows"), "{error}");
    assert!(RowReader::open(&dir.path().join("none")).is_err());
}

#[test]
fn steps_load_and_look_up_what_the_file_has() {
    let dir = tempfile::tempdir().unwrap();
    let rows = options(&dir.path().join("rows"), 5000);
    let setup = Setup::default();
    let store = KvStore::<Model>::open(&dir.path().join("s"), &setup, &over_kv::TREES).unwrap();
    let planned = rows.planned();
    let names: Vec<&str> = planned.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["load", "wait_idle", "get"]);
    for name in names {
        let step = rows.step(name).unwrap();
        let costs = client_costs(&rows, step, 1).unwrap();
        let named = Named { workload: "rows", step: name, opened: None };
        let row = run(&store, &rows, step, 1, costs, &named, &mut |_| ()).unwrap();
        let expected = [5000, 1, 500][rows.planned().iter().position(|s| s.name == name).unwrap()];
        assert_eq!((row.ops, row.found), (expected, expected), "{name}");
        if step == Step::Load {
            assert_eq!(row.counted.user_bytes, rows.bytes);
            assert_eq!(rows.live_bytes(&row, 0), rows.bytes);
        }
    }
    assert!(rows.step("fly").is_err());
}
