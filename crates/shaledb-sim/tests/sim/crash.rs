//! After a crash at any change of the disk, what was synced is there, and the rest is a prefix of
//! the commit order.

use crate::Case;
use shaledb_sim::crash::{Tally, record};
use shaledb_sim::ops::Generator;
use shaledb_sim::settings::{exhaustive, many, seeds, small};

/// How many crashes a full run covers at least.
const CRASHES_MIN: u64 = 2_000;

#[test]
fn crashes_lose_nothing_that_was_synced() {
    let mut tally = Tally::default();
    let configs = many();
    let all = seeds(100);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let config =
            if seed % 3 == 0 { configs[seed as usize % configs.len()].clone() } else { small() };
        let program = Generator::new(seed).program(100);
        let every = if exhaustive() || all.len() == 1 { 1 } else { 13 };
        let run = record(&program, &config, every).unwrap_or_else(|failure| panic!("{failure}"));
        let examined = run.examine(seed, &config, 16, &mut tally);
        examined.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{tally:?}");
    if all.len() > 1 {
        assert!(tally.crashes >= CRASHES_MIN && tally.nested > 0, "{tally:?}");
        assert!(tally.shortened > tally.crashes / 20, "{tally:?}");
    }
}
