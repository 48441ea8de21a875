//! Merges that are installed in parts: right answers between the parts, after a crash between
//! them, and after a failure of one; and how much room they need.

use crate::Case;
use shaledb::fs::mem::Call;
use shaledb_sim::corrupt::kind;
use shaledb_sim::crash::{Tally, record};
use shaledb_sim::data::{KEYS, Value};
use shaledb_sim::fault::{Injection, Outcomes, faults_of, run};
use shaledb_sim::model::Change;
use shaledb_sim::ops::{Generator, Op};
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::World;

#[test]
fn between_parts_answers_are_right() {
    let mut early = 0;
    let all = seeds(40);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::heavy(seed).program(400);
        let mut world = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        world.run(&program).unwrap_or_else(|failure| panic!("{failure}"));
        early += world.early_installs().unwrap_or_else(|failure| panic!("{failure}"));
        let last = [Op::Check, Op::Idle, Op::Check, Op::Verify, Op::Reopen, Op::Check];
        world.run(&last).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{early} early installs");
    assert!(all.len() == 1 || early > 100, "{early}");
}

#[test]
fn crashes_between_parts_lose_nothing() {
    let (mut early, mut tally) = (0, Tally::default());
    let all = seeds(8);
    for &seed in &all {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let program = Generator::heavy(seed).program(250);
        let every = if exhaustive() || all.len() == 1 { 1 } else { 11 };
        let run = record(&program, &small(), every).unwrap_or_else(|failure| panic!("{failure}"));
        early += run.early_installs;
        let examined = run.examine(seed, &small(), 16, &mut tally);
        examined.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{early} early installs, {tally:?}");
    assert!(all.len() == 1 || early > 20, "{early}");
}

#[test]
fn a_failure_between_parts_gives_no_wrong_answer() {
    let samples = if exhaustive() { u64::MAX } else { 12 };
    let (mut early, mut went_on) = (0, 0);
    let all = seeds(2);
    for &seed in &all {
        let program = Generator::heavy(seed).program(200);
        let mut whole = World::create(&small()).unwrap_or_else(|failure| panic!("{failure}"));
        whole.run(&program).unwrap_or_else(|failure| panic!("{failure}"));
        early += whole.early_installs().unwrap_or_else(|failure| panic!("{failure}"));
        let counts = whole.fs.counts();
        for call in [Call::Append, Call::Create, Call::Sync, Call::Read] {
            // The first quarter of a program is before its first merge.
            let (first, count) = (counts.of(call) / 4, counts.of(call));
            let stride = ((count - first) / samples).max(1);
            for nth in (first + 1 + seed % stride..=count).step_by(stride as usize) {
                for &fault in faults_of(call) {
                    let injection = Injection { call, nth, fault, once: nth % 2 == 0 };
                    let _case = Case::new(format!("SHALE_SEED={seed}, {injection:?}"));
                    let outcome = run(&program, &small(), injection)
                        .unwrap_or_else(|failure| panic!("{injection:?}: {failure}"));
                    went_on += u64::from(outcome == Outcomes::WentOn);
                }
            }
        }
    }
    println!("{early} early installs, {went_on} runs that went on after an error");
    assert!(all.len() == 1 || early > 2 && went_on > 0, "{early} {went_on}");
}

/// The bytes of table files that are no part of any tree.
fn loose_bytes(world: &World) -> u64 {
    let files = world.fs.files();
    let tables = files.iter().filter(|(path, _)| kind(path) == "table");
    let referenced = world.table_bytes().unwrap_or_else(|failure| panic!("{failure}"));
    tables.map(|(_, bytes)| bytes).sum::<u64>() - referenced
}

#[test]
fn a_merge_of_all_data_needs_room_for_a_part_of_it() {
    let config = small();
    let mut world = World::create(&config).unwrap_or_else(|failure| panic!("{failure}"));
    let mut number = 1;
    let mut put_all = |world: &mut World, steps: bool| {
        let mut most = 0;
        for key in 0..KEYS {
            // Odd, so that it does not compress.
            number += 2;
            let changes = vec![Change::Put(0, key, Value { number, bytes: 3_000 })];
            world.run(&[Op::Write(changes, false)]).unwrap_or_else(|failure| panic!("{failure}"));
            if steps {
                world.run(&[Op::Step(1)]).unwrap_or_else(|failure| panic!("{failure}"));
                most = most.max(loose_bytes(world));
            }
        }
        most
    };
    world.run(&[Op::Create(0)]).unwrap_or_else(|failure| panic!("{failure}"));
    put_all(&mut world, false);
    world.run(&[Op::Compact(None)]).unwrap_or_else(|failure| panic!("{failure}"));
    let data = world.table_bytes().unwrap_or_else(|failure| panic!("{failure}"));
    let most = (0..3).map(|_| put_all(&mut world, true)).max().unwrap_or(0);
    let early = world.early_installs().unwrap_or_else(|failure| panic!("{failure}"));
    println!("{data} bytes of data, {early} early installs, at most {most} bytes of loose tables");
    assert!(early > 10 && most < data / 4, "{early} {most} of {data}");
    world.run(&[Op::Idle, Op::Check]).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(loose_bytes(&world), 0);
}
