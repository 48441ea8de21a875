//! What long spans and large data come to: limits that are kept, answers that agree.

use shaledb_forecast::{
    Device, Effort, Forecast, Load, Machine, Scenario, USUAL_WORK, costs_of_ratio, foresee,
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
}

/// What goes for long is no more than what was written while as much as goes was written, and what
/// is wanted and what is had are told alike.
#[test]
fn what_goes_for_long_is_what_went() {
    for (rate, flushes) in [(60e6, 1_000.0), (36e6, 10_000.0)] {
        let mut scenario = scenario(2e12, rate, 30.0);
        scenario.machine.device.bytes_per_second = 600e6;
        let effort = Effort { flushes, tables: 250.0, ..Effort::default() };
        let forecast = foresee(&scenario, &effort, |_| {}).unwrap();
        let (most, went) =
            (forecast.most.bytes_per_second, forecast.totals.written / forecast.totals.seconds);
        assert!(went < rate && most < 1.1 * went, "{most:e} goes, {went:e} went");
        assert_eq!(forecast.most.settled, flushes == 10_000.0);
    }
}
