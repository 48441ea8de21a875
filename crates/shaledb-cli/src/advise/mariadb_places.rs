//! Where a table has rows: ranges of its primary key's first column, told by asking the server for
//! the least and the greatest key in each of some.

use crate::exit::Outcome;
use shaledb_lab::generate::Random;

/// So many times more ranges are asked about than are wanted, as some may have no rows.
const TRIED_TIMES: u64 = 4;
/// Where few of them have rows these are divided again, in so many rounds at most.
const ROUNDS: usize = 3;
/// Characters whose order is the same by their bytes and in any collation.
const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// So many characters after those that all keys share tell places apart.
const PLACES: u32 = 6;

/// How keys are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Integers,
    /// Texts by their bytes.
    Bytes,
    /// Texts by a collation, which may take small and capital letters as one.
    Words,
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    /// Where it begins, from 0 to 1.
    pub(super) at: f64,
    width: f64,
    /// Its first place in SQL, and the place behind it, if it has an end.
    pub(super) from: String,
    pub(super) end: Option<String>,
}

/// A range that has rows, with its least and its greatest key.
#[derive(Debug)]
struct Full {
    range: Range,
    low: String,
    high: String,
}

/// What a server says of some ranges: of each that has rows its number, its least and its greatest
/// key.
pub(super) type Found = Vec<(usize, String, String)>;

/// About so many ranges that have rows, or more, from the least key to the greatest; `None` where
/// places cannot be laid between them.
pub(super) fn full(
    scale: Scale,
    (low, high): (&str, &str),
    parts: u64,
    ask: &mut dyn FnMut(&[Range]) -> Outcome<Found>,
) -> Outcome<Option<Vec<Range>>> {
    let whole = Range { at: 0.0, width: 1.0, from: scale.literal(low), end: None };
    let mut full = vec![Full { range: whole, low: low.to_owned(), high: high.to_owned() }];
    for _ in 0..ROUNDS {
        let wide = full.iter().filter(|one| one.low != one.high).count() as u64;
        if wide == 0 || full.len() as u64 > parts / 2 {
            break;
        }
        let each = (TRIED_TIMES * parts / wide).max(2);
        let mut tried = Vec::new();
        for one in full {
            let Some(ranges) = one.divided(scale, each) else { return Ok(None) };
            tried.extend(ranges);
        }
        let found = ask(&tried)?.into_iter();
        full = found
            .filter_map(|(at, low, high)| Some(Full { range: tried.get(at)?.clone(), low, high }))
            .collect();
    }
    Ok(Some(full.into_iter().map(|one| one.range).collect()))
}

impl Full {
    /// As many ranges of about one width, from the least key on.
    fn divided(self, scale: Scale, parts: u64) -> Option<Vec<Range>> {
        let mut places = match self.low == self.high {
            true => vec![scale.literal(&self.low)],
            false => scale.places(&self.low, &self.high, parts)?,
        };
        places.dedup();
        let width = self.range.width / places.len() as f64;
        let ends = places.iter().skip(1).cloned().map(Some).chain([self.range.end]);
        let ends: Vec<Option<String>> = ends.collect();
        let range = |(at, (from, end)): (usize, (String, Option<String>))| Range {
            at: self.range.at + at as f64 * width,
            width,
            from,
            end,
        };
        Some(places.into_iter().zip(ends).enumerate().map(range).collect())
    }
}

impl Scale {
    /// In SQL.
    fn literal(self, text: &str) -> String {
        match self {
            Scale::Integers => text.to_owned(),
            Scale::Bytes | Scale::Words => literal(text),
        }
    }

    /// So many places from `low` to `high`: that itself, and one by chance in each other part.
    fn places(self, low: &str, high: &str, parts: u64) -> Option<Vec<String>> {
        let mut random = Random::named(1, "advise", 0);
        let mut share = |part: u64| (part as f64 + random.unit() / 2.0) / parts as f64;
        if self == Scale::Integers {
            let (low, high): (i128, i128) = (low.parse().ok()?, high.parse().ok()?);
            let span = (high - low + 1).max(1) as f64;
            let places = (1..parts).map(|part| low + (span * share(part)) as i128);
            return Some([low].into_iter().chain(places).map(|at| at.to_string()).collect());
        }
        let is_printable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !is_printable(low) || !is_printable(high) {
            return None;
        }
        let shared = low.bytes().zip(high.bytes()).take_while(|(a, b)| a == b).count();
        let letters: Vec<u8> = match self {
            Scale::Bytes => (b' '..=b'~').collect(),
            _ => LETTERS.to_vec(),
        };
        let base = letters.len() as u128;
        // Of a character that is none of these the nearest one.
        let number = |text: &str, past: u8| {
            (0..PLACES as usize).fold(0u128, |sum, at| {
                let byte = text.as_bytes().get(shared + at).copied().unwrap_or(past);
                let byte = if self == Scale::Words { byte.to_ascii_lowercase() } else { byte };
                let at = letters.partition_point(|letter| *letter < byte);
                sum * base + (at as u128).min(base - 1)
            })
        };
        let (from, to) = (number(low, letters[0]), number(high, letters[letters.len() - 1]));
        let place = |part: u64| {
            let mut rest = from + (to.saturating_sub(from) as f64 * share(part)) as u128;
            let mut text = Vec::new();
            for _ in 0..PLACES {
                text.push(letters[(rest % base) as usize]);
                rest /= base;
            }
            text.reverse();
            literal(&format!("{}{}", &low[..shared], String::from_utf8_lossy(&text)))
        };
        Some([literal(low)].into_iter().chain((1..parts).map(place)).collect())
    }
}

