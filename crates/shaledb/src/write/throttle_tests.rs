//! Slowing is smooth: no wait at the soft limits, no steps, more pressure never means less wait.

use super::*;

const MIB: u64 = 1 << 20;

fn calm() -> Pressure {
    Pressure {
        memtable_bytes: 64 * MIB,
        memtable_limit: 256 * MIB,
        sealed: 1,
        level0_nanos: 0.0,
        debt_bytes: 0,
        debt_soft: 1000 * MIB,
        debt_hard: 4000 * MIB,
        space_taken: 0,
        space_hard: 64 * MIB,
        flush_rate: 100 * MIB,
        compaction_rate: 20 * MIB,
    }
}

fn nanos(pressure: &Pressure) -> f64 {
    match delay(pressure) {
        Verdict::None => 0.0,
        Verdict::Slow { nanos_per_byte, .. } => nanos_per_byte,
        Verdict::Stop { .. } => f64::INFINITY,
    }
}

#[test]
fn soft_limits_cost_nothing() {
    assert_eq!(delay(&calm()), Verdict::None);
    let at_limits = Pressure { memtable_bytes: 128 * MIB, debt_bytes: 1000 * MIB, ..calm() };
    assert_eq!(delay(&at_limits), Verdict::None);
    let one_memtable = Pressure { memtable_bytes: 250 * MIB, sealed: 0, ..calm() };
    assert_eq!(delay(&one_memtable), Verdict::None);
}

#[test]
fn half_way_is_the_rate_of_the_work() {
    let per_byte = 1e9 / (20 * MIB) as f64;
    let debt = Pressure { debt_bytes: 2500 * MIB, ..calm() };
    assert!((nanos(&debt) - per_byte).abs() < 0.01 * per_byte, "{}", nanos(&debt));
}

#[test]
fn more_pressure_is_more_wait_without_steps() {
    let full = 4.0 * 1e9 / (20 * MIB) as f64;
    let mut before = 0.0;
    for debt_bytes in (0..5000).map(|mib| mib * MIB) {
        let now = nanos(&Pressure { debt_bytes, ..calm() });
        assert!(now >= before && now - before < full / 500.0, "{debt_bytes}: {before} to {now}");
        before = now;
    }
    assert!((before - full).abs() < 0.01 * full);
    let mut before = 0.0;
    for memtable_bytes in (64 * 16..256 * 16).map(|step| step * MIB / 16) {
        let now = nanos(&Pressure { memtable_bytes, ..calm() });
        assert!(now >= before && now.is_finite(), "{memtable_bytes}: {before} to {now}");
        assert!(now <= 1.2 * before + 0.1, "{memtable_bytes}: {before} to {now}");
        before = now;
    }
}

#[test]
fn only_memory_stops_and_the_cause_is_told() {
    let full = Pressure { memtable_bytes: 256 * MIB, ..calm() };
    assert_eq!(delay(&full), Verdict::Stop { cause: Cause::Memtables });
    let worst = Pressure { level0_nanos: 1e6, debt_bytes: u64::MAX, ..calm() };
    assert!(nanos(&worst).is_finite());
    let cause = |pressure: &Pressure| match delay(pressure) {
        Verdict::Slow { cause, .. } | Verdict::Stop { cause } => Some(cause),
        Verdict::None => None,
    };
    assert_eq!(cause(&Pressure { level0_nanos: 30.0, ..calm() }), Some(Cause::Level0));
    assert_eq!(cause(&Pressure { debt_bytes: 3000 * MIB, ..calm() }), Some(Cause::Debt));
    assert_eq!(cause(&Pressure { memtable_bytes: 250 * MIB, ..calm() }), Some(Cause::Memtables));
}

#[test]
fn no_write_waits_long() {
    let worst = Pressure { debt_bytes: u64::MAX, compaction_rate: 1, flush_rate: 1, ..calm() };
    // The bound itself is kept where waits are added up: see the tests of `db/core/write_price`.
    assert!(nanos(&worst) * u64::MAX as f64 > WAIT_NANOS_MAX as f64);
    assert!(nanos(&worst) * 100.0 < 1_000_000.0);
    const { assert!(WAIT_NANOS_MAX < 200_000_000) };
}

#[test]
fn a_writer_comes_to_the_rate_of_the_work() {
    // A writer that could write 400 MiB/s, against compaction that takes away 20 MiB/s.
    let mut debt = 0.0;
    let mut written = 0.0;
    for _ in 0..20_000 {
        let wait = nanos(&Pressure { debt_bytes: debt as u64, ..calm() });
        let rate = 1e9 / (1e9 / (400.0 * MIB as f64) + wait);
        written = rate;
        debt = (debt + (rate - 20.0 * MIB as f64) * 0.1).max(0.0);
    }
    assert!((written / MIB as f64 - 20.0).abs() < 1.0, "{}", written / MIB as f64);
    assert!(debt < 2500.0 * MIB as f64);
}

#[test]
fn space_slows_towards_its_limit() {
    let at = |mib: u64| nanos(&Pressure { space_taken: mib * MIB, ..calm() });
    let background = 1e9 / (20 * MIB) as f64;
    assert!(at(0) == 0.0 && at(8) > 0.0 && at(8) < at(16) && at(16) < background);
    assert_eq!((at(32), at(64)), (background, 4.0 * background));
    let slowed = delay(&Pressure { space_taken: 8 * MIB, ..calm() });
    assert!(matches!(slowed, Verdict::Slow { cause: Cause::Space, .. }));
}

#[test]
fn large_jobs_tell_more_of_a_rate_than_small_ones() {
    const MIB: u64 = 1 << 20;
    let second = 1_000_000_000;
    let fast = smoothed(0, 4000 * MIB, 40 * second);
    assert_eq!(fast, 100 * MIB);
    // Three of 1 MiB that took long, then one of 4 GiB that did not.
    let small = (0..3).fold(fast, |rate, _| smoothed(rate, MIB, second / 10));
    assert!(small > 90 * MIB, "{small}");
    let slow = smoothed(10 * MIB, 4000 * MIB, 40 * second);
    assert!(slow > 98 * MIB, "{slow}");
    assert_eq!(smoothed(fast, 1000, second), fast, "too little to tell");
}
