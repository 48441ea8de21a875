//! Long spans of time: all of it where that is possible, else some days of it here and there.

use crate::growth::Growth;
use crate::outcome::{Sample, Totals};
use crate::run::{DAY, Run};
use crate::scenario::{HOURS, Scenario};
use serde::Serialize;
use shaledb::compaction::policy::candidates::YARDSTICK;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effort {
    /// How many flushes at most, about.
    pub flushes: f64,
    /// How many tables there are at most, about: of more, tables are taken to be larger.
    pub tables: f64,
    /// How many samples there are.
    pub samples: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { flushes: 10_000.0, tables: 1_000.0, samples: 60 }
    }
}

/// Of spans that change, so many stretches are looked at.
const STRETCHES: usize = 8;
/// The same of loads that change by the hour, where not all of a day can be run.
const STRETCHES_OF_DAYS: usize = 3;
/// A day that is run faster has at least so many flushes, and this share of the data: merges that
/// wait then are little beside what it writes.
const DAY_FLUSHES: f64 = 400.0;
const DAY_SHARE: f64 = 0.05;
/// One day of such a load is run as it is up to so many times the effort.
const LONG_DAY: f64 = 8.0;
/// Where as much is written as goes, levels stay as they are after so much of the data was written
/// (measured for 100 GB to 2 TB: a tenth to a ninth); until then more goes than for long.
const WARM: f64 = 0.15;
/// Bytes a second of an endless load before it is known what goes, and the least that are taken to
/// go: of a tree that is full, years would be run.
const ENDLESS: f64 = 200e6;
const ENDLESS_MIN: f64 = 1e5;
/// Where less goes of it than at its start, so many times more days are run at most.
const LONGER: f64 = 20.0;
/// A tree whose size changes by less than this share stays as it is.
const STEADY: f64 = 0.05;
/// A stretch whose size, by what was written in it, is off by more than this share is run again
/// with that; so many are at most.
const SIZE_OFF: f64 = 0.1;
const AGAIN: usize = 2;

/// A span that was run, and for which span it stands.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// For which days.
    pub from_day: f64,
    /// See `from_day`.
    pub to_day: f64,
    /// How many days of these were run.
    pub run_days: f64,
    /// What was done in those.
    pub totals: Totals,
}

/// What gives first when more is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The device.
    Device,
    /// The cores.
    Cores,
    /// The threads for background work.
    Threads,
    /// The threads that write.
    Writers,
    /// The limit on space.
    Space,
}

impl Bottleneck {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Bottleneck::Device => "the device",
            Bottleneck::Cores => "the cores",
            Bottleneck::Threads => "the background threads",
            Bottleneck::Writers => "the threads that write",
            Bottleneck::Space => "the limit on space",
        }
    }
}

/// The most that can be written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Most {
    /// Bytes of keys and values a second, for long.
    pub bytes_per_second: f64,
    /// What is at its limit then.
    pub first: Bottleneck,
    /// Whether so much was written before it was measured that the levels had come to stay as they
    /// are; else less goes.
    pub is_warm: bool,
}

/// What was foreseen.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// How it goes over time.
    pub samples: Vec<Sample>,
    /// All of it together.
    pub totals: Totals,
    /// Which spans were run.
    pub stretches: Vec<Stretch>,
    /// The most that can be written at the end.
    pub most: Most,
    /// Bytes of keys and values at the end.
    pub end_bytes: f64,
    /// How many tables' worth of the engine's each table of the model is, at most.
    pub coarseness: f64,
    /// Whether it began with the tables that are there.
    pub from_tables: bool,
    /// How many times shorter than they are the hours of the load were.
    pub hours_shorter: f64,
    /// The limit on space, 0 for none, and the day from which on puts are refused for want of it.
    pub space_limit: f64,
    /// See `space_limit`.
    pub full_day: Option<f64>,
}

