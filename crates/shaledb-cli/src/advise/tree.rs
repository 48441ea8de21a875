//! A sample of a tree: stretches of keys that are evenly spread over its stored bytes.

use super::sample::{Row, Sample, Seen, Stretch};
use crate::exit::{Exit, Failure, Outcome};
use shaledb::{Db, ScanOptions, Tree};

const STRETCHES: u64 = 64;

/// A stretch has at most so many times its part of the sample's bytes.
const STRETCH_TIMES_MAX: u64 = 8;

/// Bytes of a key that are changed by one step towards a place.
const STEP_BYTES: usize = 7;
const STEPS_MAX: usize = 600;

/// Reads some `sample_bytes` of keys and values.
pub(super) fn sample(db: &Db, tree: &Tree, sample_bytes: u64) -> Outcome<Sample> {
    let empty = || {
        let what = format!("the tree {} is empty: there is nothing to advise on", tree.name());
        Failure::new(Exit::BadInput, format!("{}: {what}", db.path().display()))
    };
    // Up to the last key: to the end, filters and indexes would count too, which ranges have not.
    let last = last_key(tree)?.ok_or_else(empty)?;
    let total = tree.approximate_bytes(b"", Some(&last))?;
    let (from_start, is_whole) = rows(tree, b"", sample_bytes)?;
    if from_start.is_empty() {
        return Err(empty());
    }
    if is_whole || total == 0 {
        let units = from_start.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        let stretch = Stretch { at: 0.0, units, rows: from_start };
        let seen = if is_whole { Seen::All } else { Seen::Head };
        return Ok(Sample::new(vec![stretch], is_whole.then_some(units), seen, Vec::new()));
    }
    let first = from_start[0].0.clone();
    drop(from_start);
    let raw = raw_bytes(db, tree).max(total);
    let stretch_bytes = sample_bytes / STRETCHES;
    let part = (total as f64 * sample_bytes as f64 / raw as f64 / STRETCHES as f64) as u64;
    let mut stretches: Vec<Stretch> = Vec::new();
    for number in 0..STRETCHES {
        let place = (total * (2 * number + 1) / (2 * STRETCHES)).saturating_sub(part / 2);
        let from = key_at(tree, place, &first, &last)?;
        // No row comes twice.
        let newest = stretches.last().and_then(|stretch| stretch.rows.last());
        if newest.is_some_and(|(key, _)| *key >= from) {
            continue;
        }
        let rows = rows_of(tree, &from, part.max(1), stretch_bytes * STRETCH_TIMES_MAX)?;
        let Some((rows, units)) = rows else { continue };
        stretches.push(Stretch { at: place as f64 / total as f64, units, rows });
    }
    let mut notes = Vec::new();
    if db.stats().trees.iter().any(|other| {
        other.name == tree.name() && (other.memtable_bytes > 0 || other.blob_files > 0)
    }) {
        notes.push(
            "What is in memtables or in blob files does not count in the size that stretches are \
             scaled by."
                .to_owned(),
        );
    }
    Ok(Sample::new(stretches, Some(total), Seen::Spread, notes))
}

fn options(lower: &[u8]) -> ScanOptions<'static> {
    ScanOptions { lower: Some(lower.to_vec()), fill_cache: false, ..ScanOptions::default() }
}

/// Rows from a key on, and whether these are all.
fn rows(tree: &Tree, lower: &[u8], most: u64) -> Outcome<(Vec<Row>, bool)> {
    let mut scan = tree.scan_with(options(lower))?;
    scan.seek_first()?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while scan.valid() && bytes < most {
        rows.push((scan.key().to_vec(), scan.value()?.to_vec()));
        bytes += rows.last().map_or(0, |(key, value)| (key.len() + value.len()) as u64);
        scan.next()?;
    }
    Ok((rows, !scan.valid()))
}

