//! Any changed byte of any file is noticed or means nothing.

use crate::Case;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb_sim::corrupt::{Flip, Found, kind, prepare, run};
use shaledb_sim::ops::{Generator, Op};
use shaledb_sim::settings::{exhaustive, seeds, small};
use std::collections::BTreeMap;

/// How many bytes of each kind of file are changed, for each seed.
const SAMPLES: u64 = 60;

#[test]
fn changed_bytes_are_noticed() {
    let mut tally: BTreeMap<(&str, Found), u64> = BTreeMap::new();
    for seed in seeds(10) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut program = Generator::new(seed).program(120);
        program.extend([Op::Flush(None)]);
        program.extend(Generator::resuming(seed, [0].into()).program(10));
        let program: Vec<Op> = program.into_iter().filter(|op| *op != Op::Drop(0)).collect();
        let (fs, model) = prepare(&program, &small()).unwrap_or_else(|failure| panic!("{failure}"));
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, length) in fs.files() {
            *bytes.entry(kind(&path)).or_default() += length;
        }
        for (path, length) in fs.files() {
            let kind = kind(&path);
            let stride = if exhaustive() { 1 } else { (bytes[kind] / SAMPLES).max(1) };
            let mut offset = random.random_range(0..stride);
            while offset < length {
                let flip = Flip { path: path.clone(), offset, xor: 1 << random.random_range(0..8) };
                let _case = Case::new(format!("SHALE_SEED={seed}, {flip:?}"));
                let found =
                    run(&fs, &model, &small(), &flip).unwrap_or_else(|failure| panic!("{failure}"));
                *tally.entry((kind, found)).or_default() += 1;
                offset += random.random_range(1..=2 * stride);
            }
        }
    }
    println!("{tally:#?}");
}
