//! Time passes: users write, memtables fill, flushes and compactions run, writers are slowed.
//!
//! Decisions are the engine's own: which compaction runs (`compaction::picker`), where its output
//! is cut (`compaction::split`), how much writers are slowed (`write::throttle`), which codec a
//! level has (`compaction::policy`), what is left of a limit on space (`write::space`,
//! `fs::balance`). The model is in what tables hold, how long work takes, and who shares cores and
//! device.

mod jobs;

use crate::content::{Density, share};
use crate::keys::Keys;
use crate::memtable::{Ground, Memtable, NODE_BYTES};
use crate::outcome::{Sample, Totals};
use crate::policy::{Policy, Still};
use crate::rates::{self, Job, Rates, Wanted};
use crate::running::{Flush, Running};
use crate::scenario::{Order, Scenario};
use crate::tree::{Tree, cost_of};
use shaledb::compaction::idle::IDLE_AFTER_NANOS;
use shaledb::compaction::plan::Settings;
use shaledb::compaction::policy::LAST;
use shaledb::compaction::policy::chosen::LevelCodecs;
use shaledb::compaction::score;
use shaledb::db::SettingsInUse;
use shaledb::write::level0::{Level0, UnderWay};
use shaledb::write::space::{self, SpaceState};
use shaledb::write::throttle::{self, Pressure, Verdict};
use std::collections::VecDeque;

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;
/// Without writes for so many seconds, the engine is at rest.
const QUIET: f64 = IDLE_AFTER_NANOS as f64 / 1e9;
/// How often the data is halved to find what a limit on space has room for.
const HALVINGS: usize = 12;
/// Who writes this share of what is let through is taken to write all of it.
const ALL_OF_IT: f64 = 0.99;
/// Rows that are dropped by age go in so many steps.
const DROPS: f64 = 128.0;

/// A forecast under way.
#[derive(Debug)]
pub struct Run<'a> {
    scenario: &'a Scenario,
    sizes: SettingsInUse,
    /// The tables.
    pub tree: Tree,
    /// Whether tables are larger than the engine's.
    is_coarse: bool,
    keys: Keys,
    ground: Ground,
    /// Seconds since the start.
    pub now: f64,
    /// How many days the device has been in use at the start.
    pub age_days: f64,
    /// How long an hour of the load is, of a real one: a day that is too long to be run is run
    /// faster, and what waits by its end is as much less.
    pub pace: f64,
    flushed: u64,
    active: Memtable,
    sealed: Vec<Memtable>,
    flush: Option<Flush>,
    merges: Vec<Running>,
    policy: Policy,
    /// Bytes a second, smoothed as the engine does.
    flush_rate: u64,
    merge_rate: u64,
    verdict: Verdict,
    debt: f64,
    state: SpaceState,
    /// Bytes that were to be written and wait.
    waiting: f64,
    wrote_at: f64,
    /// How long less is written than should be.
    late: f64,
    /// When which places were reached, for dropping old rows.
    reached: VecDeque<(f64, u64)>,
    /// Bytes of keys and values of all rows.
    live: f64,
    /// Bytes of those that were to be there at the start, for which the limit on space has no room.
    pub left_out: f64,
    totals: Totals,
    sample: Sample,
    sampled: Totals,
}

impl<'a> Run<'a> {
    /// The start: the rows that are there in their usual shape, and nothing in memory.
    /// `table_bytes` is the size of tables, at least that of the settings: fewer and larger ones
    /// are faster to look at.
    ///
    /// Near a limit on space it is compacted, as merges make room before puts are refused; and of
    /// more than has room then there is what has.
    pub fn new(scenario: &'a Scenario, start_bytes: f64, table_bytes: u64) -> Run<'a> {
        let begin = |bytes, compacted| Run::begin(scenario, bytes, table_bytes, compacted);
        let mut run = begin(start_bytes, scenario.compacted);
        if run.is_full() {
            run = begin(start_bytes, true);
        }
        if !run.is_full() || start_bytes <= scenario.row_bytes() {
            return run;
        }
        let (mut fits, mut too_many) = (0.0, start_bytes);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(fits, too_many);
            match begin(middle, true).is_full() {
                true => too_many = middle,
                false => fits = middle,
            }
        }
        Run { left_out: start_bytes - fits, ..begin(fits, true) }
    }