/// Rows from about a key on that take `stored` bytes in tables, or have `most` bytes; and what they
/// take. Tables tell that by whole blocks, so the rows begin and end where it steps.
fn rows_of(tree: &Tree, from: &[u8], stored: u64, most: u64) -> Outcome<Option<(Vec<Row>, u64)>> {
    let mut scan = tree.scan_with(options(from))?;
    scan.seek_first()?;
    let up_to = |key: &[u8]| tree.approximate_bytes(b"", Some(key));
    let first = up_to(from)?;
    let (mut passed, mut before) = (0, first);
    while scan.valid() && before == first && passed < most {
        passed += (scan.key().len() + scan.value()?.len()) as u64;
        scan.next()?;
        if scan.valid() {
            before = up_to(scan.key())?;
        }
    }
    // What comes after the last step, and how many bytes that step was at.
    let (mut rows, mut bytes, mut whole) = (Vec::new(), 0, 0);
    let mut units = 0;
    while scan.valid() {
        let now = up_to(scan.key())?.saturating_sub(before);
        if now > units {
            (units, whole) = (now, rows.len());
            if units >= stored {
                break;
            }
        }
        if bytes >= most {
            break;
        }
        let row = (scan.key().to_vec(), scan.value()?.to_vec());
        bytes += (row.0.len() + row.1.len()) as u64;
        rows.push(row);
        scan.next()?;
    }
    rows.truncate(whole);
    Ok((!rows.is_empty()).then_some((rows, units)))
}

fn last_key(tree: &Tree) -> Outcome<Option<Vec<u8>>> {
    let mut scan = tree.scan_with(options(b""))?;
    scan.seek_last()?;
    Ok(scan.valid().then(|| scan.key().to_vec()))
}

/// About the key before which tables have `place` bytes: each step halves what is between two
/// keys, at the first byte in which they differ.
fn key_at(tree: &Tree, place: u64, first: &[u8], last: &[u8]) -> Outcome<Vec<u8>> {
    let (mut low, mut high) = (first.to_vec(), last.to_vec());
    for _ in 0..STEPS_MAX {
        let Some(middle) = between(&low, &high) else { break };
        match tree.approximate_bytes(b"", Some(&middle))? < place {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(low)
}

/// A key in the middle between two; `None` if there is none that these bytes tell apart.
fn between(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let same = low.iter().zip(high).take_while(|(one, other)| one == other).count();
    let number = |key: &[u8]| {
        let digits = (same..same + STEP_BYTES).map(|at| key.get(at).copied().unwrap_or(0));
        digits.fold(0u64, |number, digit| number << 8 | u64::from(digit))
    };
    let (least, most) = (number(low), number(high));
    if most <= least + 1 {
        return None;
    }
    let middle = least + (most - least) / 2;
    let mut key = low[..same].to_vec();
    key.extend(&middle.to_be_bytes()[8 - STEP_BYTES..]);
    Some(key)
}

/// Bytes before compression, as the blocks of the tree's tables have them.
fn raw_bytes(db: &Db, tree: &Tree) -> u64 {
    let stats = db.stats();
    let levels = stats.trees.iter().filter(|other| other.name == tree.name());
    let levels = levels.flat_map(|tree| &tree.levels);
    levels.map(|level| (level.bytes as f64 * level.ratio.max(1.0)) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_between_others() {
        let middle = between(b"user/1", b"user/9").unwrap();
        assert!(middle.as_slice() > b"user/1".as_slice() && middle.as_slice() < b"user/9");
        assert_eq!(between(b"a", b"a"), None);
        assert!(between(b"a", b"a\x00\x01").is_some_and(|key| key.as_slice() > b"a"));
    }

    #[test]
    fn a_sample_of_a_tree_is_spread_over_it() {
        let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
        let db = Db::open_in("/db", shaledb::Config::default(), options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        let mut rows = tree.ingest().unwrap();
        for number in 0..100_000u32 {
            rows.add(format!("user/{number:09}").as_bytes(), &[7; 50]).unwrap();
        }
        rows.finish().unwrap();
        let sample = sample(&db, &tree, 2 << 20).unwrap();
        assert_eq!(sample.seen, Seen::Spread);
        assert!(sample.stretches.len() > 30, "{}", sample.stretches.len());
        let off = (sample.total_rows() / 100_000.0 - 1.0).abs();
        assert!(off < 0.1, "{off}");
        let last = sample.stretches.last().unwrap();
        assert!(last.at > 0.9 && last.rows[0].0.as_slice() > b"user/000090000".as_slice());
    }
}
