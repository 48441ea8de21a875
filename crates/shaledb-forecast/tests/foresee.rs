//! What long spans and large data come to: limits that are kept, answers that agree.

use shaledb::table::meta::TableMeta;
use shaledb_forecast::{
    Device, Effort, Existing, Forecast, Load, Machine, Order, Scenario, USUAL_WORK, costs_of_ratio,
    foresee,
};

fn scenario(start_bytes: f64, bytes_per_second: f64, days: f64) -> Scenario {
    let device = Device {
        bytes_per_second: 500e6,
        reads_per_second: 20e3,
        life_bytes: f64::INFINITY,
        slower_each_year: 0.0,
    };
    Scenario {
        key_bytes: 20.0,
        value_bytes: 300.0,
        start_bytes,
        compacted: false,
        existing: None,
        load: Load::updates(bytes_per_second),
        days,
        machine: Machine { cores: 8.0, memory_bytes: 32 << 30, device, work: USUAL_WORK },
        config: shaledb::Config::default(),
        costs: costs_of_ratio(2.4),
    }
}

fn little(scenario: &Scenario) -> Forecast {
    let effort = Effort { flushes: 1_000.0, tables: 250.0, ..Effort::default() };
    foresee(scenario, &effort, |_| {}).unwrap()
}

/// Data that grows reaches a limit on space: from then on puts are refused, and files stay below.
#[test]
fn a_limit_on_space_is_reached_and_kept() {
    for (start, rate, inserts, ratio, full) in
        [(100e9, 5e6, 0.2, 2.4, 8.0..16.0), (1e12, 10e6, 0.5, 4.0, 1.0..4.0)]
    {
        let mut scenario = scenario(start, rate, 365.0);
        scenario.load.inserts = inserts;
        scenario.costs = costs_of_ratio(ratio);
        scenario.config.space_limit = 500_000_000_000;
        let forecast = little(&scenario);
        let most = forecast.space_peak();
        assert!((0.9 * 500e9..=500e9).contains(&most), "{most:e}");
        let day = forecast.full_day.unwrap();
        assert!(full.contains(&day), "full after {day} days");
        let refused = forecast.totals.refused / forecast.totals.seconds;
        assert!(refused > 0.9, "{refused}");
        assert!(forecast.totals.write_amp() < 100.0, "{}", forecast.totals.write_amp());
    }
    // From nothing, within hours of a year, before any row is dropped for its age.
    let mut scenario = scenario(0.0, 20e6, 365.0);
    (scenario.load.inserts, scenario.load.order) = (1.0, Order::Ascending);
    scenario.load.retention_days = Some(90.0);
    scenario.config.space_limit = 300_000_000_000;
    let forecast = little(&scenario);
    let hours = 24.0 * forecast.full_day.unwrap();
    assert!((7.0..12.0).contains(&hours), "full after {hours} hours");
    assert_eq!(forecast.stretches.len(), 8);
}

/// Far more than has room would be written: the limit is found all the same, and met when it is
/// full, however much of the time may be run.
#[test]
fn a_limit_that_is_soon_full_is_found() {
    let usual = Effort::default();
    let few = Effort { flushes: 1_000.0, tables: 250.0, ..Effort::default() };
    for (start, rate, limit, hours, effort) in [
        (100e9, 100e6, 500e9, 1.5..5.0, &few),
        (10e9, 20e6, 60e9, 0.8..3.0, &few),
        (1e9, 1e6, 25e9, 8.0..24.0, &usual),
        (0.0, 20e6, 300e9, 6.0..13.0, &usual),
    ] {
        let mut scenario = scenario(start, rate, 365.0);
        scenario.load.inserts = 1.0;
        scenario.config.space_limit = limit as u64;
        let forecast = foresee(&scenario, effort, |_| {}).unwrap();
        let day = forecast.full_day.unwrap_or_else(|| panic!("{start:e} {rate:e} {limit:e}"));
        assert!(hours.contains(&(24.0 * day)), "{start:e} {limit:e}: after {} hours", 24.0 * day);
        assert!(forecast.space_peak() <= limit, "{:e}", forecast.space_peak());
        assert!(forecast.totals.refused > 0.9 * forecast.totals.seconds);
    }
}

