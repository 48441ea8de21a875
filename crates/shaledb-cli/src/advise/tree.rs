//! A sample of a tree: stretches of keys that are evenly spread over its stored bytes. The tree is
//! Shale's, or one of an engine whose driver shows it.

use super::sample::{Row, Sample, Seen, Stretch, stretches_of};
use crate::exit::{Exit, Failure, Outcome};
use shaledb_lab::browse::{About, Browse, Entry};

/// Rows are asked for in pieces of so many bytes.
const PIECE_BYTES: u64 = 64 << 10;

/// A stretch has at most so many times its part of the sample's bytes, and passes at most as many
/// before it begins.
const STRETCH_TIMES_MAX: u64 = 4;

/// Of a tree whose tables have more bytes than the sample, this part of the sample is read to see
/// whether that is all: it is only if most entries are replaced or deleted.
const PART_OF_LARGE: u64 = 8;

/// Bytes of a key that are changed by one step towards a place.
const STEP_BYTES: usize = 7;
const STEPS_MAX: usize = 600;

/// Reads some `sample_bytes` of keys and values of a tree, which messages call `name`.
pub(super) fn sample(tree: &mut dyn Browse, name: &str, sample_bytes: u64) -> Outcome<Sample> {
    let refused = |what: &str| Failure::new(Exit::BadInput, format!("{name} {what}"));
    let about = tree.about()?;
    let empty = || match about.others.as_slice() {
        [] => refused("is empty: there is nothing to advise on"),
        others => refused(&format!("is empty. --tree names another: {}", others.join(", "))),
    };
    // Up to the last key: to the end, filters and indexes would count too, which ranges have not.
    let last = about.last.as_ref().ok_or_else(empty)?;
    let total = tree.stored_before(last)?;
    let part = if total > sample_bytes { PART_OF_LARGE } else { 1 };
    let (from_start, is_whole) = from_start(tree, sample_bytes / part)?;
    if from_start.is_empty() {
        return Err(empty());
    }
    if is_whole || total == 0 {
        return Ok(head(&about, from_start, is_whole));
    }
    let first = from_start[0].0.clone();
    drop(from_start);
    let raw = about.raw_bytes.max(total);
    let count = stretches_of(sample_bytes);
    let stretch_bytes = sample_bytes / count;
    // Where values are in blob files, the tables may have less than the sample.
    let share = (sample_bytes as f64 / raw as f64).min(1.0);
    let part = (total as f64 * share / count as f64) as u64;
    let of_row = total as f64 / about.table_entries.max(1) as f64;
    let mut stretches: Vec<Stretch> = Vec::new();
    for number in 0..count {
        let place = (total * (2 * number + 1) / (2 * count)).saturating_sub(part / 2);
        let from = key_at(tree, place, &first, last)?;
        // No row comes twice.
        let newest = stretches.last().and_then(|stretch| stretch.rows.last());
        if newest.is_some_and(|(key, _)| *key >= from) {
            continue;
        }
        let rows = rows_of(tree, &from, part.max(1), stretch_bytes * STRETCH_TIMES_MAX)?;
        let Some((rows, units)) = rows else { continue };
        // Within one block tables tell no bytes of rows: then each row has those of the mean.
        let units = units.unwrap_or(((rows.len() as f64 * of_row) as u64).max(1));
        stretches.push(Stretch { at: place as f64 / total as f64, units, rows, file: 0 });
    }
    let mut notes = Vec::new();
    if about.has_uncounted {
        notes.push(
            "What is in memtables or in blob files does not count in the size that stretches are \
             scaled by."
                .to_owned(),
        );
    }
    let units: u64 = stretches.iter().map(|stretch| stretch.units).sum();
    let sample = Sample::new(stretches, Some(total.max(units)), Seen::Spread, notes);
    if sample.rows == 0 {
        return Err(refused("has no row where it was read. Raise --sample"));
    }
    Ok(sample)
}

