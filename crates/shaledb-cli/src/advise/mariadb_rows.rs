//! A row of MariaDB as a key and a value: numbers and times in binary, texts with their lengths.

use super::mariadb_places::Scale;
use super::sample::Row;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Fields of a row; `None` for NULL.
pub(super) type Fields = Vec<Option<Vec<u8>>>;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An integer of so many bytes.
    Integer(usize),
    /// A binary floating-point number of so many bytes.
    Float(usize),
    Year,
    Date,
    /// A time, with so many digits of a second's fraction.
    Time(usize),
    /// A day and a time, with so many digits of a second's fraction.
    DateTime(usize),
    /// A number of so many digits before and behind the point.
    Decimal(usize, usize),
    Uuid,
    Inet4,
    Inet6,
    Text,
    Bytes,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    kind: Kind,
    nullable: bool,
    /// Of a text: whether its order is that of its bytes.
    by_bytes: bool,
    /// Its place in the primary key.
    pub(super) key: Option<usize>,
}

impl Column {
    /// Of its name, type, full type, whether it may be NULL, and its collation.
    pub(super) fn of(described: &[String]) -> Option<Column> {
        let [name, kind, full, nullable, collation] = described else { return None };
        // What is in brackets: digits of the fraction, or of a decimal.
        let inside = full.split(['(', ')']).nth(1).unwrap_or_default();
        let mut digits = inside.split(',').map(|digits| digits.trim().parse::<usize>().ok());
        let mut digits = || digits.next().flatten();
        let kind = match kind.as_str() {
            "tinyint" => Kind::Integer(1),
            "year" => Kind::Year,
            "smallint" => Kind::Integer(2),
            "mediumint" => Kind::Integer(3),
            "int" => Kind::Integer(4),
            "bigint" => Kind::Integer(8),
            "float" => Kind::Float(4),
            "double" => Kind::Float(8),
            "date" => Kind::Date,
            "time" => Kind::Time(digits().unwrap_or(0)),
            "timestamp" | "datetime" => Kind::DateTime(digits().unwrap_or(0)),
            "decimal" => {
                let (all, behind) = (digits().unwrap_or(10), digits().unwrap_or(0));
                Kind::Decimal(all.saturating_sub(behind), behind)
            }
            "uuid" => Kind::Uuid,
            "inet4" => Kind::Inet4,
            "inet6" => Kind::Inet6,
            "char" | "varchar" => Kind::Text,
            _ => Kind::Bytes,
        };
        let (name, nullable) = (name.clone(), nullable == "YES");
        Some(Column { name, kind, nullable, by_bytes: collation.ends_with("_bin"), key: None })
    }

    /// How places between two of its values are found, if they can be.
    pub(super) fn scale(&self) -> Option<Scale> {
        match self.kind {
            Kind::Integer(_) | Kind::Year => Some(Scale::Integers),
            Kind::Text => Some(if self.by_bytes { Scale::Bytes } else { Scale::Words }),
            _ => None,
        }
    }

    /// In binary, so that its order is that of the column, texts as they are.
    fn encode(&self, text: &[u8], to: &mut Vec<u8>) {
        let printed = std::str::from_utf8(text).unwrap_or_default();
        match self.kind {
            Kind::Integer(bytes) => {
                let number: i128 = printed.parse().unwrap_or_default();
                // Of signed and of unsigned ones the half's bit flips: the order stays.
                let flipped = number.wrapping_add(1 << (8 * bytes - 1));
                to.extend_from_slice(&flipped.to_be_bytes()[16 - bytes..]);
            }
            Kind::Float(4) => {
                to.extend_from_slice(&printed.parse::<f32>().unwrap_or_default().to_be_bytes());
            }
            Kind::Float(_) => {
                to.extend_from_slice(&printed.parse::<f64>().unwrap_or_default().to_be_bytes());
            }
            Kind::Year => {
                to.push(printed.parse::<u32>().unwrap_or(0).saturating_sub(1900) as u8);
            }
            Kind::Date => {
                let [year, month, day, ..] = fields(printed);
                let packed = (year << 9) | (month << 5) | day;
                to.extend_from_slice(&packed.to_be_bytes()[5..]);
            }
            Kind::Time(digits) => {
                let [hours, minutes, seconds, ..] = fields(printed);
                let (fraction, bytes) = fraction(printed, digits);
                let whole = (hours << 12) | (minutes << 6) | seconds;
                let packed = ((whole << (8 * bytes)) | fraction) as i64;
                let signed = if printed.starts_with('-') { -packed } else { packed };
                let flipped = signed + (1 << (8 * (3 + bytes) - 1));
                to.extend_from_slice(&flipped.to_be_bytes()[5 - bytes..]);
            }
            Kind::DateTime(digits) => {
                let [year, month, day, hours, minutes, seconds] = fields(printed);
                let (fraction, bytes) = fraction(printed, digits);
                let time = (hours << 12) | (minutes << 6) | seconds;
                let whole = ((year * 13 + month) << 22) | (day << 17) | time;
                let packed = (whole << (8 * bytes)) | fraction;
                to.extend_from_slice(&packed.to_be_bytes()[3 - bytes..]);
            }
            Kind::Decimal(before, behind) => decimal(printed, before, behind, to),
            Kind::Uuid => to.extend_from_slice(&uuid(printed)),
            Kind::Inet4 => {
                let address = printed.parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
                to.extend_from_slice(&address.octets());
            }
            Kind::Inet6 => {
                let address = printed.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
                to.extend_from_slice(&address.octets());
            }
            Kind::Text | Kind::Bytes => to.extend_from_slice(text),
        }
    }

