use super::*;
use crate::engine::{Batch, Handle, Metrics, Op, TreeId};
use crate::options::Benchmark;
use crate::setup::Setup;
use clap::Parser;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, RwLock};

/// A map in memory, written to a file at close, so that runs can follow each other.
struct Map(Arc<RwLock<BTreeMap<Vec<u8>, Vec<u8>>>>, std::path::PathBuf);
struct MapHandle(Arc<RwLock<BTreeMap<Vec<u8>, Vec<u8>>>>);

impl Engine for Map {
    type Handle = MapHandle;
    const NAME: &'static str = "map";

    fn version() -> String {
        "1".to_owned()
    }

    fn open(dir: &Path, _: &Setup, _: &[&str]) -> Result<Map> {
        std::fs::create_dir_all(dir)?;
        let path = dir.join("pairs.json");
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(_) => Vec::new(),
        };
        Ok(Map(Arc::new(RwLock::new(pairs.into_iter().collect())), path))
    }

    fn handle(&self) -> Result<MapHandle> {
        Ok(MapHandle(self.0.clone()))
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn clear_tree(&self, _: TreeId) -> Result<()> {
        self.0.write().unwrap().clear();
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        let pairs: Vec<_> = self.0.read().unwrap().clone().into_iter().collect();
        std::fs::write(self.1, serde_json::to_vec(&pairs)?)?;
        Ok(())
    }
}

impl Handle for MapHandle {
    fn put(&mut self, _: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.write().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn get(&mut self, _: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.read().unwrap().get(key).map(|value| found(value)).is_some())
    }

    fn delete(&mut self, _: TreeId, key: &[u8]) -> Result<()> {
        self.0.write().unwrap().remove(key);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut map = self.0.write().unwrap();
        for op in batch.iter() {
            match op {
                Op::Put(_, key, value) => map.insert(key.to_vec(), value.to_vec()),
                Op::Delete(_, key) => map.remove(key),
            };
        }
        Ok(())
    }

    fn scan(
        &mut self,
        _: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let map = self.0.read().unwrap();
        let mut done = 0;
        for (key, value) in map.range(from.to_vec()..) {
            if done == rows || !row(key, value) {
                break;
            }
            done += 1;
        }
        Ok(done)
    }
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: BenchOptions,
}

fn options(flags: &str) -> BenchOptions {
    Command::parse_from(std::iter::once("x").chain(flags.split_whitespace())).options
}

#[test]
fn every_benchmark_gives_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("rows.json");
    let flags = format!(
        "--benchmarks fillseq,readseq,overwrite,readrandom,seekrandom,readwhilewriting,settle,\
         deleterandom,fillrandom --num 2000 --threads 3 --db {} --json-to {}",
        dir.path().join("work").display(),
        json.display()
    );
    let rows = run::<Map>(&options(&flags)).unwrap();
    assert_eq!(rows.len(), 9);
    assert_eq!((rows[0].ops, rows[1].ops), (2000, 6000));
    assert_eq!(rows[3].found, 2000);
    assert_eq!(rows[4].found, 2000);
    assert!(rows[5].writer.is_some());
    assert!(rows[0].user_written_bytes > 2000 * 120);
    let text = std::fs::read_to_string(&json).unwrap();
    let back: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back.len(), 9);
    assert_eq!(back[8].benchmark, "fillrandom");
    assert!(!dir.path().join("work").exists(), "the folder that the run made is removed");
}

#[test]
fn steps_may_be_runs_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let flags = |benchmark| {
        format!("--benchmarks {benchmark} --num 500 --keep --db {}", dir.path().display())
    };
    let missing = run::<Map>(&options(&flags("readrandom"))).unwrap_err();
    assert!(missing.to_string().contains("begin with fillseq"), "{missing}");
    run::<Map>(&options(&flags("fillseq"))).unwrap();
    let rows = run::<Map>(&options(&flags("readrandom"))).unwrap();
    assert_eq!(rows[0].found, 500);
    assert!(rows[0].open.is_some());
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
    let flags = format!("--benchmarks fillseq --num 10 --db {}", dir.path().display());
    let error = run::<Map>(&options(&flags)).unwrap_err();
    assert!(error.to_string().contains("neither empty nor"), "{error}");
    assert!(dir.path().join("thesis.txt").exists());
}

#[test]
fn a_deadline_ends_a_benchmark() {
    let dir = tempfile::tempdir().unwrap();
    let flags = format!(
        "--benchmarks fillseq,readrandom --num 1000 --ops 1G --duration 0.1 --db {}",
        dir.path().join("work").display()
    );
    let rows = run::<Map>(&options(&flags)).unwrap();
    assert_eq!(rows[0].ops, 1000);
    assert!(rows[1].seconds < 5.0);
    assert_eq!(rows[1].benchmark, Benchmark::Readrandom.name());
}

#[test]
fn the_writer_keeps_to_its_rate() {
    let dir = tempfile::tempdir().unwrap();
    let flags = format!(
        "--benchmarks fillseq,readwhilewriting --num 1000 --ops 1G --duration 0.5 --rate-limit 1 \
         --db {}",
        dir.path().join("work").display()
    );
    let rows = run::<Map>(&options(&flags)).unwrap();
    let writer = rows[1].writer.as_ref().unwrap();
    assert!((0.3..=1.3).contains(&writer.mb_per_second), "{writer:?}");
}