/// What the beginning of a tree shows: all of it, or a part of rows between which tables have no
/// step, so that no other place of it can be told.
fn head(about: &About, rows: Vec<Row>, is_whole: bool) -> Sample {
    let units: u64 = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    let of_row = units as f64 / rows.len() as f64;
    let stretch = Stretch { units, rows, ..Stretch::default() };
    if is_whole {
        return Sample::new(vec![stretch], Some(units), Seen::All, Vec::new());
    }
    let entries = about.table_entries + about.memtable_entries;
    let total = ((entries as f64 * of_row) as u64).max(units);
    let note = "The rows are in memtables or in one block, so only the beginning was read; sizes \
                are scaled by the number of entries, replaced and deleted ones too. The bounds are \
                wide. A larger --sample narrows them.";
    Sample::new(vec![stretch], Some(total), Seen::Head, vec![note.to_owned()])
}

/// Rows of a tree, one after the other.
struct Walk<'a> {
    tree: &'a mut dyn Browse,
    /// Where the next piece begins.
    from: Vec<u8>,
    piece: std::vec::IntoIter<Entry>,
    piece_bytes: u64,
}

impl<'a> Walk<'a> {
    fn new(tree: &'a mut dyn Browse, from: &[u8], most: u64) -> Walk<'a> {
        let piece_bytes = most.clamp(1, PIECE_BYTES);
        Walk { tree, from: from.to_vec(), piece: Vec::new().into_iter(), piece_bytes }
    }

    fn next(&mut self) -> Outcome<Option<Entry>> {
        if self.piece.as_slice().is_empty() {
            let piece = self.tree.rows(&self.from, self.piece_bytes, true)?;
            let Some(last) = piece.last() else { return Ok(None) };
            self.from = after(&last.key);
            self.piece = piece.into_iter();
        }
        Ok(self.piece.next())
    }
}

/// The first key behind one.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Rows from the first one on, and whether these are all.
fn from_start(tree: &mut dyn Browse, most: u64) -> Outcome<(Vec<Row>, bool)> {
    let mut walk = Walk::new(tree, b"", most);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(entry) = walk.next()? {
        if bytes >= most {
            return Ok((rows, false));
        }
        bytes += bytes_of(&entry);
        rows.push((entry.key, entry.value));
    }
    Ok((rows, true))
}

fn bytes_of(entry: &Entry) -> u64 {
    (entry.key.len() + entry.value.len()) as u64
}

/// Rows, and the bytes that they take in tables if these tell that.
type Part = (Vec<Row>, Option<u64>);

/// Rows from about a key on that take `stored` bytes in tables, or have `most` bytes; and what they
/// take. Tables tell that by whole blocks, so the rows begin and end where it steps; it is `None`
/// if there is no step before them, or none in them.
fn rows_of(tree: &mut dyn Browse, from: &[u8], stored: u64, most: u64) -> Outcome<Option<Part>> {
    let first = tree.stored_before(from)?;
    let mut walk = Walk::new(tree, from, most);
    let (mut passed, mut before) = (0, first);
    let mut entry = walk.next()?;
    while let Some(row) = &entry
        && before == first
        && passed < most
    {
        passed += bytes_of(row);
        entry = walk.next()?;
        before = entry.as_ref().map_or(before, |row| row.before);
    }
    // What comes after the last step, and how many bytes that step was at.
    let (mut rows, mut bytes, mut whole) = (Vec::new(), 0, 0);
    let mut units = 0;
    while let Some(row) = entry {
        let now = row.before.saturating_sub(before);
        if now > units {
            (units, whole) = (now, rows.len());
            if units >= stored {
                break;
            }
        }
        if bytes >= most {
            break;
        }
        bytes += bytes_of(&row);
        rows.push((row.key, row.value));
        entry = walk.next()?;
    }
    // Rows that begin within a block, and not where a step was, have but a part of its bytes.
    let is_known = before > first && whole > 0;
    if is_known {
        rows.truncate(whole);
    }
    Ok((!rows.is_empty()).then_some((rows, is_known.then_some(units))))
}

/// About the key before which tables have `place` bytes: each step halves what is between two
/// keys, at the first byte in which they differ.
fn key_at(tree: &mut dyn Browse, place: u64, first: &[u8], last: &[u8]) -> Outcome<Vec<u8>> {
    let (mut low, mut high) = (first.to_vec(), last.to_vec());
    for _ in 0..STEPS_MAX {
        let Some(middle) = between(&low, &high) else { break };
        match tree.stored_before(&middle)? < place {
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

#[cfg(test)]
mod tests {
    use super::super::shale_tree::ShaleTree;
    use super::*;
    use shaledb::{Db, Tree};

    #[test]
    fn keys_between_others() {
        let middle = between(b"user/1", b"user/9").unwrap();
        assert!(middle.as_slice() > b"user/1".as_slice() && middle.as_slice() < b"user/9");
        assert_eq!(between(b"a", b"a"), None);
        assert!(between(b"a", b"a\x00\x01").is_some_and(|key| key.as_slice() > b"a"));
    }

    fn made(blob_bytes: u32) -> (Db, Tree) {
        let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
        let tree = shaledb::TreeConfig { blob_bytes, ..Default::default() };
        let config = shaledb::Config { tree, ..Default::default() };
        let db = Db::open_in("/db", config, options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        (db, tree)
    }

    fn ingest(tree: &Tree, rows: u32, value: &[u8]) {
        let mut ingest = tree.ingest().unwrap();
        for number in 0..rows {
            ingest.add(format!("user/{number:09}").as_bytes(), value).unwrap();
        }
        ingest.finish().unwrap();
    }

    #[test]
    fn values_in_blob_files_are_sampled() {
        let (db, tree) = made(4096);
        // Some tables' blocks of keys, each with far more values than a stretch may have.
        ingest(&tree, 2000, &[7; 5000]);
        let sample = sample(&mut ShaleTree::new(db, tree), "t", 256 << 10).unwrap();
        assert!(sample.seen == Seen::Spread && sample.rows > 0);
        let off = (sample.total_rows() / 2000.0 - 1.0).abs();
        assert!(off < 0.1 && sample.share() <= 1.0, "{off} {}", sample.share());
    }

    #[test]
    fn rows_that_no_step_parts_are_scaled_by_their_number() {
        // In memtables, and as values of one block.
        let (in_memtables, tree) = made(1 << 20);
        for number in 0..5000u32 {
            tree.put(&number.to_be_bytes(), &[7; 100]).unwrap();
        }
        let of_memtables = sample(&mut ShaleTree::new(in_memtables, tree), "t", 128 << 10).unwrap();
        let (in_one_block, tree) = made(4096);
        ingest(&tree, 100, &[7; 5000]);
        let of_one_block = sample(&mut ShaleTree::new(in_one_block, tree), "t", 128 << 10).unwrap();
        for (sample, rows) in [(of_memtables, 5000.0), (of_one_block, 100.0)] {
            assert!(sample.seen == Seen::Head && !sample.is_endless);
            assert!((sample.total_rows() / rows - 1.0).abs() < 0.01, "{}", sample.total_rows());
            assert!(sample.notes[0].contains("only the beginning was read"));
        }
    }

    #[test]
    fn a_sample_of_a_tree_is_spread_over_it() {
        let (db, tree) = made(1 << 20);
        ingest(&tree, 100_000, &[7; 50]);
        let sample = sample(&mut ShaleTree::new(db, tree), "t", 2 << 20).unwrap();
        assert_eq!(sample.seen, Seen::Spread);
        assert!(sample.stretches.len() > 30, "{}", sample.stretches.len());
        let off = (sample.total_rows() / 100_000.0 - 1.0).abs();
        assert!(off < 0.1, "{off}");
        let last = sample.stretches.last().unwrap();
        assert!(last.at > 0.9 && last.rows[0].0.as_slice() > b"user/000090000".as_slice());
    }
}