    fn has_length(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Bytes)
    }
}

/// The numbers of a date, a time or both; those that are not there are 0.
fn fields(printed: &str) -> [u64; 6] {
    let mut numbers = [0; 6];
    let parts = printed.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().unwrap_or(0);
    }
    numbers
}

/// The fraction of a second and its bytes, as the server stores it: a byte for each two digits.
fn fraction(printed: &str, digits: usize) -> (u64, usize) {
    let bytes = digits.min(6).div_ceil(2);
    let printed = printed.split_once('.').map_or("", |(_, behind)| behind);
    let digits = printed.bytes().chain(std::iter::repeat(b'0')).take(2 * bytes);
    (digits.fold(0, |sum, digit| 10 * sum + u64::from(digit.wrapping_sub(b'0') % 10)), bytes)
}

/// A decimal as the server stores it: nine digits in four bytes, fewer in less, both sides of the
/// point by themselves. The order of the bytes is that of the numbers.
fn decimal(printed: &str, before: usize, behind: usize, to: &mut Vec<u8>) {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let (whole, rest) = printed.split_once('.').unwrap_or((printed, ""));
    let whole = whole.trim_start_matches(['-', '+', '0']);
    let mut digits = vec![b'0'; before.saturating_sub(whole.len())];
    digits.extend_from_slice(whole.as_bytes());
    digits.truncate(before);
    digits.extend(rest.bytes().chain(std::iter::repeat(b'0')).take(behind));
    let start = to.len();
    let mut group = |digits: &[u8]| {
        let number = |sum: u32, digit: &u8| 10 * sum + u32::from(digit.wrapping_sub(b'0') % 10);
        let number = digits.iter().fold(0, number);
        to.extend_from_slice(&number.to_be_bytes()[4 - BYTES[digits.len()]..]);
    };
    let (whole, rest) = digits.split_at(before);
    // The group that is not full is the one furthest from the point.
    let (first, full) = whole.split_at(before % 9);
    group(first);
    full.chunks(9).chain(rest.chunks(9)).for_each(group);
    if printed.starts_with('-') {
        to[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(byte) = to.get_mut(start) {
        *byte ^= 0x80;
    }
}

/// The bytes of a UUID in the server's order: of those that begin with the low bits of a time, or
/// with noise, the last parts come first.
fn uuid(printed: &str) -> [u8; 16] {
    let digits: String = printed.chars().filter(char::is_ascii_hexdigit).collect();
    let bytes = u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes();
    if !(1..0x60).contains(&bytes[6]) || bytes[8] & 0x80 == 0 {
        return bytes;
    }
    let mut swapped = [0; 16];
    let parts = [&bytes[10..], &bytes[8..10], &bytes[6..8], &bytes[4..6], &bytes[..4]];
    for (to, from) in swapped.iter_mut().zip(parts.concat()) {
        *to = from;
    }
    swapped
}

/// A row of these columns, those of the key first; without a key `number` is it.
pub(super) fn row(columns: &[Column], fields: &Fields, number: u64) -> Row {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let nullable = columns.iter().filter(|column| column.nullable).count();
    value.resize(nullable.div_ceil(8), 0);
    let mut null = 0;
    for (column, field) in columns.iter().zip(fields) {
        if column.key.is_some() {
            if !key.is_empty() && column.has_length() {
                // What ends the text before it, as keys of several parts need.
                key.push(0);
            }
            column.encode(field.as_deref().unwrap_or_default(), &mut key);
            continue;
        }
        null += usize::from(column.nullable);
        let Some(field) = field else {
            if let Some(bits) = value.get_mut(null.saturating_sub(1) / 8) {
                *bits |= 1 << (null.saturating_sub(1) % 8);
            }
            continue;
        };
        if column.has_length() {
            let mut length = field.len();
            while length >= 0x80 {
                value.push(length as u8 | 0x80);
                length >>= 7;
            }
            value.push(length as u8);
        }
        column.encode(field, &mut value);
    }
    if columns.iter().all(|column| column.key.is_none()) {
        key = number.to_be_bytes().to_vec();
    }
    (key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: &str, nullable: &str, key: Option<usize>) -> Column {
        let short = kind.split('(').next().unwrap();
        let words = ["c", short, kind, nullable, ""].map(str::to_owned);
        Column { key, ..Column::of(&words).unwrap() }
    }

    #[test]
    fn keys_keep_the_order_of_numbers_and_values_are_short() {
        let columns = [
            column("int", "NO", Some(0)),
            column("varchar", "NO", Some(1)),
            column("bigint", "YES", None),
            column("datetime", "NO", None),
            column("text", "YES", None),
        ];
        let of = |id: &str, note: Option<&str>| {
            let some = |text: &str| Some(text.as_bytes().to_vec());
            let fields = vec![
                some(id),
                some("ab"),
                some("7"),
                some("2024-01-31 10:20:30"),
                note.map(|note| note.as_bytes().to_vec()),
            ];
            row(&columns, &fields, 0)
        };
        let keys: Vec<Vec<u8>> = ["-5", "-1", "0", "300"].map(|id| of(id, None).0).to_vec();
        assert!(keys.is_sorted() && keys[0].len() == 4 + 1 + 2, "{keys:?}");
        // A byte for what is NULL, 8 of a bigint, 5 of a time, a length and a text.
        assert_eq!(of("1", Some("hello")).1.len(), 1 + 8 + 5 + 1 + 5);
        assert_eq!((of("1", None).1.len(), of("1", None).1[0]), (14, 2));
        let (early, late) = (of("1", None).1, of("1", None).1);
        assert_eq!(early, late);
        assert_eq!(row(&columns[2..], &vec![None, None, None], 9).0, 9u64.to_be_bytes());
    }
    /// Each as long as the server stores it, in the server's order, and no two alike.
    #[test]
    fn what_differs_as_it_is_printed_differs_in_binary() {
        let all: [(&str, usize, &[&str]); 13] = [
            ("time", 3, &["-838:59:59", "-00:00:01", "00:00:00", "00:59:59", "838:59:59"]),
            (
                "time(6)",
                6,
                &["-10:00:00.000001", "-10:00:00.000000", "-00:00:00.500000", "00:00:00.000001"],
            ),
            ("date", 3, &["0000-00-00", "1969-12-31", "1970-01-01", "9999-12-31"]),
            ("year(4)", 1, &["0000", "1901", "1999", "2024", "2155"]),
            ("datetime", 5, &["1000-01-01 00:00:00", "2024-01-31 23:59:59", "2024-02-01 00:00:00"]),
            ("datetime(1)", 6, &["2024-01-31 10:20:30.1", "2024-01-31 10:20:30.2"]),
            (
                "datetime(6)",
                8,
                &[
                    "2024-01-31 10:20:30.000001",
                    "2024-01-31 10:20:30.000002",
                    "2024-01-31 10:20:30.100000",
                    "2024-01-31 10:20:31.000000",
                ],
            ),
            ("timestamp(3)", 7, &["2024-01-31 10:20:30.001", "2024-01-31 10:20:30.010"]),
            ("decimal(12,2)", 6, &["-9999999999.99", "-1.10", "-1.01", "0.00", "1.01", "20.00"]),
            ("decimal(4,0)", 2, &["-9999", "-1", "0", "1", "10", "9999"]),
            ("decimal(20,20)", 9, &["-0.00000000000000000001", "0.00000000000000000001"]),
            ("inet4", 4, &["1.2.3.4", "1.2.10.4", "200.0.0.1"]),
            ("inet6", 16, &["::", "::1", "::ffff:1.2.3.4", "2001:db8::ff00:42:8329"]),
        ];
        for (kind, bytes, printed) in all {
            let column = column(kind, "NO", Some(0));
            let encoded = |text: &&str| {
                let mut to = Vec::new();
                column.encode(text.as_bytes(), &mut to);
                to
            };
            let keys: Vec<Vec<u8>> = printed.iter().map(encoded).collect();
            assert!(keys.windows(2).all(|two| two[0] < two[1]), "{kind}: {keys:?}");
            assert!(keys.iter().all(|key| key.len() == bytes), "{kind}: {keys:?}");
        }
        // Of version 1 the time's low bits come last, of version 7 they stand last.
        let (one, two) = (uuid("ffffffff-0000-1000-8000-000000000001"), "1-0000-1000-8000-0002");
        assert!(one < uuid(&format!("0000000{}", two.replace("-0002", "-000000000002"))));
        let seven = "018d6a00-0000-7000-8000-000000000001";
        assert_eq!(uuid(seven)[..4], [0x01, 0x8d, 0x6a, 0x00]);
    }
}
