//! One program under many configurations gives one history of answers.

use crate::Case;
use shaledb_sim::ops::{Generator, Op};
use shaledb_sim::settings::{many, seeds};
use shaledb_sim::world::World;

#[test]
fn settings_change_no_answer() {
    for seed in seeds(8) {
        // The settings must not change which operations there are, only what they cost.
        let program = Generator::new(1_000 + seed).program(200);
        let mut histories = Vec::new();
        for (index, config) in many().iter().enumerate() {
            let _case = Case::new(format!("SHALE_SEED={seed}, configuration {index}"));
            let mut world = World::create(config).unwrap_or_else(|failure| panic!("{failure}"));
            let result = world.run(&program).and_then(|()| world.run(&[Op::Idle, Op::Check]));
            result.unwrap_or_else(|failure| panic!("{config:?}: {failure}"));
            histories.push(world.history);
        }
        assert!(histories.len() >= 30);
        assert!(histories.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {histories:?}");
    }
}