impl Forecast {
    /// How much larger it is at the end than at the last sample, which may be some time before it.
    fn beyond(&self) -> f64 {
        let live = self.samples.last().map_or(0.0, |sample| sample.live);
        if live > 0.0 { (self.end_bytes / live).max(1.0) } else { 1.0 }
    }

    /// What was scaled up is within the limit on space, too.
    fn within_limit(&self, bytes: f64) -> f64 {
        if self.space_limit > 0.0 { bytes.min(self.space_limit) } else { bytes }
    }

    /// Bytes of all files at the end.
    pub fn space(&self) -> f64 {
        let last = self.samples.last().map_or(0.0, |sample| sample.space);
        self.within_limit(last * self.beyond())
    }

    /// The most bytes of all files at any moment.
    pub fn space_peak(&self) -> f64 {
        let last = self.samples.last().map_or(0.0, |sample| sample.space_peak);
        let last = self.within_limit(last * self.beyond());
        self.samples.iter().map(|sample| sample.space_peak).fold(last, f64::max)
    }

    /// Whether what waits to be written became more to the end of what was run.
    pub fn falls_behind(&self) -> bool {
        let run: f64 = self.stretches.iter().map(|stretch| stretch.run_days).sum();
        let last = self.samples.last().map_or(0.0, |sample| sample.waiting);
        let wanted = self.samples.last().map_or(0.0, |sample| sample.wanted);
        let of_each = run * self.hours_shorter * DAY / self.stretches.len().max(1) as f64;
        last > 0.02 * wanted * of_each
    }
}

/// Bytes a second that are taken to be written: what is wanted. Of an endless load what goes at
/// the start, if the size of the data depends on it; more is known of it by each stretch.
fn rate(scenario: &Scenario, effort: &Effort) -> f64 {
    let demand = scenario.mean_demand();
    if demand.is_finite() || scenario.growth(1.0) == 0.0 {
        return if demand.is_finite() { demand } else { ENDLESS };
    }
    let bytes = scenario.start_bytes;
    let mut run = Run::new(scenario, bytes, table_bytes(scenario, bytes, effort));
    run.flushes(effort.flushes / 20.0);
    let _ = run.take_totals();
    run.flushes(effort.flushes / 20.0);
    let totals = run.take_totals();
    (totals.written / totals.seconds.max(1e-9)).max(ENDLESS_MIN)
}

/// The size of tables with which there are not too many.
fn table_bytes(scenario: &Scenario, bytes: f64, effort: &Effort) -> u64 {
    let stored = bytes * scenario.costs.0[YARDSTICK].ratio.max(0.3);
    (scenario.config.table_bytes as f64).max(stored / effort.tables) as u64
}

/// Foresees all of it.
///
/// # Errors
/// What contradicts itself in the scenario, by name.
pub fn foresee(
    scenario: &Scenario,
    effort: &Effort,
    mut progress: impl FnMut(f64),
) -> Result<Forecast, String> {
    scenario.check()?;
    let short = is_short(scenario, effort);
    has_room(scenario, effort)?;
    let Ran { samples, stretches, coarseness, end_bytes, hours_shorter } = if short {
        straight(scenario, effort, &mut progress)
    } else {
        in_stretches(scenario, effort, &mut progress)
    };
    let mut totals = Totals::default();
    for stretch in &stretches {
        totals.add(&stretch.totals, (stretch.to_day - stretch.from_day) / stretch.run_days);
    }
    let mut most = most(scenario, end_bytes.max(scenario.start_bytes), effort);
    if let Some(written) = all_that_goes(&samples, &stretches) {
        most.bytes_per_second = most.bytes_per_second.min(written);
    }
    progress(1.0);
    let from_tables = short && scenario.existing.is_some() && coarseness <= 2.0;
    let space_limit = scenario.config.space_limit as f64;
    let full_day = full_day(&samples, &stretches);
    Ok(Forecast {
        samples,
        totals,
        stretches,
        most,
        end_bytes,
        coarseness,
        from_tables,
        hours_shorter,
        space_limit,
        full_day,
    })
}

