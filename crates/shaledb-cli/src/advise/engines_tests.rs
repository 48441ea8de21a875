//! Engines that are not there are named, and what samples took is carried on to the whole.

use super::super::sample::Stretch;
use super::*;
use shaledb_lab::run::row::{Cpu, Io, Opened};

fn sample(stretches: usize, total_units: u64) -> Sample {
    let row = |number: usize| (format!("{number:06}").into_bytes(), vec![b'v'; 94]);
    let stretch = |at: usize| Stretch {
        at: at as f64,
        units: 1000,
        rows: (0..10).map(|number| row(at * 10 + number)).collect(),
        file: 0,
    };
    Sample::new((0..stretches).map(stretch).collect(), Some(total_units), Seen::Spread, Vec::new())
}

fn result(engine: &str, setting: &str, step: &str, ops: u64) -> Result {
    Result {
        engine: engine.to_owned(),
        version: "1.2".to_owned(),
        setting: setting.to_owned(),
        step: step.to_owned(),
        ops,
        cpu: Cpu { us_per_op: 3.0, ..Cpu::default() },
        io: Io { written_bytes: 200 * ops, ..Io::default() },
        close: Some(Opened { cpu_seconds: 0.5, written_bytes: 7, ..Opened::default() }),
        size_bytes: 5,
        ..Result::default()
    }
}

/// Three steps whose size is 1000 bytes and 50 for each row.
fn steps(engine: &str, setting: &str, rows: u64) -> Vec<Result> {
    let mut idle = result(engine, setting, "wait_idle", 1);
    idle.extra.insert("closed_size_bytes".to_owned(), 1000.0 + 50.0 * rows as f64);
    vec![result(engine, setting, "load", rows), idle, result(engine, setting, "get", 500)]
}

#[test]
fn names_are_known_and_shale_stands_first() {
    let asked =
        |names: &[&str]| named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(asked(&["rocksdb", "shale", "rocksdb"]).unwrap(), ["shale", "rocksdb"]);
    for wrong in ["null", "oracle", ""] {
        let error = format!("{:?}", asked(&[wrong]).unwrap_err());
        assert!(error.contains(&format!("no engine `{wrong}`")), "{error}");
    }
}

#[test]
fn parts_are_spread_over_the_sample() {
    let sample = sample(16, 100_000);
    for (of, count) in [(4, 40), (2, 80), (1, 160)] {
        let rows: Vec<&Row> = part(&sample, of).collect();
        assert_eq!(rows.len(), count);
        assert!(rows[count - 1].0.as_slice() >= b"000120".as_slice(), "to its end");
    }
    // Of few stretches the first rows.
    let few = super::tests::sample(2, 100_000);
    assert_eq!(part(&few, 4).count(), 5);
}

#[test]
fn all_that_an_engine_took_counts() {
    let rows = steps("rocksdb", "4", 1000);
    let took = took(&rows, "rocksdb", "4").unwrap();
    assert_eq!((took.rows, took.size_bytes, took.get_us), (1000.0, 51_000.0, 3.0));
    // Load, wait_idle, and both closes.
    assert!((took.load_cpu_seconds - 1.003_003).abs() < 1e-9, "{}", took.load_cpu_seconds);
    assert_eq!(took.written_bytes, 200.0 * 1001.0 + 14.0);
    assert!(super::took(&rows, "rocksdb", "2").is_none());
    assert!(super::took(&rows[..2], "rocksdb", "4").is_none(), "a step is missing");
}

#[test]
fn figures_are_carried_on_and_checked() {
    let sample = sample(16, 160_000);
    let predicted = Predicted {
        rows: 1600.0,
        distinct_rows: 1600.0,
        bytes: 160_000.0,
        order: Order::Ascending,
        direct: true,
        is_density_measured: false,
        halves: None,
        is_about_one_flush: false,
        memory_bytes: 1 << 30,
        choices: Vec::new(),
    };
    let mut rows = Vec::new();
    for (setting, count) in [("4", 40), ("2", 80), ("1", 160), ("all", 1600)] {
        rows.extend(steps("innodb", setting, count));
    }
    let points = ["4", "2", "1"].iter().map(|one| took(&rows, "innodb", one).unwrap()).collect();
    let all = took(&rows, "innodb", "all");
    let one = of_engine("innodb", "1".to_owned(), points, all, &sample, &predicted);
    assert!((one.size.value - 81_000.0).abs() < 1.0 && one.size.bound < 1e-6, "{:?}", one.size);
    assert!((one.load_cpu.bound - CPU_BOUND).abs() < 1e-6);
    assert!(one.checked.unwrap().size.error.abs() < 1e-6 && outside(&one).is_empty());

    let mut wrong = one.clone();
    wrong.checked.as_mut().unwrap().size = Compared::new(81_000.0, 90_000.0);
    let missing = Missing { engine: "postgres".to_owned(), why: "not installed: x".to_owned() };
    let engines = Engines {
        engines: vec![OfEngine { engine: "shale".to_owned(), ..one }, wrong],
        missing: vec![missing],
        sample_rows: 160,
        sample_bytes: 16_000,
        is_to_scale: true,
        cache: Cache::of(1 << 30, 0.1),
    };
    let words = super::words(&engines).join("\n");
    for part in [
        "innodb would take 1.00 times Shale's space",
        "postgres: not installed: x.",
        "Outside of the bound: size of innodb was measured +11.1 % beside what was predicted",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert!(words.contains("CPU for a look-up") && !words.contains("left out"), "{words}");

    // A thousandth of a GiB is less than engines are given.
    let mut engines = Engines { cache: Cache::of(1 << 30, 0.001), ..engines };
    engines.engines.iter_mut().for_each(OfEngine::leave_out_gets);
    assert_eq!(engines.engines[1].get_us, Some(3.0), "of all rows, with the whole cache");
    engines.engines[1].checked = None;
    engines.engines[1].leave_out_gets();
    let words = super::words(&engines).join("\n");
    for part in ["would have 1.07 MB, and engines are given 33.6 MB at least", "are left out"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(
        words.contains("and 1.00 times its bytes written.") && !words.contains("for a look-up")
    );
    let table = super::super::engines_table::text(&engines, 160_000.0);
    assert!(table.lines().any(|line| line.ends_with(" -")), "{table}");
}

#[test]
fn a_cache_is_to_scale_if_engines_can_be_given_one_so_small() {
    let of = |memory: u64, share: f64| Cache::of(memory, share).is_to_scale;
    assert!(of(8 << 30, 0.01) && !of(8 << 30, 0.001) && of(16 << 20, 1.0));
}
