//! Promises of the README that no other test breaks on purpose, and the page that names for each
//! promise the test that does (docs/promises.md).

use shaledb::fs::mem::MemFs;
use shaledb::{Background, Config, Db, Env, OpenOptions, Result, Snapshot, Tree};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated, and the most that ever was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: the system's allocator does the work, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: as of the system's.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: as of the system's.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test at a time is measured.
static MEASURED: Mutex<()> = Mutex::new(());

/// The most that was allocated on top of what there was, while `work` ran.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), result)
}

const MEMORY_BYTES: usize = 32 << 20;

fn config() -> Config {
    Config { memory_bytes: MEMORY_BYTES as u64, background_threads: 2, ..Config::default() }
}

/// Bytes that do not compress: of a seed, from a place on, so many.
struct Noise(u64, u64, u64);

impl Noise {
    fn new(seed: u64, bytes: u64) -> Noise {
        Noise(seed, 0, bytes)
    }
}

impl Read for Noise {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = into.len().min(self.2 as usize);
        let mut word = 0u64;
        for (byte, at) in into[..count].iter_mut().zip(self.1..) {
            if word == 0 || at % 8 == 0 {
                word = ((self.0 << 32) ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                word ^= word >> 29;
            }
            *byte = (word >> (at % 8 * 8)) as u8;
        }
        self.1 += count as u64;
        self.2 -= count as u64;
        Ok(count)
    }
}

/// "Large values in bounded memory."
#[test]
fn a_large_value_is_written_and_read_in_little_memory() -> Result<()> {
    const BYTES: u64 = 64 << 20;
    let _alone = MEASURED.lock().unwrap_or_else(|error| error.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), config())?;
    let tree = db.tree_or_create("t")?;
    let (peak, written) =
        peak_of(|| tree.put_reader(b"k", &mut Noise::new(1, BYTES), Default::default()));
    written?;
    assert!(peak < 8 << 20, "{peak} bytes to write {BYTES}");
    let (peak, read) = peak_of(|| -> Result<u64> {
        let mut reader = tree.get_reader(b"k")?.unwrap();
        let (mut wanted, mut all) = (Noise::new(1, BYTES), 0);
        let (mut found, mut right) = ([0; 4096], [0; 4096]);
        loop {
            let count = reader.read(&mut found).unwrap();
            if count == 0 {
                return Ok(all);
            }
            wanted.read_exact(&mut right[..count]).unwrap();
            assert!(found[..count] == right[..count], "at {all}");
            all += count as u64;
        }
    });
    assert_eq!(read?, BYTES);
    assert!(peak < 8 << 20, "{peak} bytes to read {BYTES}");
    Ok(())
}

/// "One bound on memory for cache, memtables, indexes and filters": a load of three times as much, read
/// back in two orders. What background work holds while it runs comes on top.
#[test]
fn memory_stays_near_its_bound() -> Result<()> {
    let _alone = MEASURED.lock().unwrap_or_else(|error| error.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let (peak, done) = peak_of(|| -> Result<()> {
        let db = Db::open(dir.path(), config())?;
        let tree = db.tree_or_create("t")?;
        let mut value = [0; 1000];
        Noise::new(1, 1000).read_exact(&mut value).unwrap();
        let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        for n in 0..100_000 {
            let from = (n % 900) as usize;
            value[from..from + 100].rotate_left(1 + from % 90);
            value[..8].copy_from_slice(&key(n));
            tree.put(&key(n), &value)?;
        }
        for n in (0..100_000).rev().step_by(3) {
            assert_eq!(tree.get(&key(n))?.unwrap().len(), 1000);
        }
        assert_eq!(tree.scan::<&[u8]>(..)?.filter(|row| row.is_ok()).count(), 100_000);
        db.close()
    });
    done?;
    println!("{peak} bytes at most, of {MEMORY_BYTES}");
    assert!(peak < 2 * MEMORY_BYTES, "{peak} of {MEMORY_BYTES}");
    Ok(())
}

/// "Bulk load that writes each byte once."
#[test]
fn a_bulk_load_writes_each_byte_once() -> Result<()> {
    let _alone = MEASURED.lock().unwrap_or_else(|error| error.into_inner());
    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", config(), options)?;
    let tree = db.tree_or_create("t")?;
    fs.keep_trace();
    let mut load = tree.ingest()?;
    let mut value = [0; 100];
    for n in 0..200_000u64 {
        Noise::new(n, 100).read_exact(&mut value).unwrap();
        load.add(&n.to_be_bytes(), &value)?;
    }
    load.finish()?;
    db.wait_idle()?;
    let appended: u64 = fs
        .trace()
        .iter()
        .filter(|line| line.contains(" append "))
        .filter_map(|line| line.strip_suffix(" bytes")?.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    let is_table = |path: &Path| path.extension().is_some_and(|extension| extension == "table");
    let tables: u64 =
        fs.files().iter().filter(|(path, _)| is_table(path)).map(|(_, bytes)| bytes).sum();
    assert!(tables > 15 << 20, "{tables} bytes of tables");
    // The manifest and a record of the log come on top.
    assert!(appended < tables + (64 << 10), "{appended} bytes written for {tables}");
    Ok(())
}

/// "Handles are `Send + Sync + Clone`."
#[test]
fn handles_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Db>();
    shared::<Tree>();
    shared::<Snapshot>();
    shared::<shaledb::Prepared>();
}

/// The page names tests that there are.
#[test]
fn each_promise_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/promises.md")).unwrap();
    let mut named = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let tests = line.rsplit('|').nth(1).unwrap();
        let mut found = 0;
        for test in tests.split('`').skip(1).step_by(2) {
            let (file, name) = test.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let text = std::fs::read_to_string(root.join(file))
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            let there = [format!("fn {name}("), format!("def {name}("), format!("void {name}(")];
            assert!(there.iter().any(|there| text.contains(there)), "{file} has no {name}");
            found += 1;
        }
        assert!(found > 0, "no test is named: {line}");
        named += found;
    }
    assert!(named > 40, "{named} tests are named");
}