/// Bytes a second in the last stretch, if all the time some waited to be written: no more goes.
fn all_that_goes(samples: &[Sample], stretches: &[Stretch]) -> Option<f64> {
    let last = stretches.last()?;
    let of_last = &samples[samples.len() - samples.len() / stretches.len()..];
    let always = !of_last.is_empty() && of_last.iter().all(|sample| sample.waiting > 0.0);
    always.then(|| last.totals.written / last.totals.seconds.max(1e-9))
}

/// From when on puts are refused.
fn full_day(samples: &[Sample], stretches: &[Stretch]) -> Option<f64> {
    if let [_, _, ..] = stretches {
        let full = |stretch: &&Stretch| stretch.totals.refused > 0.5 * stretch.totals.seconds;
        return stretches.iter().find(full).map(|stretch| stretch.from_day);
    }
    let at = samples.iter().position(|sample| sample.refused > 0.0)?;
    Some(if at == 0 { 0.0 } else { samples[at - 1].day })
}

/// Whether all of the time can be run.
fn is_short(scenario: &Scenario, effort: &Effort) -> bool {
    let demand = scenario.mean_demand();
    // Not all hours are alike in one day: that is run as it is, if it can be.
    let suffices = match scenario.varies() && scenario.days <= 1.0 {
        true => LONG_DAY * effort.flushes,
        false => effort.flushes,
    };
    demand.is_finite() && flushes_of_a_day(scenario, demand) * scenario.days <= suffices
        || demand.is_infinite()
            && scenario.days * DAY * ENDLESS / memtable(scenario) <= effort.flushes
}

fn memtable(scenario: &Scenario) -> f64 {
    let (memory, cores) = (scenario.machine.memory_bytes, scenario.machine.cores.ceil() as usize);
    shaledb::db::SettingsInUse::resolve(&scenario.config, memory, cores).memtable_bytes as f64
}

fn flushes_of_a_day(scenario: &Scenario, demand: f64) -> f64 {
    demand * DAY / memtable(scenario)
}

/// What was run of the time.
struct Ran {
    samples: Vec<Sample>,
    stretches: Vec<Stretch>,
    coarseness: f64,
    end_bytes: f64,
    hours_shorter: f64,
}

/// Refuses a limit on space that what is there at the start goes beyond.
fn has_room(scenario: &Scenario, effort: &Effort) -> Result<(), String> {
    if scenario.config.space_limit == 0 {
        return Ok(());
    }
    let bytes = scenario.start_bytes;
    let left_out = Run::new(scenario, bytes, table_bytes(scenario, bytes, effort)).left_out;
    if left_out > 0.01 * bytes {
        return Err(format!(
            "the limit on space: there is room for {:.0} % of the data at the start. Raise it, \
             or name less data",
            100.0 * (1.0 - left_out / bytes)
        ));
    }
    Ok(())
}

/// Bytes of keys and values for which the limit on space has room; infinity without one.
fn room(scenario: &Scenario, effort: &Effort) -> f64 {
    let limit = scenario.config.space_limit as f64;
    if limit == 0.0 {
        return f64::INFINITY;
    }
    // Of an endless load it is not known yet how much comes: as much as fills it.
    let growth = Growth::at(scenario, scenario.mean_demand().min(1e15));
    let most = (0..=HOURS).map(|part| growth.bytes_on(scenario.days * part as f64 / 24.0));
    let most = most.fold(scenario.start_bytes, f64::max);
    // More than what the best codec makes of it has no room in any case: what is tried is near what
    // is found, and no tree of far more is made.
    let best = scenario.costs.0.iter().map(|cost| cost.ratio).fold(1.0, f64::min).max(0.01);
    let tried = most.min(1.2 * limit / best);
    let fits = |tables_of| {
        let run = Run::new(scenario, tried, table_bytes(scenario, tables_of, effort));
        if run.left_out > 0.0 { tried - run.left_out } else { f64::INFINITY }
    };
    // With tables as large as those of what has room.
    let found = fits(fits(tried).min(tried));
    if found.is_infinite() && tried < most { tried } else { found }
}