/// A text in SQL.
pub(super) fn literal(text: &str) -> String {
    format!("_utf8mb4'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn places_go_from_the_lowest_key_to_the_highest() {
        let integers = |low, high, parts| Scale::Integers.places(low, high, parts).unwrap();
        let places: Vec<i128> =
            integers("-100", "99900", 10).iter().map(|at| at.parse().unwrap()).collect();
        assert!(places.is_sorted() && places[0] == -100, "{places:?}");
        assert!(places[9] > 89_000 && places[9] < 99_900, "{places:?}");
        assert_eq!(integers("5", "5", 3), ["5", "5", "5"]);
        for scale in [Scale::Words, Scale::Bytes] {
            let places = scale.places("user-aaa", "user-zz", 8).unwrap();
            assert!(places.is_sorted() && places[0] == "_utf8mb4'user-aaa'", "{places:?}");
            assert!(places[1].as_str() < "_utf8mb4'user-j", "in the second part: {places:?}");
            assert!(places[7].as_str() < "_utf8mb4'user-zz", "{places:?}");
            assert_eq!(scale.places("\u{e9}", "z", 8), None);
        }
    }

    /// What a server with these keys says, in their order, and how often it was asked.
    fn asked<K: Ord + Clone + ToString>(
        scale: Scale,
        keys: &BTreeSet<K>,
        parts: u64,
        key: impl Fn(&str) -> K,
    ) -> (Vec<usize>, usize) {
        let rows_of = |range: &Range| {
            let from = key(&range.from);
            match range.end.as_deref().map(&key) {
                Some(end) if end < from => Vec::new(),
                Some(end) => keys.range(from..end).collect(),
                None => keys.range(from..).collect::<Vec<&K>>(),
            }
        };
        let mut times = 0;
        let mut ask = |ranges: &[Range]| {
            times += 1;
            let rows = ranges.iter().map(rows_of).enumerate();
            let full = rows.filter(|(_, rows)| !rows.is_empty());
            let ends = |rows: &[&K]| (rows[0].to_string(), rows[rows.len() - 1].to_string());
            Ok(full.map(|(at, rows)| (at, ends(&rows).0, ends(&rows).1)).collect())
        };
        let (low, high) = (keys.first().unwrap().to_string(), keys.last().unwrap().to_string());
        let ranges = full(scale, (&low, &high), parts, &mut ask).unwrap().unwrap();
        assert!(ranges.windows(2).all(|two| two[0].at < two[1].at), "{ranges:?}");
        let counts: Vec<usize> = ranges.iter().map(|range| rows_of(range).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), keys.len(), "each row is in one range");
        (counts, times)
    }

    /// One row far behind all others takes nearly all of the span.
    #[test]
    fn places_are_laid_where_rows_are() {
        let number = |text: &str| text.parse::<i64>().unwrap();
        let far: BTreeSet<i64> = (1..=100_000).chain([1 << 62]).collect();
        let (counts, times) = asked(Scale::Integers, &far, 16, number);
        assert!(counts.len() >= 16 && times == 2, "{counts:?}");
        assert!(counts.iter().max() < Some(&10_000), "{counts:?}");
        // Evenly between them one round does.
        let even: BTreeSet<i64> = (0..100_000).map(|at| 7 * at).collect();
        assert_eq!(asked(Scale::Integers, &even, 16, number).1, 1);
        // Of few keys there are no more ranges than keys.
        let few: BTreeSet<i64> = [1, 1 << 40, 1 << 50].into();
        assert_eq!(asked(Scale::Integers, &few, 16, number).0, [1, 1, 1]);
    }

    /// By their bytes, all capital letters come before the small ones.
    #[test]
    fn capital_letters_have_their_places() {
        let text = |text: &str| text[9..text.len() - 1].to_owned();
        let letter = |at: u32| char::from(b'A' + (at % 26) as u8);
        let key = |at: u32| format!("{}{}{}", letter(at / 676), letter(at / 26), letter(at));
        let keys: BTreeSet<String> = (0..17_576).map(key).collect();
        let (counts, _) = asked(Scale::Bytes, &keys, 16, text);
        assert!(counts.len() > 16 && counts.iter().max() < Some(&2_000), "{counts:?}");
    }
}
