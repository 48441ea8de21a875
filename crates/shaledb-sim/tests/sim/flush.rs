//! Flushes of many trees at a time, with memtables sealed at different moments and batches across
//! trees: a crash loses nothing that was synced and cuts no batch in two, a failing call is an
//! error.

use crate::Case;
use shaledb::fs::mem::Call;
use shaledb_sim::crash::{Tally, record};
use shaledb_sim::data::{KEYS, Value};
use shaledb_sim::fault::{Injection, faults_of, run};
use shaledb_sim::model::Change;
use shaledb_sim::ops::Op;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::World;

const TREES: u8 = 10;

/// Batches across trees that each have little, so that the largest is sealed time and again, with
/// a piece of background work now and then, and a flush of all at the end.
fn program(seed: u64) -> Vec<Op> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) as u32 % below
    };
    let mut program: Vec<Op> = (0..TREES).map(Op::Create).collect();
    for number in 0..150 {
        let first = random(u32::from(TREES)) as u8;
        let changes = (0..=random(4) as u8).map(|next| {
            let value = Value { number: number * 8 + u32::from(next), bytes: 300 + random(1_500) };
            Change::Put((first + 3 * next) % TREES, random(KEYS), value)
        });
        program.push(Op::Write(changes.collect(), random(12) == 0));
        if number % 30 == 29 {
            program.push(Op::Step(1 + random(2)));
        }
        if number == 100 {
            program.push(Op::Drop(first));
        }
    }
    program.extend([Op::Flush(None), Op::Check]);
    program
}

#[test]
fn crashes_beside_flushes_of_many_trees_cut_no_batch() {
    let mut tally = Tally::default();
    for seed in seeds(6) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let every = if exhaustive() { 1 } else { 3 };
        let run = record(&program(seed), &small(), every);
        let run = run.unwrap_or_else(|failure| panic!("{failure}"));
        let examined = run.examine(seed, &small(), 64, &mut tally);
        examined.unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(tally.crashes > 200 && tally.shortened > 20, "{tally:?}");
}

#[test]
fn failing_calls_of_flushes_of_many_trees_give_errors_and_no_wrong_answers() {
    let config = small();
    for seed in seeds(2) {
        let program = program(seed);
        let mut whole = World::create(&config).unwrap_or_else(|failure| panic!("{failure}"));
        whole.run(&program).unwrap_or_else(|failure| panic!("{failure}"));
        let counts = whole.fs.counts();
        for call in Call::ALL {
            let count = counts.of(call);
            let stride = if exhaustive() { 1 } else { (count / 12).max(1) };
            for nth in (1 + seed % stride..=count).step_by(stride as usize) {
                for &fault in faults_of(call) {
                    let injection = Injection { call, nth, fault, once: nth % 2 == 0 };
                    let _case = Case::new(format!("SHALE_SEED={seed}, {injection:?}"));
                    run(&program, &config, injection)
                        .unwrap_or_else(|failure| panic!("{injection:?}: {failure}"));
                }
            }
        }
    }
}
