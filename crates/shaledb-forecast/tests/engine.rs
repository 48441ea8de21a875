//! The model beside the engine: the same load on both, write amplification and sizes compared. The
//! engine does background work as soon as there is any, and the model's machine is as fast.

use shaledb::{Background, Batch, Codec, Codecs, Config, Db, Env, OpenOptions, WriteOptions};
use shaledb_forecast::run::Run;
use shaledb_forecast::{Device, Load, Machine, Order, Scenario, Skew, Work, costs_of_ratio};

const KEY: usize = 16;
const VALUE: usize = 100;
/// So few that a memtable is sealed where it is full: it has about 350 rows.
const BATCH: usize = 10;
const ROW: f64 = (KEY + VALUE) as f64;

/// Draws as the load does.
struct Draw {
    state: u64,
    /// For a skewed load: the sums of the weights of the ranks.
    sums: Vec<f64>,
}

impl Draw {
    fn new(keys: usize, skew: Skew) -> Draw {
        let mut sum = 0.0;
        let weigh = |rank: usize| {
            if let Skew::Zipf(exponent) = skew {
                sum += (rank as f64).powf(-exponent);
            }
            sum
        };
        let sums = if skew == Skew::Uniform { Vec::new() } else { (1..=keys).map(weigh).collect() };
        Draw { state: 0x9e37_79b9_7f4a_7c15, sums }
    }

    fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn share(&mut self) -> f64 {
        self.number() as f64 / u64::MAX as f64
    }

    fn key(&mut self, keys: usize) -> usize {
        let share = self.share();
        match self.sums.last() {
            Some(all) => {
                let drawn = share * all;
                self.sums.partition_point(|&to| to < drawn).min(keys - 1)
            }
            None => ((share * keys as f64) as usize).min(keys - 1),
        }
    }
}

/// The place of a row: anywhere, so that hot ones are not neighbours.
fn scattered(row: usize) -> Vec<u8> {
    let mixed = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut key = mixed.to_vec();
    key.extend_from_slice(&(row as u64).to_be_bytes());
    key
}

fn value(draw: &mut Draw) -> Vec<u8> {
    let mut value = Vec::with_capacity(VALUE + 8);
    while value.len() < VALUE {
        value.extend_from_slice(&draw.number().to_le_bytes());
    }
    value.truncate(VALUE);
    value
}

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    rows: usize,
    writes: usize,
    inserts: f64,
    deletes: f64,
    order: Order,
    skew: Skew,
}

#[derive(Debug)]
struct Figures {
    flushed: f64,
    write_amp: f64,
    /// Bytes of the tables below level 0, of which there may be much or little at the end.
    stored: f64,
}

fn config() -> Config {
    let mut config = Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        ..Config::default()
    };
    config.tree.codecs = Codecs::all(Codec::None);
    config.tree.dictionary = false;
    config
}

