//! Replays the corpora of the command's fuzz targets, so that what a fuzzer once found stays found.

use rand::{RngExt, SeedableRng, seq::IndexedRandom};
use std::path::Path;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "the corpus of {target} is missing");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn every_target_survives_its_corpus_and_short_inputs() {
    for (target, run) in shaledb_cli::fuzz::TARGETS {
        for data in corpus(target) {
            println!("{target}: {}", data.escape_ascii());
            run(&data);
        }
        run(&[]);
        for byte in 0..=255 {
            run(&[byte]);
            run(&[byte; 40]);
        }
    }
}

#[test]
fn every_target_survives_some_mutations() {
    let seed = std::env::var("SHALE_FUZZ_SEED").map_or(1, |text| text.parse().unwrap());
    let count = std::env::var("SHALE_FUZZ_RUNS").map_or(20_000, |text| text.parse().unwrap());
    for (target, run) in shaledb_cli::fuzz::TARGETS {
        let inputs = corpus(target);
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        for number in 0..count {
            let mut data = inputs.choose(&mut random).unwrap().clone();
            for _ in 0..random.random_range(1..8) {
                let at = random.random_range(0..=data.len());
                match random.random_range(0..4) {
                    0 => data.truncate(at),
                    1 => data
                        .insert(at, b"\"\"\n\r,;\t\\{}[]:0an \xff\xef"[random.random_range(0..19)]),
                    2 => {
                        let other = inputs.choose(&mut random).unwrap();
                        data.truncate(at);
                        data.extend_from_slice(&other[random.random_range(0..=other.len())..]);
                    }
                    _ if at < data.len() => data[at] ^= 1 << random.random_range(0..8),
                    _ => {}
                }
            }
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                panic!("{target}, SHALE_FUZZ_SEED={seed}, run {number}: {}", data.escape_ascii());
            }
        }
    }
}
