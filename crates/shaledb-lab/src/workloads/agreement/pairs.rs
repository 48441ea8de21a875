//! A user's rows: commits of them, and look-ups.

use super::bytes::bytes;
use super::same::same;
use crate::generate::Random;
use crate::stores::engine::{Failure, Result};
use crate::workloads::rows::RowsOptions;
use crate::workloads::rows::store::{Pairs, PairsSession};

/// Few keys, so that they come again.
const KEYS: u64 = 300;
const KEY_BYTES: u64 = 40;
const VALUE_BYTES: u64 = 200;
/// A value in fifty is longer than a page, and than a piece of a statement.
const LONG_BYTES: u64 = 100_000;

/// Rows of no file, whose keys come again.
fn rows() -> RowsOptions {
    RowsOptions {
        file: "none".into(),
        rows: 0,
        bytes: 0,
        key_bytes_max: KEY_BYTES + 1,
        repeats: true,
        gets: 0,
    }
}

/// A key is never empty.
fn key(random: &mut Random) -> Vec<u8> {
    let mut key =
        bytes(&mut Random::named(random.below(KEYS), "agreement pairs key", 0), KEY_BYTES);
    key.push(b'k');
    key
}

fn value(random: &mut Random) -> Vec<u8> {
    let most = if random.below(50) == 0 { LONG_BYTES } else { VALUE_BYTES };
    bytes(random, most)
}

fn look<S: PairsSession>(session: &mut S, key: &[u8]) -> Result<Option<String>> {
    let mut value = None;
    let found = session.get(key, &mut |bytes| value = Some(bytes.escape_ascii().to_string()))?;
    same(&"whether a row is there", found, value.is_some())?;
    Ok(value)
}

/// Makes the table in both, does `steps` random commits and look-ups, and compares the answers. The
/// error names the first that differs.
///
/// # Errors
///
/// A store fails, or answers otherwise than the other.
pub fn pairs<A: Pairs, B: Pairs>(tested: &A, model: &B, seed: u64, steps: u32) -> Result<()> {
    let rows = rows();
    tested.create(&rows)?;
    model.create(&rows)?;
    let (mut one, mut other) = (tested.session(&rows)?, model.session(&rows)?);
    let mut random = Random::named(seed, "agreement pairs", 0);
    let mut step = |random: &mut Random| -> Result<()> {
        if random.below(4) > 0 {
            let key = key(random);
            return same(&key, look(&mut one, &key)?, look(&mut other, &key)?);
        }
        for _ in 0..=random.below(20) {
            let (key, value) = (key(random), value(random));
            one.put(&key, &value)?;
            other.put(&key, &value)?;
        }
        one.commit()?;
        other.commit()
    };
    for at in 0..steps {
        step(&mut random).map_err(|error| {
            Failure::from(format!("{}, seed {seed}, step {at}: {error}", tested.name()))
        })?;
    }
    Ok(())
}
