//! Sizes, counts and times as people write and read them.

/// Reads a count such as `5000`, `10k`, `10M` or `1G` (thousands).
///
/// # Errors
///
/// The text is not a count, or it does not fit 64 bits.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let (digits, scale) = match text.trim().to_ascii_lowercase().char_indices().last() {
        Some((at, 'k')) => (text.trim()[..at].to_owned(), 1_000),
        Some((at, 'm')) => (text.trim()[..at].to_owned(), 1_000_000),
        Some((at, 'g')) => (text.trim()[..at].to_owned(), 1_000_000_000),
        _ => (text.trim().to_owned(), 1),
    };
    let number: u64 = digits
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a count such as 5000, 10k or 10M"))?;
    number.checked_mul(scale).ok_or_else(|| format!("`{text}` is too large"))
}

/// Reads a count as [`parse_count`] does; 0 of something is nothing to measure.
///
/// # Errors
///
/// As [`parse_count`], or the count is 0.
pub fn parse_some(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err(format!("`{text}` is not a count of 1 or more")),
        count => Ok(count),
    }
}

/// Reads a size in bytes such as `4096`, `64K`, `64KiB`, `1G` (powers of 1024).
///
/// # Errors
///
/// The text is not a size, or it does not fit 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size such as 4096, 64K, 64MiB or 1G");
    let lower = text.trim().to_ascii_lowercase().replace('_', "");
    let digits_end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let number: u64 = lower[..digits_end].parse().map_err(|_| wrong())?;
    let scale = match lower[digits_end..].trim() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1u64 << 40,
        _ => return Err(wrong()),
    };
    number.checked_mul(scale).ok_or_else(|| format!("`{text}` is too large"))
}

/// The size of blocks: a size, or `auto` for 0, which leaves it to the engine.
///
/// # Errors
///
/// As [`parse_bytes`].
pub fn parse_block_bytes(text: &str) -> Result<u64, String> {
    if text == "auto" { Ok(0) } else { parse_bytes(text) }
}

/// `1.50 GB`, `23.4 MB`, `812 B` (powers of 1000, three digits).
pub fn bytes(count: u64) -> String {
    scaled(count as f64, &[" B", " kB", " MB", " GB", " TB"])
}

/// A size that was set, exactly: `64 MiB`, `16 KiB`, `1000 B`.
pub fn setting(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| count > 0 && count.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{} {unit}", count >> shift),
        None => format!("{count} B"),
    }
}

/// `1.23M`, `45.6k`, `789` (powers of 1000, three digits).
pub fn count(number: f64) -> String {
    scaled(number, &["", "k", "M", "G", "T"])
}

fn scaled(number: f64, units: &[&str]) -> String {
    let mut number = number;
    let mut unit = 0;
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let suffix = units[unit];
    if unit == 0 && number.fract() == 0.0 {
        format!("{number:.0}{suffix}")
    } else {
        format!("{}{suffix}", three_digits(number))
    }
}

/// Three significant digits, without an exponent.
pub fn three_digits(number: f64) -> String {
    match number.abs() {
        size if size >= 99.95 => format!("{number:.0}"),
        size if size >= 9.995 => format!("{number:.1}"),
        0.0 => "0".to_owned(),
        size if size >= 0.1 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// Microseconds as `1.23 us`, `4.56 ms` or `7.89 s`.
pub fn micros(number: f64) -> String {
    if number < 999.5 {
        format!("{} us", three_digits(number))
    } else if number < 999_500.0 {
        format!("{} ms", three_digits(number / 1e3))
    } else {
        format!("{} s", three_digits(number / 1e6))
    }
}

/// A number with a comma between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The present moment (UTC) as part of a file's name: `20261121-195517`.
pub fn time_stamp() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    stamp(since.map_or(0, |since| since.as_secs()))
}

fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March of year 0, so that a leap day is the last of its year; 400 years have
    // 146,097 days.
    let from_march = days + 719_468;
    let (era, day) = (from_march / 146_097, from_march % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, more) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + more;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes() {
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_count("1_000"), Ok(1000));
        assert!(parse_count("ten").is_err());
        assert!(parse_count("").is_err());
        assert_eq!(parse_bytes("64K"), Ok(65536));
        assert_eq!(parse_bytes("1GiB"), Ok(1 << 30));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("4 cats").is_err());
        assert!(parse_bytes("99999999T").is_err());
    }

    #[test]
    fn days_have_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_795_290_917), "20261121-195517");
        assert_eq!(stamp(4_107_542_400), "21000301-000000");
    }

    #[test]
    fn printed_with_three_digits() {
        assert_eq!(bytes(812), "812 B");
        assert_eq!(bytes(1_500_000_000), "1.50 GB");
        assert_eq!(bytes(23_400_000), "23.4 MB");
        assert_eq!(count(626_000.0), "626k");
        assert_eq!(micros(0.32), "0.32 us");
        assert_eq!(micros(47_800.0), "47.8 ms");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!((setting(64 << 20).as_str(), setting(100).as_str()), ("64 MiB", "100 B"));
        assert_eq!(grouped(12), "12");
    }
}
