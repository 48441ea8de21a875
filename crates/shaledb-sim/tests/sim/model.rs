//! Any program gives the answers of the model; the same seed makes the same calls to the disk.

use crate::Case;
use shaledb_sim::ops::{Generator, Op};
use shaledb_sim::settings::{many, seeds, small};
use shaledb_sim::world::World;

#[test]
fn programs_give_the_right_answers() {
    let configs = many();
    for seed in seeds(300) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let config =
            if seed % 2 == 0 { small() } else { configs[seed as usize % configs.len()].clone() };
        let program = Generator::new(seed).program(250);
        let mut world = World::create(&config).unwrap_or_else(|failure| panic!("{failure}"));
        let last = [Op::Check, Op::Idle, Op::Check, Op::Verify, Op::Reopen, Op::Check];
        let result = world.run(&program).and_then(|()| world.run(&last));
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn a_seed_decides_every_call() {
    for seed in seeds(6) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::new(seed).program(150);
        let run = || {
            let mut world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
            world.fs.keep_trace();
            world.run(&program).unwrap_or_else(|failure| panic!("{failure}"));
            let (fs, history) = (world.fs.clone(), world.history);
            (history, fs.counts(), fs.trace(), fs.trace_hash())
        };
        let (first, second) = (run(), run());
        assert_eq!(first.2, second.2, "the changes to the disk");
        assert_eq!(first.1, second.1, "the number of calls");
        assert_eq!((first.0, first.3), (second.0, second.3), "the answers and the calls");
    }
}
