//! Replays the corpora of the fuzz targets in /fuzz, so that what a fuzzer once found stays found.

use std::path::{Path, PathBuf};

fn corpus(target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_survives_its_corpus() {
    for (target, run) in shaledb::fuzz::TARGETS {
        let files = corpus(target);
        assert!(files.len() >= 5, "the corpus of {target} is missing");
        for file in files {
            let data = std::fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                panic!("{target} fails on {}", file.display());
            }
        }
    }
}

#[test]
fn every_target_survives_short_inputs() {
    for (_, run) in shaledb::fuzz::TARGETS {
        run(&[]);
        for byte in 0..=255 {
            run(&[byte]);
            run(&[byte; 40]);
        }
    }
}

/// Chance in bulk, for when no fuzzer is at hand: every target on mutations of its corpus.
#[test]
#[ignore = "takes as long as SHALE_FUZZ_SECONDS says (60)"]
fn every_target_survives_mutations() {
    use rand::{Rng, RngExt, SeedableRng, seq::IndexedRandom};
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let seconds = number("SHALE_FUZZ_SECONDS", 60);
    let seed = number("SHALE_FUZZ_SEED", 1);
    for (target, run) in shaledb::fuzz::TARGETS {
        let inputs: Vec<Vec<u8>> =
            corpus(target).iter().map(|file| std::fs::read(file).unwrap()).collect();
        let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
        let start = std::time::Instant::now();
        let mut runs = 0;
        while start.elapsed().as_secs() * shaledb::fuzz::TARGETS.len() as u64 <= seconds {
            let mut data = inputs.choose(&mut rng).unwrap().clone();
            for _ in 0..rng.random_range(1..8) {
                let at = rng.random_range(0..=data.len());
                match rng.random_range(0..5) {
                    0 => data.truncate(at),
                    1 => data.insert(at, rng.random()),
                    2 => {
                        let other = inputs.choose(&mut rng).unwrap();
                        data.truncate(at);
                        data.extend_from_slice(&other[rng.random_range(0..=other.len())..]);
                    }
                    3 if at + 4 <= data.len() => rng.fill_bytes(&mut data[at..at + 4]),
                    _ if at < data.len() => data[at] ^= 1 << rng.random_range(0..8),
                    _ => {}
                }
            }
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                let file = std::env::temp_dir().join(format!("shaledb-fuzz-{target}"));
                std::fs::write(&file, &data).unwrap();
                panic!("{target} fails, seed {seed}, run {runs}: the input is {}", file.display());
            }
            runs += 1;
        }
        println!("{target}: {runs} runs");
    }
}