/// The first day on which something is so, if it stays so until `to` and is so there.
fn day_when(from: f64, to: f64, is_so: impl Fn(f64) -> bool) -> Option<f64> {
    if !is_so(to) {
        return None;
    }
    let (mut before, mut after) = (from, to);
    for _ in 0..40 {
        let middle = f64::midpoint(before, after);
        match is_so(middle) {
            true => after = middle,
            false => before = middle,
        }
    }
    Some(after)
}

fn straight(scenario: &Scenario, effort: &Effort, progress: &mut impl FnMut(f64)) -> Ran {
    let days = scenario.days;
    let most = Growth::at(scenario, rate(scenario, effort)).bytes_on(days);
    let most = most.max(scenario.start_bytes).max(scenario.load.universe_bytes);
    let table = table_bytes(scenario, most, effort);
    let mut run = Run::new(scenario, scenario.start_bytes, table);
    let mut samples = Vec::new();
    run.until(days * DAY, days * DAY / effort.samples as f64, |sample| {
        progress(0.9 * sample.day / days);
        samples.push(sample);
    });
    let stretch =
        Stretch { from_day: 0.0, to_day: days, run_days: days, totals: run.take_totals() };
    let end_bytes = samples.last().map_or(scenario.start_bytes, |sample: &Sample| sample.live);
    let coarseness = table as f64 / scenario.config.table_bytes as f64;
    Ran { samples, stretches: vec![stretch], coarseness, end_bytes, hours_shorter: 1.0 }
}

/// How much of each stretch is run.
struct Paced {
    count: usize,
    /// See [`Run::pace`].
    pace: f64,
    warm_days: f64,
    run_days: f64,
    /// Bytes a second for which that is.
    rate: f64,
}

fn paced(scenario: &Scenario, effort: &Effort, rate: f64, steady: bool) -> Paced {
    let varies = scenario.varies();
    let of_day = flushes_of_a_day(scenario, rate.min(ENDLESS));
    // Half of it to find the shape that stays.
    let can_run = |count: usize| effort.flushes / count as f64 / of_day / 2.0;
    let count = match varies && can_run(STRETCHES) < 1.0 {
        _ if steady || varies && scenario.days <= 1.0 => 1,
        true => STRETCHES_OF_DAYS,
        false => STRETCHES,
    };
    let can_run = can_run(count);
    // A load that changes by the hour is run for whole days, or for one that is shorter.
    let least = DAY_FLUSHES.max(DAY_SHARE * scenario.start_bytes / memtable(scenario)) / of_day;
    let pace = if varies { can_run.max(least).min(1.0) } else { 1.0 };
    let run_days = match varies {
        true => can_run.floor().max(1.0).min(scenario.days) * pace,
        false => can_run,
    };
    Paced { count, pace, run_days, warm_days: if varies { pace } else { run_days }, rate }
}

/// What stretches have in common.
struct Stretches<'a> {
    /// What is run: after some time it is in the shape of a tree that is written to.
    worn: &'a Scenario,
    effort: &'a Effort,
    /// Bytes of keys and values for which there is room.
    room: f64,
    paced: &'a Paced,
}

/// A stretch that was run.
struct RanOnce {
    stretch: Stretch,
    samples: Vec<Sample>,
    coarseness: f64,
    /// Bytes that were taken to be there in its middle.
    bytes: f64,
    is_full: bool,
    /// Bytes a second of all of its time that are really written.
    rate: f64,
}