fn measure(case: &Case) -> Figures {
    let options =
        OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", config(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let mut draw = Draw::new(case.rows.max(1), case.skew);
    let place = |row: usize| match case.order {
        Order::Random => scattered(row),
        Order::Ascending => {
            let mut key = (row as u64).to_be_bytes().to_vec();
            key.resize(KEY, 0);
            key
        }
    };
    let work = || while db.step().unwrap() {};
    let mut there: Vec<usize> = (0..case.rows).collect();
    for rows in there.chunks(500) {
        let mut batch = Batch::new();
        for row in rows {
            batch.put(&tree, &place(*row), &value(&mut draw));
        }
        db.write(&batch, WriteOptions::default()).unwrap();
        work();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    let before = db.stats();
    let mut next = case.rows;
    for _ in 0..case.writes / BATCH {
        let mut batch = Batch::new();
        for _ in 0..BATCH {
            let kind = draw.share();
            if kind < case.inserts {
                batch.put(&tree, &place(next), &value(&mut draw));
                there.push(next);
                next += 1;
            } else if kind < case.inserts + case.deletes {
                let at = (draw.share() * there.len() as f64) as usize;
                let row = there.swap_remove(at.min(there.len() - 1));
                batch.delete(&tree, &place(row));
            } else {
                let row = draw.key(there.len().min(case.rows));
                batch.put(&tree, &place(there[row]), &value(&mut draw));
            }
        }
        db.write(&batch, WriteOptions::default()).unwrap();
        work();
    }
    let after = db.stats();
    let user = (after.user_bytes - before.user_bytes) as f64;
    let flushed = (after.flush_bytes - before.flush_bytes) as f64;
    let compacted = (after.compact_bytes - before.compact_bytes) as f64;
    let below = after.trees[0].levels.iter().filter(|level| level.level > 0);
    Figures {
        flushed: flushed / user,
        write_amp: (flushed + compacted) / user,
        stored: below.map(|level| level.bytes).sum::<u64>() as f64,
    }
}

fn foresee(case: &Case) -> Figures {
    let fast = Work { put: 100.0, flush_row: 1.0, merge_row: 1.0, byte: 0.001, get: 1.0 };
    let device = Device {
        bytes_per_second: 1e12,
        reads_per_second: 1e9,
        life_bytes: f64::INFINITY,
        slower_each_year: 0.0,
    };
    let scenario = Scenario {
        key_bytes: KEY as f64,
        value_bytes: VALUE as f64,
        start_bytes: case.rows as f64 * ROW,
        compacted: true,
        existing: None,
        load: Load {
            inserts: case.inserts,
            deletes: case.deletes,
            order: case.order,
            skew: case.skew,
            ..Load::updates(1e6)
        },
        days: 1.0,
        machine: Machine { cores: 1.0, memory_bytes: 1 << 30, device, work: fast },
        config: config(),
        costs: costs_of_ratio(1.0),
    };
    let mut run = Run::new(&scenario, scenario.start_bytes, 0);
    let seconds = case.writes as f64 * scenario.write_bytes() / 1e6;
    run.until(seconds, f64::INFINITY, |_| {});
    let totals = run.take_totals();
    let below = run.tree.shape.levels[1..].iter().flatten();
    Figures {
        flushed: totals.flushed / totals.written,
        write_amp: totals.write_amp(),
        stored: below.map(|table| table.file_bytes).sum::<u64>() as f64,
    }
}

#[test]
fn the_model_writes_and_stores_what_the_engine_does() {
    let (uniform, random, ascending) = (Skew::Uniform, Order::Random, Order::Ascending);
    let case = |name, rows, writes, inserts, deletes, order, skew| Case {
        name,
        rows,
        writes,
        inserts,
        deletes,
        order,
        skew,
    };
    let cases = [
        case("updates", 100_000, 160_000, 0.0, 0.0, random, uniform),
        case("updates of a small tree", 15_000, 100_000, 0.0, 0.0, random, uniform),
        case("skewed updates", 100_000, 160_000, 0.0, 0.0, random, Skew::Zipf(0.9)),
        case("very skewed updates", 100_000, 160_000, 0.0, 0.0, random, Skew::Zipf(1.2)),
        case("new rows anywhere", 40_000, 100_000, 1.0, 0.0, random, uniform),
        case("new rows behind", 40_000, 80_000, 1.0, 0.0, ascending, uniform),
        case("new rows and updates", 70_000, 100_000, 0.3, 0.0, random, uniform),
        case("new rows and deletes", 70_000, 120_000, 0.5, 0.3, random, uniform),
    ];
    let mut wrong = Vec::new();
    for case in &cases {
        let (measured, foreseen) = (measure(case), foresee(case));
        let off = |foreseen: f64, measured: f64| foreseen / measured - 1.0;
        let text = format!(
            "{}: write amplification {:.2}, foreseen {:.2} ({:+.0} %); of flushes {:.2}, {:.2}; stored \
             {:.1} MB, {:.1} ({:+.0} %)",
            case.name,
            measured.write_amp,
            foreseen.write_amp,
            100.0 * off(foreseen.write_amp, measured.write_amp),
            measured.flushed,
            foreseen.flushed,
            measured.stored / 1e6,
            foreseen.stored / 1e6,
            100.0 * off(foreseen.stored, measured.stored),
        );
        println!("{text}");
        if off(foreseen.write_amp, measured.write_amp).abs() > 0.1
            || off(foreseen.stored, measured.stored).abs() > 0.1
        {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