/// What goes for long is no more than what was written while as much as goes was written, and what
/// is wanted and what is had are told alike.
#[test]
fn what_goes_for_long_is_what_went() {
    for (rate, flushes) in [(60e6, 1_000.0), (42e6, 10_000.0)] {
        let mut scenario = scenario(2e12, rate, 30.0);
        scenario.machine.device.bytes_per_second = 600e6;
        let effort = Effort { flushes, tables: 250.0, ..Effort::default() };
        let forecast = foresee(&scenario, &effort, |_| {}).unwrap();
        let (most, went) =
            (forecast.most.bytes_per_second, forecast.totals.written / forecast.totals.seconds);
        assert!(went < rate && most < 1.1 * went, "{most:e} goes, {went:e} went");
        assert_eq!(forecast.most.is_warm, flushes == 10_000.0);
    }
}

/// New rows, none of which goes: at the end there is what was there and what was written, however
/// much more was wanted, or if as much as goes was.
#[test]
fn what_is_there_at_the_end_was_written() {
    let endless = f64::INFINITY;
    for (start, rate) in [(0.0, 1e9), (2e12, 1e9), (1e12, 10e6), (0.0, endless), (1e9, endless)] {
        let mut scenario = scenario(start, rate, 365.0);
        (scenario.load.inserts, scenario.load.order) = (1.0, Order::Ascending);
        scenario.machine.device.bytes_per_second = 200e6;
        let forecast = little(&scenario);
        let written = start + forecast.totals.written;
        let off = forecast.end_bytes / written - 1.0;
        assert!(off.abs() < 0.01, "{start:e}: {:e} of {written:e}", forecast.end_bytes);
        // Each stretch is of a tree as large as what was written before its middle.
        let mut before = start;
        let samples = forecast.samples.len() / forecast.stretches.len();
        for (at, stretch) in forecast.stretches.iter().enumerate() {
            let all = stretch.totals.written / stretch.run_days;
            let all = all * (stretch.to_day - stretch.from_day);
            let (live, middle) = (forecast.samples[at * samples].live, before + all / 2.0);
            assert!((live / middle - 1.0).abs() < 0.1, "{at}: {live:e}, {middle:e} was written");
            before += all;
        }
    }
}

/// As much as goes: what the data becomes depends on it, by what stays, what goes and a limit.
#[test]
fn an_endless_load_makes_the_data_it_makes() {
    let mut scenario = scenario(100e9, f64::INFINITY, 365.0);
    (scenario.load.inserts, scenario.load.order) = (1.0, Order::Ascending);
    scenario.load.retention_days = Some(5.0);
    let forecast = little(&scenario);
    let last = &forecast.stretches.last().unwrap().totals;
    let of_five_days = last.written / last.seconds * 5.0 * 86_400.0;
    let off = forecast.end_bytes / of_five_days - 1.0;
    assert!(off.abs() < 0.05, "{:e}, {of_five_days:e}", forecast.end_bytes);

    scenario.load.retention_days = None;
    scenario.config.space_limit = 2_000_000_000_000;
    let forecast = little(&scenario);
    assert!((1.8e12..=2e12).contains(&forecast.space_peak()), "{:e}", forecast.space_peak());
    assert!(forecast.full_day.is_some_and(|day| (0.1..2.0).contains(&day)));
    scenario.config.space_limit = 0;
    (scenario.load.inserts, scenario.load.deletes) = (0.0, 0.2);
    scenario.load.order = Order::Random;
    assert_eq!(little(&scenario).end_bytes, 0.0);
}

