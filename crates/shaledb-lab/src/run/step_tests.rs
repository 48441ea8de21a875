use super::*;
use crate::measure::{Usage, thread_cpu_seconds};
use crate::run::row::Opened;
use crate::run::work::client_cost;
use crate::stores::engine::{Engine, Handle, Level, Metrics};
use crate::stores::null::Null;
use crate::stores::store::Host;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

/// A store of which the test says what it counts.
struct Fake {
    folder: Option<PathBuf>,
    metrics: Mutex<Metrics>,
    host: Host,
}

impl Default for Fake {
    fn default() -> Fake {
        Fake { folder: None, metrics: Mutex::default(), host: Host::Here }
    }
}

impl Store for Fake {
    fn name(&self) -> String {
        "fake".to_owned()
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn configuration(&self) -> Vec<(String, String)> {
        vec![("depth".to_owned(), "3".to_owned())]
    }

    fn folder(&self) -> Option<PathBuf> {
        self.folder.clone()
    }

    fn host(&self) -> Host {
        self.host.clone()
    }

    fn wait_idle(&self) -> Result<()> {
        *self.metrics.lock().unwrap().compaction_bytes.get_or_insert(0) += 500;
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(self.metrics.lock().unwrap().clone())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A client that does one thing over and over.
struct Each<F>(F);

impl<F: FnMut(&mut Pace<'_>) -> Result<Did> + Send> Client for Each<F> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let did = (self.0)(pace)?;
            pace.end(0, did);
        }
        Ok(())
    }
}

fn each<'a>(op: impl FnMut(&mut Pace<'_>) -> Result<Did> + Send + 'a) -> Box<dyn Client + 'a> {
    Box::new(Each(op))
}

const NAMED: Named<'static> = Named { workload: "", step: "s", opened: None };

fn work<'a>(ops: u64, clients: Vec<Box<dyn Client + 'a>>) -> Work<'a> {
    Work { ops: Some(ops), ..Work::new("write", &["put"], clients) }
}

/// Clients that stop by themselves.
fn endless<'a>(clients: Vec<Box<dyn Client + 'a>>) -> Work<'a> {
    Work { ops: None, ..work(0, clients) }
}

fn run(store: &Fake, work: Work<'_>) -> Result<Row> {
    run_step(store, &NAMED, work, (0.0, 0.0), &mut silent)
}

fn silent(_: &Progress) {}

fn burn(seconds: f64) {
    let before = thread_cpu_seconds();
    while thread_cpu_seconds() - before < seconds {
        std::hint::black_box((0..1000u64).fold(0, |a, b| a ^ b));
    }
}

#[test]
fn operations_are_shared_and_summed_up() {
    let store = Fake::default();
    let did = || Did { written: 10, read: 4, found: true, grown: 7 };
    let clients = (0..3).map(|_| each(move |_| Ok(did()))).collect();
    let row = run(&store, work(10, clients)).unwrap();
    assert_eq!((row.ops, row.found, row.clients), (10, 10, 3));
    assert_eq!((row.counted.user_bytes, row.counted.read_bytes), (100, 40));
    assert_eq!(row.latency_us["put"].count, 10);
    assert_eq!((row.engine.as_str(), row.configuration.len()), ("fake", 1));
    assert_eq!((share(10, 3, 0), share(10, 3, 2), share(2, 3, 2)), (4, 3, 0));
}

#[test]
fn cpu_and_bytes_per_operation_are_those_that_were_used() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let store = Fake { folder: Some(dir.path().to_owned()), ..Fake::default() };
    let path = dir.path().join("a");
    let client = each(move |_| {
        burn(0.02);
        std::fs::write(&path, vec![1u8; 1_000_000])?;
        std::fs::File::open(&path)?.sync_all()?;
        Ok(Did { written: 1_000_000, ..Did::default() })
    });
    let row = run(&store, work(5, vec![client])).unwrap();
    // Other tests run beside this one in the same process, so that only the lower bounds are sure.
    assert!(row.cpu.us_per_op >= 20_000.0, "{:?}", row.cpu);
    assert!(row.io.written_kb_per_op >= 1000.0, "{:?}", row.io);
    assert!(row.size_bytes >= 1_000_000 && row.rss_bytes > 0);
    if let Some(device) = &row.io.device {
        assert!(device.written_bytes >= 5_000_000, "{device:?}");
    }
}