fn in_stretches(scenario: &Scenario, effort: &Effort, progress: &mut impl FnMut(f64)) -> Ran {
    let worn = Scenario { compacted: false, existing: None, ..scenario.clone() };
    let mut growth = Growth::at(scenario, rate(&worn, effort));
    let changes = (growth.bytes_on(scenario.days) / scenario.start_bytes.max(1.0) - 1.0).abs();
    let slows = scenario.machine.device.slower_each_year * scenario.days / 365.0;
    let room = room(&worn, effort);
    let steady = changes < STEADY && slows < STEADY && room.is_infinite();
    let paced = paced(scenario, effort, growth.rate(), steady);
    let each = Stretches { worn: &worn, effort, room, paced: &paced };
    let mut coarseness: f64 = 1.0;
    // Bytes that are there at the beginning of a stretch, by what was really written before it.
    let mut there = scenario.start_bytes;
    let (mut samples, mut stretches) = (Vec::new(), Vec::new());
    let (mut from_day, mut again) = (0.0, AGAIN);
    for at in 0..paced.count {
        let left = paced.count - at;
        let mut ran = each.run(&growth, (from_day, there), left);
        while again > 0 && ran.is_of_another_size(&mut growth, (from_day, there)) {
            again -= 1;
            ran = each.run(&growth, (from_day, there), left);
        }
        growth.go_on_at(ran.rate);
        let to_day = ran.stretch.to_day;
        there = (there + growth.between(from_day, to_day)).clamp(0.0, room);
        if room.is_finite() {
            // Where the limit on space was below that, no more is there.
            let live = ran.samples.last().map_or(ran.bytes, |sample: &Sample| sample.live);
            let rest = growth.between(f64::midpoint(from_day, to_day), to_day);
            there = there.min(ran.bytes.min(live) + rest).max(0.0);
        }
        growth.known_to(to_day);
        coarseness = coarseness.max(ran.coarseness);
        samples.extend(ran.samples);
        stretches.push(ran.stretch);
        progress(0.9 * (at + 1) as f64 / paced.count as f64);
        from_day = to_day;
        if from_day >= scenario.days {
            break;
        }
    }
    Ran { samples, stretches, coarseness, end_bytes: there, hours_shorter: 1.0 / paced.pace }
}

impl RanOnce {
    /// Whether, by what was written in it, its middle has another size than was taken: then that
    /// rate is taken from now on.
    fn is_of_another_size(&self, growth: &mut Growth<'_>, (from, there): (f64, f64)) -> bool {
        let mut really = growth.clone();
        really.go_on_at(self.rate);
        let middle = f64::midpoint(from, self.stretch.to_day);
        let bytes = (there + really.between(from, middle)).max(0.0);
        let is_off = (bytes - self.bytes).abs() > SIZE_OFF * bytes.max(self.bytes);
        if is_off && !self.is_full {
            *growth = really;
        }
        is_off && !self.is_full
    }
}