    /// The start, whether there is room for it or not.
    fn begin(
        scenario: &'a Scenario,
        start_bytes: f64,
        table_bytes: u64,
        compacted: bool,
    ) -> Run<'a> {
        let cores = scenario.machine.cores.ceil() as usize;
        let config = &scenario.config;
        let sizes = SettingsInUse::resolve(config, scenario.machine.memory_bytes, cores);
        let settings = Settings {
            memtable_bytes: sizes.memtable_bytes,
            table_bytes: table_bytes.max(sizes.table_bytes),
            codecs: LevelCodecs::of_config(&config.tree),
            filter_bits: config.tree.filter_bits,
            building: false,
        };
        let row = scenario.row_bytes();
        let rows = start_bytes / row;
        let load = &scenario.load;
        let seconds = scenario.days * DAY;
        let demand = scenario.mean_demand().min(1e9);
        let ground = match load.order {
            Order::Random => Ground { order: load.order, low: 0, high: u64::MAX, unit: 0.0 },
            Order::Ascending => {
                let new = demand / scenario.write_bytes() * load.inserts * seconds;
                let unit = 2f64.powi(63) / (rows + new).max(1.0);
                let high = (rows * unit) as u64;
                Ground { order: load.order, low: 0, high, unit }
            }
        };
        let count = match load.order {
            Order::Random => rows.max(load.universe_bytes / row),
            Order::Ascending => 2f64.powi(64) / ground.unit,
        };
        let mut run = Run {
            scenario,
            is_coarse: table_bytes > 2 * sizes.table_bytes,
            tree: Tree::new(scenario, settings),
            keys: Keys::new(count, load.skew),
            ground,
            now: 0.0,
            age_days: 0.0,
            pace: 1.0,
            flushed: 0,
            active: Memtable::default(),
            sealed: Vec::new(),
            flush: None,
            merges: Vec::new(),
            policy: Policy::default(),
            flush_rate: 0,
            merge_rate: 0,
            verdict: Verdict::None,
            debt: 0.0,
            state: SpaceState::Free,
            waiting: 0.0,
            wrote_at: 0.0,
            late: 0.0,
            reached: VecDeque::new(),
            live: start_bytes,
            left_out: 0.0,
            totals: Totals::default(),
            sample: Sample::default(),
            sampled: Totals::default(),
            sizes,
        };
        // A part of its tables would be another tree.
        let is_whole = start_bytes >= 0.999 * scenario.start_bytes;
        match scenario.existing.as_ref().filter(|_| !run.is_coarse && is_whole) {
            Some(existing) => run.tree.adopt(existing, rows, ground.high, &run.keys),
            None => run.fill(rows, compacted),
        }
        run.active = run.new_memtable();
        run.note();
        run
    }

    fn is_full(&self) -> bool {
        self.state == SpaceState::Full
    }

    /// Brings the rows into the shape that a tree has which has long been written to, or which has
    /// just been compacted.
    fn fill(&mut self, rows: f64, compacted: bool) {
        if rows < 1.0 {
            return;
        }
        let (low, high) = (self.ground.low, self.ground.high);
        let width = share(low, high).max(1e-18);
        let load = &self.scenario.load;
        let all = Density { rows: rows / width, ..Density::default() };
        self.tree.fill(LAST, (low, high), all, &self.keys);
        let moving = load.inserts + load.deletes < 1.0 || load.order == Order::Random;
        let only_behind = load.order == Order::Ascending && load.inserts >= 1.0;
        if !moving || only_behind || compacted {
            return;
        }
        let targets = score::Targets::of(&self.tree.shape, &self.tree.settings);
        for level in targets.base..LAST {
            let entries = targets.bytes[level] as f64 / self.tree.bytes_of_rows(1.0, level);
            let updates = 1.0 - load.inserts - load.deletes;
            let draws =
                self.keys.writes_for((entries * updates / width).min(0.9 * self.keys.count()));
            let density = Density {
                draws,
                rows: entries * load.inserts / width,
                deletes: entries * load.deletes / width,
            };
            self.tree.fill(level, (low, high), density, &self.keys);
        }
    }

    fn new_memtable(&self) -> Memtable {
        Memtable { from: self.ground.high, ..Memtable::default() }
    }

    /// Bytes of all files.
    fn space(&self) -> f64 {
        let logs: f64 = self.sealed.iter().map(|memtable| memtable.user_bytes).sum();
        self.tree.bytes() + logs + self.active.user_bytes + self.in_flight().0
    }

    /// Works out how much writers are slowed, after what runs or is there has changed.
    fn note(&mut self) {
        let settings = &self.tree.settings;
        let debt = score::debt(&self.tree.shape, settings, 0);
        let (soft, hard) = score::debt_limits(&self.tree.shape, settings);
        self.debt = debt.bytes as f64;
        let sealed: f64 = self.sealed.iter().map(|memtable| memtable.bytes).sum();
        let under_way = |running: &Running| {
            let plan = &running.merge.as_ref()?.plan;
            plan.relieves_level0().then(|| UnderWay {
                tables: plan.level0_tables(),
                came: debt.level0_tables.saturating_sub(running.level0_tables),
                input_bytes: plan.input_bytes,
                nanos: ((self.now - running.began) * 1e9) as u64,
                done: 1.0 - running.left(),
            })
        };
        let level0 = Level0 {
            tables: debt.level0_tables,
            bytes: debt.level0_bytes,
            memtable_bytes: settings.memtable_bytes / 8 * 7,
            share: 1.0,
            merge: self.merges.iter().find_map(under_way),
        };
        let mut pressure = Pressure {
            memtable_bytes: (sealed + self.active.bytes) as u64,
            memtable_limit: self.sizes.memtables_bytes_max,
            sealed: self.sealed.len(),
            level0_nanos: level0.nanos_per_byte(self.merge_rate),
            debt_bytes: debt.bytes,
            debt_soft: soft,
            debt_hard: hard,
            flush_rate: self.flush_rate,
            compaction_rate: self.merge_rate / 4,
            ..Pressure::default()
        };
        if self.scenario.config.space_limit > 0 {
            let balance = self.balance();
            self.state = space::state(&balance);
            if !self.merges.is_empty() {
                (pressure.space_taken, pressure.space_hard) = space::missing(&balance);
            }
        }
        self.verdict = match throttle::delay(&pressure) {
            Verdict::Stop { .. } if self.sealed.is_empty() => Verdict::None,
            other => other,
        };
    }

    /// Goes on until `end`, in seconds; calls `each` with a sample of every `every` seconds.
    pub fn until(&mut self, end: f64, every: f64, mut each: impl FnMut(Sample)) {
        let mut next = self.now + every;
        while self.now < end - 1e-6 {
            self.step(end.min(next));
            if self.now >= next - 1e-6 {
                each(self.take_sample());
                next += every;
            }
        }
    }

    /// Goes on for so many flushes, or a year.
    pub fn flushes(&mut self, count: f64) {
        let (end, year) = (self.flushed as f64 + count, self.now + 365.0 * DAY);
        while (self.flushed as f64) < end && self.now < year {
            self.step(year);
        }
    }

    /// How many threads do background work.
    pub fn threads(&self) -> f64 {
        self.sizes.background_threads as f64
    }

    /// What the device does by now, of what it did when it was new.
    fn device_share(&self) -> f64 {
        let slower = self.scenario.machine.device.slower_each_year;
        (1.0 - slower).powf((self.age_days + self.now / DAY) / 365.0)
    }

    /// What was done until now; counting begins anew.
    pub fn take_totals(&mut self) -> Totals {
        self.sampled = Totals::default();
        std::mem::take(&mut self.totals)
    }

    fn step(&mut self, end: f64) {
        self.drop_old();
        let demand = self.scenario.demand(self.now / (DAY * self.pace));
        let at_rest = demand == 0.0 && self.waiting <= 0.0 && self.now - self.wrote_at > QUIET;
        if at_rest && self.active.bytes > 0.0 {
            self.seal();
        }
        self.start(at_rest);
        let wanted = self.wanted(demand);
        let rates = rates::share(self.scenario, &wanted);
        let seconds = self.next_event(&rates, demand).min(end - self.now).max(1e-6);
        self.pass(seconds, demand, &wanted, &rates);
        self.finish();
        let still = Still {
            cores: self.scenario.machine.cores,
            threads: self.sizes.background_threads as f64,
            dilation: rates.dilation,
            byte_nanos: self.scenario.machine.work.byte,
            user_read_nanos: 1e9 / self.scenario.machine.device.bytes_per_second,
            at_rest,
        };
        self.policy.look(&mut self.tree, self.now, &still);
        self.note();
    }

    /// What is to be done now.
    fn wanted(&self, demand: f64) -> Wanted {
        let scenario = self.scenario;
        let bytes = scenario.write_bytes();
        let writes = if self.waiting > 0.0 { f64::INFINITY } else { demand / bytes };
        let writes_max = match self.verdict {
            _ if self.state == SpaceState::Full => 0.0,
            Verdict::None => f64::INFINITY,
            Verdict::Slow { nanos_per_byte, .. } => 1e9 / (nanos_per_byte * bytes),
            Verdict::Stop { .. } => 0.0,
        };
        let threads = self.sizes.background_threads as f64;
        let merging: f64 = self.merges.iter().map(Running::threads).sum();
        // A merge runs a flush that waits, in its own thread.
        let flushing = f64::from(u8::from(self.flush.is_some()));
        let squeeze =
            if merging > 0.0 { ((threads - flushing) / merging).clamp(1e-3, 1.0) } else { 1.0 };
        let mut jobs: Vec<Job> = self.flush.iter().map(|flush| flush.running.job).collect();
        jobs.extend(self.merges.iter().map(|running| {
            let threads = running.threads() * squeeze;
            Job { threads, ..running.job }
        }));
        let choice = self.tree.choice(LAST);
        let cost = cost_of(&self.tree.costs, choice);
        let block = self.tree.block_bytes();
        let cache = self.sizes.memory_bytes as f64 / 2.0;
        let missed = 1.0 - self.keys.heat(cache / self.live.max(1.0));
        Wanted {
            writes,
            writes_max,
            reads: scenario.load.reads_per_second,
            missed,
            block_bytes: block * cost.ratio,
            read_cpu: (scenario.machine.work.get + missed * block * cost.decompress) / 1e9,
            jobs,
            device: self.device_share(),
        }
    }

    /// Seconds until something changes.
    fn next_event(&self, rates: &Rates, demand: f64) -> f64 {
        let hour = DAY / 24.0 * self.pace;
        let mut seconds = hour - (self.now + 1e-6).rem_euclid(hour) + 1e-6;
        let per_write = self.scenario.write_bytes() + NODE_BYTES;
        if rates.writes > 0.0 {
            let full = (self.full_bytes() - self.active.bytes).max(1.0);
            seconds = seconds.min(full / (rates.writes * per_write));
            if !matches!(self.verdict, Verdict::None) || !self.sealed.is_empty() {
                let some = self.sizes.memtable_bytes as f64 / 8.0;
                seconds = seconds.min(some / (rates.writes * per_write));
            }
        }
        if self.waiting > 0.0 {
            let gain = rates.writes * self.scenario.write_bytes() - demand;
            if gain > 0.0 {
                seconds = seconds.min(self.waiting / gain);
            }
        } else if demand == 0.0 && self.now <= self.wrote_at + QUIET {
            seconds = seconds.min(self.wrote_at + QUIET - self.now + 0.01);
        }
        let running = self.flush.iter().map(|flush| &flush.running).chain(&self.merges);
        for (running, speed) in running.zip(&rates.jobs) {
            seconds = seconds.min(running.seconds_to_end_of_part(*speed));
        }
        seconds
    }

    /// Lets some seconds pass in which nothing changes.
    fn pass(&mut self, seconds: f64, demand: f64, wanted: &Wanted, rates: &Rates) {
        let scenario = self.scenario;
        let load = &scenario.load;
        let writes = rates.writes * seconds;
        let bytes = writes * scenario.write_bytes();
        let (inserts, deletes) = (writes * load.inserts, writes * load.deletes);
        self.active.bytes += bytes + writes * NODE_BYTES;
        self.active.user_bytes += bytes;
        self.active.inserts += inserts;
        self.active.deletes += deletes;
        self.active.updates += writes - inserts - deletes;
        if self.ground.order == Order::Ascending {
            self.ground.high = self.ground.high.saturating_add((inserts * self.ground.unit) as u64);
        }
        self.grow(inserts - deletes, writes - inserts - deletes);
        let due = if demand.is_infinite() { bytes } else { demand * seconds };
        self.waiting = (self.waiting + due - bytes).max(0.0);
        if self.waiting > 0.5 * due {
            self.late += seconds;
        } else {
            self.late = 0.0;
        }
        if writes > 0.0 {
            self.wrote_at = self.now + seconds;
        }
        let totals = &mut self.totals;
        totals.seconds += seconds;
        totals.wanted += due;
        totals.written += bytes;
        totals.logged += rates.log * seconds;
        totals.user_cpu += rates.users * seconds;
        totals.reads_wanted += wanted.reads * seconds;
        totals.reads += rates.reads * seconds;
        totals.user_read += rates.reads * wanted.missed * wanted.block_bytes * seconds;
        totals.longest = totals.longest.max(self.late / self.pace);
        if self.state == SpaceState::Full {
            totals.refused += seconds;
        }
        match self.verdict {
            Verdict::None => {}
            _ if self.state == SpaceState::Full => {}
            // Who writes less than is let through does not wait.
            Verdict::Slow { .. } if rates.writes < ALL_OF_IT * wanted.writes_max => {}
            Verdict::Slow { cause, .. } => {
                let share = 1.0 - rates.writing;
                totals.slow(cause, share * seconds);
                self.policy.done().slowed += share * seconds;
            }
            Verdict::Stop { cause } => totals.slow(cause, seconds),
        }
        totals.device_full += if rates.device_share > 0.97 { seconds } else { 0.0 };
        totals.cores_full += if rates.cores_share > 0.97 { seconds } else { 0.0 };
        let done = self.policy.done();
        done.users_cpu += rates.users * seconds;
        done.waiting += rates.waiting * seconds;
        let running = self.flush.iter_mut().map(|flush| &mut flush.running).chain(&mut self.merges);
        for ((running, speed), job) in running.zip(&rates.jobs).zip(&wanted.jobs) {
            let part = running.advance(speed * seconds);
            let is_flush = running.merge.is_none();
            *(if is_flush { &mut totals.flush_cpu } else { &mut totals.merge_cpu }) +=
                part * running.job.cpu;
            *(if is_flush { &mut totals.flushed } else { &mut totals.compacted }) +=
                part * running.written;
            totals.levels[running.level] += part * running.written;
            totals.merge_read += part * running.read;
            totals.codec_cpu += part * running.codec;
            totals.busy += job.threads * seconds;
            done.busy += job.threads * seconds;
            done.background_cpu += part * running.job.cpu;
            done.bytes += part * running.read.max(running.written);
            done.levels[running.level].written += part * running.raw;
        }
        done.levels[LAST].read += rates.reads * wanted.missed * self.tree.block_bytes() * seconds;
        self.now += seconds;
        let space = self.space();
        self.sample.space_peak = self.sample.space_peak.max(space);
    }

    /// Rows come and go.
    fn grow(&mut self, rows: f64, updates: f64) {
        let load = &self.scenario.load;
        let row = self.scenario.row_bytes();
        self.live = (self.live + rows * row).max(0.0);
        if load.universe_bytes > 0.0 && self.ground.order == Order::Random {
            // Updates meet rows that were not there.
            let all = load.universe_bytes;
            self.live += updates * row * (1.0 - self.live / all).max(0.0);
        }
        let count = (self.live / row).max(1.0);
        let grown = count > 1.02 * self.keys.count() || count < 0.9 * self.keys.count();
        if self.ground.order == Order::Random && load.universe_bytes == 0.0 && grown {
            self.keys = Keys::new(count, load.skew);
        }
    }

    /// Has rows that are too old dropped by a range delete.
    fn drop_old(&mut self) {
        let Some(days) = self.scenario.load.retention_days else { return };
        let keep = days * DAY;
        let step = keep / DROPS;
        if self.reached.is_empty() {
            // What is there came evenly in the time before.
            let high = self.ground.high as f64;
            let ago = (0..=DROPS as u32).rev().map(|at| f64::from(at) / DROPS);
            self.reached.extend(ago.map(|ago| (-ago * keep, ((1.0 - ago) * high) as u64)));
        }
        if self.reached.back().is_none_or(|last| self.now - last.0 >= step) {
            self.reached.push_back((self.now, self.ground.high));
        }
        let mut to = None;
        while let Some(&(at, place)) = self.reached.front() {
            if at > self.now - keep {
                break;
            }
            self.reached.pop_front();
            to = Some(place);
        }
        if let Some(to) = to.filter(|to| *to > self.ground.low) {
            let gone = share(self.ground.low, to) * 2f64.powi(64) / self.ground.unit;
            self.live = (self.live - gone * self.scenario.row_bytes()).max(0.0);
            self.ground.low = to;
            self.active.dropped_to = to;
        }
    }

    fn take_sample(&mut self) -> Sample {
        let mut sample = std::mem::take(&mut self.sample);
        let mut since = self.totals.clone();
        since.add(&self.sampled, -1.0);
        self.sampled = self.totals.clone();
        let seconds = since.seconds.max(1e-9);
        sample.day = self.now / DAY;
        sample.wanted = since.wanted / seconds;
        sample.written = since.written / seconds;
        sample.waiting = self.waiting / self.pace;
        sample.space = self.space();
        sample.space_peak = sample.space_peak.max(sample.space);
        sample.live = self.live;
        let stored = score::level_bytes(&self.tree.shape);
        sample.levels = stored.map(|bytes| bytes as f64);
        sample.level0_tables = self.tree.shape.levels[0].len();
        sample.debt = self.debt;
        sample.cores = since.cores();
        sample.codec_cores = since.codec_cpu / seconds;
        let moved = since.logged + since.flushed + since.compacted;
        sample.device = (moved + since.merge_read + since.user_read) / seconds;
        let able = self.scenario.machine.device.bytes_per_second * self.device_share();
        sample.device_share = sample.device / able;
        sample.slowed = since.slowed_share();
        sample.refused = since.refused / seconds;
        sample.codec = self.tree.choice(LAST).codec.to_string();
        sample
    }
}