#[test]
fn the_clients_share_is_taken_off() {
    let store = Fake::default();
    let client = each(|_| {
        burn(0.01);
        Ok(Did::default())
    });
    let costs = (5_000.0, 0.0);
    let row = run_step(&store, &NAMED, work(10, vec![client]), costs, &mut silent).unwrap();
    let whole = row.cpu.seconds * 1e6 / 10.0;
    assert!((row.cpu.us_per_op + 5_000.0 - whole).abs() < 1e-3, "{:?}", row.cpu);
    assert_eq!(row.cpu.client_us_per_op, 5_000.0);
}

#[test]
fn of_a_server_only_its_own_processes_count() {
    let mut server = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let store = Fake { host: Host::Processes(vec![server.id()]), ..Fake::default() };
    let client = each(|_| {
        burn(0.05);
        Ok(Did::default())
    });
    let row = run(&store, work(5, vec![client])).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    // Of a quarter of a second that the client burns: the server may still be starting.
    assert!(row.cpu.seconds < 0.1, "{:?}", row.cpu);
    assert!(row.cpu.client_us_per_op >= 50_000.0, "{:?}", row.cpu);
}

#[test]
fn of_a_server_elsewhere_nothing_is_measured_and_a_note_says_so() {
    let store = Fake { host: Host::Elsewhere, ..Fake::default() };
    let client = each(|_| {
        burn(0.01);
        Ok(Did::default())
    });
    let row = run(&store, work(5, vec![client])).unwrap();
    assert_eq!((row.cpu.seconds, row.rss_bytes, row.ops), (0.0, 0, 5));
    assert!(row.cpu.client_us_per_op >= 10_000.0, "{:?}", row.cpu);
    assert!(row.notes.iter().any(|note| note.contains("not ours")), "{:?}", row.notes);
}

#[test]
fn what_the_engine_counts_is_that_of_the_step() {
    let store = Fake::default();
    let levels = vec![Level { level: 1, files: 2, ..Level::default() }];
    let before = Metrics { user_bytes: 70, flush_bytes: Some(1000), levels, ..Metrics::default() };
    *store.metrics.lock().unwrap() = before;
    let client = each(|_| {
        let mut metrics = store.metrics.lock().unwrap();
        *metrics.flush_bytes.get_or_insert(0) += 30;
        metrics.stall_seconds += 0.5;
        Ok(Did { written: 10, ..Did::default() })
    });
    let row = run(&store, work(4, vec![client])).unwrap();
    assert_eq!((row.counted.flush_bytes, row.counted.write_amp), (Some(120), Some(3.0)));
    assert_eq!(row.counted.levels[0].files, 2);
    let stalled = row.counted.stall_percent * row.seconds / 100.0;
    assert!((stalled - 2.0).abs() < 1e-6, "{stalled}");

    // What an engine does while it opens is not the step's.
    let named = Named { opened: Some(Opened::default()), ..NAMED };
    let wait_idle: Box<dyn Client> = Box::new(WaitIdle(&store));
    let work = work(1, vec![wait_idle]);
    let row = run_step(&store, &named, work, (0.0, 0.0), &mut silent).unwrap();
    assert_eq!((row.counted.flush_bytes, row.counted.compaction_bytes), (Some(0), Some(500)));
    assert_eq!((row.ops, row.counted.write_amp), (1, None));

    // But not what came in the time to warm up.
    let warm_up = Duration::from_millis(50);
    let idle = each(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Ok(Did::default())
    });
    let duration = Some(Duration::from_millis(20));
    let work = Work { warm_up, duration, ..Work::new("s", &["get"], vec![idle]) };
    let row = run_step(&store, &named, work, (0.0, 0.0), &mut silent).unwrap();
    assert_eq!((row.counted.flush_bytes, row.counted.compaction_bytes), (Some(0), Some(0)));
    assert_eq!(row.counted.stall_percent, 0.0);
}

