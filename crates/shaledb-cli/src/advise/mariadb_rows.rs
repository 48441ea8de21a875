//! A row of MariaDB as a key and a value: numbers and times in binary, texts with their lengths.

use super::sample::Row;

/// Fields of a row; `None` for NULL.
pub(super) type Fields = Vec<Option<Vec<u8>>>;

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An integer of so many bytes.
    Integer(usize),
    /// A binary floating-point number of so many bytes.
    Float(usize),
    /// A date or a time, its digits as a number of so many bytes.
    Time(usize),
    Text,
    Bytes,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    kind: Kind,
    nullable: bool,
    /// Its place in the primary key.
    pub(super) key: Option<usize>,
}

impl Column {
    /// Of its name, type, full type, and whether it may be NULL.
    pub(super) fn of(described: &[String]) -> Option<Column> {
        let [name, kind, _, nullable] = described else { return None };
        let kind = match kind.as_str() {
            "tinyint" | "year" => Kind::Integer(1),
            "smallint" => Kind::Integer(2),
            "mediumint" => Kind::Integer(3),
            "int" => Kind::Integer(4),
            "bigint" => Kind::Integer(8),
            "float" => Kind::Float(4),
            "double" => Kind::Float(8),
            "date" | "time" => Kind::Time(3),
            "timestamp" | "datetime" => Kind::Time(6),
            "char" | "varchar" => Kind::Text,
            _ => Kind::Bytes,
        };
        Some(Column { name: name.clone(), kind, nullable: nullable == "YES", key: None })
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.kind, Kind::Integer(_))
    }

    pub(super) fn is_text(&self) -> bool {
        self.kind == Kind::Text
    }

    /// In binary, so that its order is that of the column, texts as they are.
    fn encode(&self, text: &[u8], to: &mut Vec<u8>) {
        let digits = || std::str::from_utf8(text).unwrap_or_default();
        match self.kind {
            Kind::Integer(bytes) => {
                let number: i128 = digits().parse().unwrap_or_default();
                // Of signed and of unsigned ones the half's bit flips: the order stays.
                let flipped = number.wrapping_add(1 << (8 * bytes - 1));
                to.extend_from_slice(&flipped.to_be_bytes()[16 - bytes..]);
            }
            Kind::Float(4) => {
                to.extend_from_slice(&digits().parse::<f32>().unwrap_or_default().to_be_bytes());
            }
            Kind::Float(_) => {
                to.extend_from_slice(&digits().parse::<f64>().unwrap_or_default().to_be_bytes());
            }
            Kind::Time(bytes) => {
                // Packed as fields of bits: years, months, days, hours, minutes, seconds.
                let fields = text.split(|byte| !byte.is_ascii_digit()).filter(|f| !f.is_empty());
                let numbers = fields.take(6).map(|f| {
                    std::str::from_utf8(f).ok().and_then(|f| f.parse::<u64>().ok()).unwrap_or(0)
                });
                let packed = numbers.fold(0u64, |all, number| (all << 6) | (number & 0x3fff));
                to.extend_from_slice(&packed.to_be_bytes()[8 - bytes..]);
            }
            Kind::Text | Kind::Bytes => to.extend_from_slice(text),
        }
    }

    fn has_length(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Bytes)
    }
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
        let words = ["c", kind, kind, nullable].map(str::to_owned);
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
        // A byte for what is NULL, 8 of a bigint, 6 of a time, a length and a text.
        assert_eq!(of("1", Some("hello")).1.len(), 1 + 8 + 6 + 1 + 5);
        assert_eq!((of("1", None).1.len(), of("1", None).1[0]), (15, 2));
        let (early, late) = (of("1", None).1, of("1", None).1);
        assert_eq!(early, late);
        assert_eq!(row(&columns[2..], &vec![None, None, None], 9).0, 9u64.to_be_bytes());
    }
}
