//! A failing call of the disk gives an error or none, never a wrong answer; a full disk hinders
//! nothing once it has space again.

use crate::Case;
use shaledb::fs::mem::Call;
use shaledb_sim::fault::{Injection, faults_of, run, run_full};
use shaledb_sim::ops::Generator;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::World;
use std::collections::BTreeMap;

/// How many calls of a kind are made to fail, of each seed.
const SAMPLES: u64 = 6;

#[test]
fn failing_calls_give_errors_and_no_wrong_answers() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds(8) {
        let config = small();
        let program = Generator::new(seed).program(100);
        let mut whole = World::create(&config).unwrap_or_else(|failure| panic!("{failure}"));
        whole.run(&program).unwrap_or_else(|failure| panic!("{failure}"));
        let counts = whole.fs.counts();
        for call in Call::ALL {
            let count = counts.of(call);
            let stride = if exhaustive() { 1 } else { (count / SAMPLES).max(1) };
            for (index, nth) in (1 + seed % stride..=count).step_by(stride as usize).enumerate() {
                for &fault in faults_of(call) {
                    let once = (index + seed as usize).is_multiple_of(2);
                    let injection = Injection { call, nth, fault, once };
                    let _case = Case::new(format!("SHALE_SEED={seed}, {injection:?}"));
                    let outcome = run(&program, &config, injection)
                        .unwrap_or_else(|failure| panic!("{injection:?}: {failure}"));
                    *seen.entry(format!("{call:?} {fault:?} {outcome:?}")).or_default() += 1;
                }
            }
        }
    }
    println!("{seen:#?}");
}

#[test]
fn a_disk_that_fills_up_refuses_writes_until_there_is_space() {
    let mut times = 0;
    let all = seeds(40);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::new(seed).program(120);
        let full = run_full(&program, &small(), 500 + 3_000 * (seed % 10));
        times += full.unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(all.len() == 1 || times > 20, "the disk was full only {times} times");
}