#[test]
fn a_writer_beside_says_whether_it_held_its_rate() {
    let store = Fake::default();
    let reader = || {
        each(|_| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(Did::default())
        })
    };
    let beside_writer = |writer_rate, nap: u64| {
        let writer = each(move |_| {
            std::thread::sleep(Duration::from_millis(nap));
            Ok(Did { written: 3, ..Did::default() })
        });
        Work {
            duration: Some(Duration::from_millis(300)),
            writers: vec![writer],
            writer_rate,
            ..Work::new("read", &["get"], vec![reader()])
        }
    };
    let row = run(&store, beside_writer(20.0, 0)).unwrap();
    let writer = row.writer.unwrap();
    // One operation is due at once, then one each 50 ms.
    let due = 1.0 + 20.0 * row.seconds;
    assert!(writer.ops >= 1 && writer.ops as f64 <= due, "{writer:?}");
    assert_eq!(writer.written_bytes, 3 * writer.ops);
    assert_eq!(row.counted.user_bytes, writer.written_bytes);
    assert_eq!(writer.wanted, 20.0);

    let row = run(&store, beside_writer(100_000.0, 10)).unwrap();
    let writer = row.writer.unwrap();
    assert!(!writer.held && writer.latency.us.p50 > 50_000.0, "{writer:?}");
    assert!(row.notes.iter().any(|note| note.contains("did not hold")), "{:?}", row.notes);
}

#[test]
fn a_step_of_which_nothing_is_counted_fails() {
    let store = Fake::default();
    let early = || each(|_| Ok(Did::default()));
    let why = |work| run(&store, work).unwrap_err().to_string();
    let warm_up = Duration::from_millis(30);
    let ended: Box<dyn Client> = Box::new(Ended);
    let text = why(Work { warm_up, ..Work::new("read", &["get"], vec![ended]) });
    assert!(text.contains("0.03 s of --warm-up"), "{text}");
    let none = Work { ops: Some(0), ..Work::new("read", &["get"], vec![early()]) };
    assert!(why(none).contains("no read was done"));
}

/// A client that does one operation and has nothing left to do.
struct Ended;

impl Client for Ended {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        pace.begin();
        pace.end(0, Did::default());
        Ok(())
    }
}

#[test]
fn a_late_look_is_not_made_up_for() {
    let due = Instant::now();
    let millis = |late| (after(due, due + Duration::from_millis(late)) - due).as_millis();
    assert_eq!([millis(0), millis(400)], [1000, 1000]);
    assert_eq!([millis(900), millis(5300)], [1400, 5800]);
}

#[test]
fn intervals_are_seconds() {
    let store = Fake::default();
    let ticks = AtomicUsize::new(0);
    let client = Box::new(Until(&ticks, 2));
    let mut reported = Vec::new();
    let mut tell = |progress: &Progress| {
        reported.push(progress.clone());
        ticks.store(reported.len(), Ordering::Relaxed);
    };
    let work = Work { expected_ops: Some(1 << 40), ..endless(vec![client]) };
    let row = run_step(&store, &NAMED, work, (0.0, 0.0), &mut tell).unwrap();
    assert_eq!((row.intervals.len(), row.rates.intervals), (reported.len(), reported.len()));
    assert!(row.intervals.iter().all(|interval| interval.writer_rate == 0.0));
    assert!(row.intervals[0].max_us >= 30_000.0 && row.intervals[0].rate > 0.0);
    assert!(reported[0].share.unwrap() < 0.1 && reported[1].ops > reported[0].ops, "{reported:?}");
}

