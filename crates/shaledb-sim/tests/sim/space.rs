//! A limit on space is kept at every moment, also across crashes and faults; what is refused
//! changes nothing, and deletes make room.

use crate::Case;
use shaledb::Config;
use shaledb::fs::mem::Call;
use shaledb_sim::crash::{Tally, record};
use shaledb_sim::fault::{Injection, faults_of, run};
use shaledb_sim::ops::Generator;
use shaledb_sim::settings::{exhaustive, limited, seeds};
use shaledb_sim::space::run_limited;
use shaledb_sim::world::World;

#[test]
fn the_limit_is_kept_after_every_operation() {
    let (mut refused, mut made_later) = (0, 0);
    let all = seeds(30);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::full(seed).program(700);
        let tally = run_limited(&program, &limited()).unwrap_or_else(|failure| panic!("{failure}"));
        refused += tally.refused;
        made_later += tally.made_later;
    }
    println!("{refused} refused, {made_later} of them made later");
    assert!(all.len() == 1 || refused > 100 && made_later > 5, "{refused} {made_later}");
}

#[test]
fn crashes_near_the_limit_lose_nothing() {
    let (mut refused, mut tally) = (0, Tally::default());
    let all = seeds(6);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::full(seed).program(450);
        let every = if exhaustive() || all.len() == 1 { 1 } else { 23 };
        let run = record(&program, &limited(), every).unwrap_or_else(|failure| panic!("{failure}"));
        refused += run.refused;
        let examined = run.examine(seed, &limited(), 16, &mut tally);
        examined.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{refused} refused, {tally:?}");
    assert!(all.len() == 1 || refused > 10, "{refused}");
}

#[test]
fn failing_calls_near_the_limit_give_no_wrong_answers() {
    let samples = if exhaustive() { u64::MAX } else { 5 };
    let mut outcomes = 0;
    for seed in seeds(4) {
        // Files that cannot be removed go on counting, so a little more.
        let config = Config { space_limit: 3 << 20, ..limited() };
        let program = Generator::full(seed).program(110);
        let mut whole = World::create(&config).unwrap_or_else(|failure| panic!("{failure}"));
        if whole.run_in_room(&program).unwrap_or_else(|failure| panic!("{failure}")) > 0 {
            continue;
        }
        let counts = whole.fs.counts();
        for call in [Call::Append, Call::Sync, Call::Create, Call::Remove, Call::Rename] {
            let count = counts.of(call);
            for nth in (1 + seed..=count).step_by((count / samples).max(1) as usize) {
                for &fault in faults_of(call) {
                    let injection = Injection { call, nth, fault, once: nth % 2 == 0 };
                    let _case = Case::new(format!("SHALE_SEED={seed}, {injection:?}"));
                    run(&program, &config, injection)
                        .unwrap_or_else(|failure| panic!("{injection:?}: {failure}"));
                    outcomes += 1;
                }
            }
        }
    }
    assert!(outcomes > 0 || seeds(4).len() == 1, "each program was refused something");
}
