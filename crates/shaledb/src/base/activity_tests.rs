use super::{Activity, Dice};
use crate::base::stats::Recorder;

/// What is shorter cannot have waited.
const SHORT: u64 = 4000;

/// Makes a call of an activity that takes `cost`, as the meter does it.
fn call(recorder: &Recorder, activity: Activity, cost: u64) {
    if let Some(sample) = recorder.sample(activity) {
        recorder.spent(activity, cost, sample.cpu, cost < SHORT);
    }
}

/// Makes `calls` calls of an activity, call `k` of which takes `cost(k)`, and answers by how many
/// standard errors the estimate is off, and the relative error.
fn estimate(
    recorder: &Recorder,
    activity: Activity,
    calls: u64,
    cost: impl Fn(u64) -> u64,
) -> (f64, f64) {
    let mut truth = 0;
    for at in 0..calls {
        truth += cost(at);
        call(recorder, activity, cost(at));
    }
    let spent = recorder.totals().cpu(activity);
    let off = spent.nanos() - truth as f64;
    let each = spent.nanos_per_call() * calls as f64 / truth as f64;
    assert!((each - 1.0).abs() < 0.2, "{activity:?}: {each} of the cost of a call");
    (off / spent.error_nanos(), off / truth as f64)
}

#[test]
fn the_distance_between_samples_is_geometric() {
    for every in [2u32, 32, 4096] {
        let mut dice = Dice::new(7);
        let gaps: Vec<u32> = (0..200_000).map(|_| dice.gap(every)).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / n;
        assert!((mean / f64::from(every) - 1.0).abs() < 0.02, "{every}: mean {mean}");
        // The share of gaps that end by their median, twice it, and at once.
        for steps in [1, every.div_ceil(2), every, 2 * every] {
            let expected = 1.0 - (1.0 - 1.0 / f64::from(every)).powi(steps as i32);
            let got = gaps.iter().filter(|gap| **gap <= steps).count() as f64 / n;
            assert!((got - expected).abs() < 0.01, "{every}, {steps}: {got} for {expected}");
        }
    }
    assert_eq!(Dice::new(1).gap(1), 1);
}

#[test]
fn one_in_many() {
    let mut dice = Dice::new(3);
    let hits = (0..80_000).filter(|_| dice.one_in(8)).count();
    assert!((9_500..10_500).contains(&hits), "{hits}");
    assert!((0..100).all(|_| dice.one_in(1)));
}

/// An even spread, and costs that go with powers of two in the number of the call: what every
/// n-th call would get wrong by a factor.
#[test]
fn no_pattern_of_costs_biases_the_estimate() {
    type Cost = fn(u64) -> u64;
    let costs: [(&str, Cost); 6] = [
        ("even", |_| 1000),
        ("every second is dear", |k| if k % 2 == 0 { 100 } else { 10_000 }),
        ("every 32nd is a large batch", |k| if k % 32 == 31 { 100_000 } else { 1000 }),
        ("every 64th is free", |k| if k % 64 == 0 { 0 } else { 1000 }),
        ("every 256th is a large batch", |k| if k % 256 == 255 { 500_000 } else { 1000 }),
        ("in bursts of 1000", |k| if k / 1000 % 2 == 0 { 3000 } else { 500 }),
    ];
    for activity in [Activity::Write, Activity::Get, Activity::ReadDecompress] {
        for (name, cost) in costs {
            let (errors, relative) = estimate(&Recorder::new(), activity, 2_000_000, cost);
            assert!(errors.abs() < 4.0, "{activity:?}, {name}: {errors} standard errors off");
            assert!(relative.abs() < 0.2, "{activity:?}, {name}: {relative}");
        }
    }
}

/// Two activities in turn, as a program that reads, changes and writes back does it: a countdown
/// shared by both would never come to one of them.
#[test]
fn activities_in_turn_are_both_sampled() {
    let recorder = Recorder::new();
    for _ in 0..400_000 {
        for activity in [Activity::Get, Activity::Write] {
            call(&recorder, activity, 1000);
        }
    }
    let totals = recorder.totals();
    for activity in [Activity::Get, Activity::Write] {
        let spent = totals.cpu(activity);
        let off = (spent.nanos() - 4e8) / spent.error_nanos();
        assert!(off.abs() < 4.0, "{activity:?}: {spent:?}");
    }
}

/// Many threads that do little each: no call of one thread makes one of another more likely.
#[test]
fn threads_are_sampled_apart() {
    let recorder = Recorder::new();
    let truth = 64.0 * 4000.0 * 1000.0;
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| (0..4000).for_each(|_| call(&recorder, Activity::Get, 1000)));
        }
    });
    let spent = recorder.totals().cpu(Activity::Get);
    let off = (spent.nanos() - truth) / spent.error_nanos();
    assert!(spent.samples() > 500 && off.abs() < 4.0, "{spent:?}");
}

/// A countdown that the caller holds and gives back, as scans do, of lengths that never reach it.
#[test]
fn short_scans_are_sampled_as_often_as_long_ones() {
    let recorder = Recorder::new();
    let (mut samples, mut steps) = (0u64, 0u64);
    for scan in 0..200_000u32 {
        let mut due = recorder.take_due(Activity::ScanStep);
        for _ in 0..scan % 20 {
            steps += 1;
            due -= 1;
            if due == 0 {
                samples += 1;
                due = recorder.sample_taken(Activity::ScanStep).1;
            }
        }
        recorder.put_back(Activity::ScanStep, due);
    }
    let expected = steps as f64 / 1024.0;
    let off = (samples as f64 - expected) / expected.sqrt();
    assert!(off.abs() < 4.0, "{samples} samples for {expected}");
}

#[test]
fn what_is_always_measured_has_no_error() {
    let recorder = Recorder::new();
    recorder.spent_exactly(Activity::Flush, 5);
    recorder.spent_exactly(Activity::Flush, 7_000);
    let spent = recorder.totals().cpu(Activity::Flush);
    assert_eq!(spent.samples(), 2);
    assert!((spent.nanos() - 7005.0).abs() < 1e-6 && spent.error_nanos() < 1e-6, "{spent:?}");
    assert!((spent.nanos_per_call() - 3502.5).abs() < 1e-6, "{spent:?}");
    let mut names: Vec<&str> = Activity::ALL.iter().map(|activity| activity.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Activity::ALL.len());
    for (index, activity) in Activity::ALL.into_iter().enumerate() {
        assert_eq!(activity as usize, index);
        assert!(activity.every().is_power_of_two() && activity.every_of_those().is_power_of_two());
    }
}