#[test]
fn a_writer_beside_has_rates_of_its_own() {
    let store = Fake::default();
    let ticks = AtomicUsize::new(0);
    let writer = each(|_| Ok(Did { grown: 2, ..Did::default() }));
    let mut tell = |_: &Progress| {
        ticks.fetch_add(1, Ordering::Relaxed);
    };
    let client = Box::new(Until(&ticks, 3));
    let work = Work { writers: vec![writer], writer_rate: 400.0, ..endless(vec![client]) };
    let row = run_step(&store, &NAMED, work, (0.0, 0.0), &mut tell).unwrap();
    let writer = row.writer.unwrap();
    assert_eq!((writer.rates.intervals, row.live_grown_bytes), (3, 2 * writer.ops as i64));
    let rates: Vec<f64> = row.intervals.iter().map(|interval| interval.writer_rate).collect();
    // However a second is cut: no more than was due is done.
    assert!(rates.iter().sum::<f64>() > 0.0 && writer.rates.p50 >= writer.rates.p99, "{rates:?}");
    assert!(writer.rates.worst == rates.iter().copied().fold(f64::MAX, f64::min), "{rates:?}");
    assert!(row.rates.p50 != writer.rates.p50, "the readers' rate is not the writer's");
}

/// A client that works until so many seconds were looked at; its first operation takes long.
struct Until<'a>(&'a AtomicUsize, usize);

impl Client for Until<'_> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while self.0.load(Ordering::Relaxed) < self.1 && pace.begin() {
            let first = pace.done() == 0;
            std::thread::sleep(Duration::from_millis(if first { 30 } else { 1 }));
            pace.end(0, Did::default());
        }
        Ok(())
    }
}

#[test]
fn a_failing_client_ends_the_step() {
    let store = Fake::default();
    let idle = || {
        each(|_| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(Did::default())
        })
    };
    let fails = each(|pace| if pace.done() < 3 { Ok(Did::default()) } else { Err("full".into()) });
    let error = run(&store, endless(vec![idle(), fails])).unwrap_err();
    assert_eq!(error.to_string(), "full");

    let panics = each(|_| panic!("a test of panics"));
    let error = run(&store, endless(vec![idle(), panics])).unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");

    let writers = vec![each(|_| Err("read-only".into()))];
    let work = Work { writers, writer_rate: 10.0, ..endless(vec![idle()]) };
    let error = run(&store, work).unwrap_err();
    assert_eq!(error.to_string(), "read-only");
}

#[test]
fn a_client_costs_what_its_loop_costs() {
    let mut handle = Null.handle().unwrap();
    let mut cheap = Each(|_: &mut Pace<'_>| {
        handle.put(0, b"k", b"v")?;
        Ok(Did::default())
    });
    let cheap = client_cost(&mut cheap, None).unwrap();
    let mut costly = Each(|_: &mut Pace<'_>| {
        burn(0.0001);
        Ok(Did::default())
    });
    let costly = client_cost(&mut costly, None).unwrap();
    assert!(cheap > 0.0 && cheap < costly && costly >= 100.0, "{cheap} {costly}");
}

/// Runs in a process of its own: what other tests hold at the same time would count as the step's.
#[test]
fn the_peak_of_memory_is_that_of_the_step() {
    const ALONE: &str = "SHALE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "run::step::tests::the_peak_of_memory_is_that_of_the_step";
        let test = std::env::current_exe().unwrap();
        let out = std::process::Command::new(test).args(["--exact", name]).env(ALONE, "1").output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    drop(std::hint::black_box(vec![1u8; 300 << 20]));
    let row = run(&Fake::default(), work(1, vec![each(|_| Ok(Did::default()))]));
    let row = row.unwrap();
    let could_reset = row.notes.is_empty();
    assert!(
        !could_reset || row.rss_peak_bytes < 300 << 20,
        "{} {:?}",
        row.rss_peak_bytes,
        row.notes
    );
    assert!(Usage::now().cpu_seconds() > 0.0);
}