/// A database whose keys ascend: below 24 tables, above them 4 that came later, and 2 of level 0.
fn ascending() -> Existing {
    let table = |number: u64| TableMeta {
        smallest: (1000 * number).to_be_bytes().to_vec(),
        largest: (1000 * number + 999).to_be_bytes().to_vec(),
        file_bytes: 30_000_000,
        entries: 200_000,
        key_bytes: 20 * 200_000,
        value_bytes: 300 * 200_000,
        raw_bytes: 64_000_000,
        data_bytes: 28_000_000,
        min_seq: number,
        max_seq: number,
        ..TableMeta::default()
    };
    let mut levels = vec![Vec::new(); 7];
    levels[0] = vec![table(29), table(28)];
    levels[5] = (24..28).map(table).collect();
    levels[6] = (0..24).map(table).collect();
    Existing { name: "t".to_owned(), config: shaledb::TreeConfig::default(), levels }
}

/// New rows go behind those of a database that is there: they are merged with none, and all are
/// updated and dropped by their age alike.
#[test]
fn new_rows_come_behind_those_of_a_database() {
    let existing = ascending();
    assert_eq!(existing.rows(), 30.0 * 200_000.0);
    let mut scenario = scenario(existing.rows() * 320.0, 2e6, 0.1);
    (scenario.load.inserts, scenario.load.order) = (1.0, Order::Ascending);
    scenario.existing = Some(existing);
    let forecast = little(&scenario);
    assert!(forecast.from_tables && forecast.totals.write_amp() < 0.8);
    let last = forecast.samples.last().unwrap();
    assert!(forecast.totals.merge_read < 1e6, "{:e} was merged", forecast.totals.merge_read);
    let there = 30.0 * 30e6 + forecast.totals.flushed;
    assert!((last.space / there - 1.0).abs() < 0.1, "{:e} {there:e}", last.space);

    // After its time all that was there at the start is gone, and as much has come as is written.
    scenario.load.retention_days = Some(0.05);
    let forecast = little(&scenario);
    let last = forecast.samples.last().unwrap();
    assert!(last.space < 0.9 * 0.05 * 86_400.0 * 2e6, "{:e} of {:e}", last.space, last.live);

    // Half of what is written are updates of rows, of which all are there once.
    scenario.load.retention_days = None;
    scenario.load.inserts = 0.5;
    let forecast = little(&scenario);
    let write_amp = forecast.totals.write_amp();
    let usual = little(&Scenario { existing: None, ..scenario }).totals.write_amp();
    assert!((0.7..1.3).contains(&(write_amp / usual)), "{write_amp} {usual}");
}

/// A day that is too long to be run is run faster, and comes to much the same.
#[test]
fn hours_that_are_run_faster_come_to_the_same() {
    let mut scenario = scenario(100e9, 10e6, 365.0);
    scenario.load.bytes_per_second[..12].fill(40e6);
    scenario.machine.device.bytes_per_second = 310e6;
    let careful = Effort { flushes: 8_000.0, ..Effort::default() };
    let (fast, slow) = (little(&scenario), foresee(&scenario, &careful, |_| {}).unwrap());
    assert!(fast.hours_shorter > 6.0 * slow.hours_shorter && slow.hours_shorter > 1.0);
    let near = |of: fn(&Forecast) -> f64, by: f64| {
        let (one, other) = (of(&fast), of(&slow));
        assert!((one / other - 1.0).abs() < by, "{one} {other}");
    };
    near(|forecast| forecast.totals.write_amp(), 0.15);
    near(|forecast| forecast.totals.slowed_share(), 0.25);
    // What waits in the evening is told as of real hours.
    let most = |forecast: &Forecast| {
        forecast.samples.iter().map(|sample| sample.waiting).fold(0.0, f64::max)
    };
    near(most, 0.8);
    for forecast in [&fast, &slow] {
        assert!((1e11..1e12).contains(&most(forecast)), "{:e}", most(forecast));
        let end = forecast.samples.last().unwrap().day;
        assert!((end - 1.0).abs() < 0.01, "a day was run: {end}");
    }
}