impl Stretches<'_> {
    /// Until which day a stretch goes, and whether there is then no more room before the end.
    fn end(&self, growth: &Growth<'_>, (from, there): (f64, f64), left: usize) -> (f64, bool) {
        let (days, room) = (self.worn.days, self.room);
        let fills = day_when(from, days, |day| there + growth.between(from, day) >= room);
        // All stretches but one are of the time before it is full, and that one of all the rest.
        let to_day = match fills {
            _ if left == 1 => days,
            Some(_) if there >= 0.99 * room => days,
            Some(day) => from + (day - from) / (left - 1) as f64,
            None => from + (days - from) / left as f64,
        };
        (to_day, fills.is_some())
    }

    /// Runs one that begins on a day with so many bytes, the first of so many that are left.
    fn run(&self, growth: &Growth<'_>, (from_day, there): (f64, f64), left: usize) -> RanOnce {
        let (worn, room) = (self.worn, self.room);
        let (demand, varies) = (worn.mean_demand(), worn.varies());
        let &Paced { count, pace, warm_days, run_days, rate } = self.paced;
        let longer = match demand.is_finite() {
            true => 1.0,
            false => (rate / growth.rate().max(1.0)).clamp(1.0, LONGER),
        };
        let (to_day, fills) = self.end(growth, (from_day, there), left);
        let middle = f64::midpoint(from_day, to_day);
        let bytes = (there + growth.between(from_day, middle)).clamp(0.0, room);
        let is_full = bytes >= 0.99 * room;
        let table = table_bytes(worn, bytes, self.effort);
        // Of more than has room there is what has: it begins at the limit itself.
        let bytes = if is_full { 1.1 * room } else { bytes };
        let mut run = Run::new(worn, bytes, table);
        (run.age_days, run.pace) = (middle.floor(), pace);
        // Before it is full, no more is written than there is time for.
        let span = if fills && !is_full { to_day - from_day } else { f64::INFINITY };
        let (warm_days, run_days) = match varies {
            true => (warm_days, run_days),
            false => ((longer * warm_days).min(span / 2.0), (longer * run_days).min(span / 2.0)),
        };
        run.until(warm_days * DAY, f64::INFINITY, |_| {});
        let _ = run.take_totals();
        if is_full && !varies {
            until_rest(&mut run, demand * run_days * DAY);
        }
        let warm_days = run.now / DAY;
        let each = (self.effort.samples / count).max(HOURS / 2) as f64;
        let end = (warm_days + run_days) * DAY;
        let mut samples = Vec::new();
        run.until(end, run_days * DAY / each, |mut sample| {
            sample.day = (sample.day - warm_days) / pace + if count == 1 { 0.0 } else { middle };
            samples.push(sample);
        });
        let totals = run.take_totals();
        let rate = match demand.is_finite() {
            true => demand * (totals.written / totals.wanted.max(1.0)).min(1.0),
            false => totals.written / totals.seconds.max(1e-9),
        };
        let coarseness = table as f64 / worn.config.table_bytes as f64;
        let stretch = Stretch { from_day, to_day, run_days, totals };
        RanOnce { stretch, samples, coarseness, bytes, is_full, rate }
    }
}

/// Lets merges end that make the last room below a limit on space, for a week or so many bytes of
/// writes at most: what they write they do not write for all of a year.
fn until_rest(run: &mut Run<'_>, bytes: f64) {
    let mut written = 0.0;
    for _ in 0..7 * HOURS {
        run.until(run.now + DAY / HOURS as f64, f64::INFINITY, |_| {});
        let totals = run.take_totals();
        written += totals.written;
        if totals.compacted == 0.0 || written > bytes {
            break;
        }
    }
}

/// The most that can be written for long, with so much there: what back-pressure lets through.
fn most(scenario: &Scenario, bytes: f64, effort: &Effort) -> Most {
    let mut endless = scenario.clone();
    (endless.compacted, endless.existing) = (false, None);
    endless.load.bytes_per_second = [f64::INFINITY; HOURS];
    endless.load.clients = endless.load.clients.max(scenario.machine.cores);
    let table = table_bytes(scenario, bytes, effort);
    let mut run = Run::new(&endless, bytes, table);
    run.age_days = scenario.days;
    let needed = WARM * bytes / memtable(scenario);
    run.flushes(needed.clamp(effort.flushes / 10.0, effort.flushes / 2.0));
    let _ = run.take_totals();
    run.flushes(effort.flushes / 5.0);
    let totals = run.take_totals();
    let seconds = totals.seconds.max(1e-9);
    let threads = run.threads();
    let first = if totals.refused > 0.1 * seconds {
        Bottleneck::Space
    } else if totals.device_full > 0.3 * seconds {
        Bottleneck::Device
    } else if totals.cores_full > 0.5 * seconds {
        Bottleneck::Cores
    } else if totals.busy > 0.8 * threads * seconds {
        Bottleneck::Threads
    } else {
        Bottleneck::Writers
    };
    let is_warm = needed <= effort.flushes / 2.0 || first == Bottleneck::Space;
    Most { bytes_per_second: totals.written / seconds, first, is_warm }
}
