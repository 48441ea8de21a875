//! Sizes, rates, spans and devices as people who plan write them.

use shaledb_forecast::Device;
use shaledb_forecast::scenario::HOURS;

/// A number and what follows it.
fn number(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim().to_ascii_lowercase()))
}

/// `20TB` (10^12), `64MiB` (2^20), `812`, `1.5GB`.
pub(super) fn size(text: &str) -> Result<f64, String> {
    let wrong =
        || format!("`{text}` is not a size such as 20TB (powers of 1000), 64MiB (of 1024) or 4096");
    let (number, unit) = number(text).ok_or_else(wrong)?;
    let power = |letter: &str| "kmgtp".find(letter).map(|at| at as i32 + 1);
    let scale = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1.0,
        binary if binary.ends_with('i') && binary.len() == 2 => {
            1024f64.powi(power(&binary[..1]).ok_or_else(wrong)?)
        }
        decimal if decimal.len() == 1 => 1000f64.powi(power(decimal).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    Ok(number * scale)
}

/// A size of memory or of a file, in whole bytes.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    Ok(size(text)?.round() as u64)
}

/// `40MB/s` or `40MB`, in whole bytes a second.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("`{text}` is not a rate such as 40MB/s (powers of 1000) or 1.5MiB/s");
    let bytes = text.trim();
    whole(bytes.strip_suffix("/s").unwrap_or(bytes)).map_err(wrong)
}

/// `40MB/s`, or `unlimited`; of hours that are named, `0-8:5MB/s,8-20:60MB/s` (the others are 0).
pub(super) fn rates(text: &str) -> Result<[f64; HOURS], String> {
    let rate = |text: &str| {
        if text.trim() == "unlimited" {
            return Ok(f64::INFINITY);
        }
        let bytes = text
            .trim()
            .strip_suffix("/s")
            .ok_or_else(|| format!("`{text}` is not a rate such as 40MB/s, or `unlimited`"))?;
        size(bytes)
    };
    if !text.contains(':') {
        return Ok([rate(text)?; HOURS]);
    }
    let mut hours = [0.0; HOURS];
    for part in text.split(',') {
        let wrong = || format!("`{part}` is not a rate of some hours such as 8-20:60MB/s");
        let (span, of_them) = part.split_once(':').ok_or_else(wrong)?;
        let (from, to) = span.split_once('-').ok_or_else(wrong)?;
        let hour = |text: &str| text.trim().parse::<usize>().ok().filter(|hour| *hour <= HOURS);
        let (from, to) = hour(from).zip(hour(to)).ok_or_else(wrong)?;
        if from >= to {
            return Err(format!("`{part}`: its first hour is not before its end"));
        }
        let bytes = rate(of_them)?;
        if bytes.is_infinite() {
            return Err(format!("`{part}`: `unlimited` is for all hours or none"));
        }
        if hours[from..to].iter().any(|rate| *rate > 0.0) {
            return Err(format!("`{part}`: some of these hours have a rate already"));
        }
        hours[from..to].fill(bytes);
    }
    Ok(hours)
}

/// Days: `30d`, `12h`, `2w`, `1y` (365 days).
pub(super) fn days(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a span such as 30min, 12h, 30d, 2w or 1y");
    let (number, unit) = number(text).ok_or_else(wrong)?;
    let each = match unit.as_str() {
        "s" => 1.0 / 86_400.0,
        "min" => 1.0 / 1440.0,
        "h" => 1.0 / 24.0,
        "d" => 1.0,
        "w" => 7.0,
        "y" => 365.0,
        _ => return Err(wrong()),
    };
    Ok(number * each)
}

/// A share: `0.3` or `30%`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a share such as 0.3 or 30%");
    let (number, unit) = number(text).ok_or_else(wrong)?;
    match unit.as_str() {
        "" => Ok(number),
        "%" => Ok(number / 100.0),
        _ => Err(wrong()),
    }
}

/// Operations a second: `5k`, `20000`.
pub(super) fn count(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a number such as 5000, 20k or 1M");
    let (number, unit) = number(text).ok_or_else(wrong)?;
    match unit.as_str() {
        "" => Ok(number),
        "k" => Ok(number * 1e3),
        "m" => Ok(number * 1e6),
        _ => Err(wrong()),
    }
}

/// `500MB/s,20kiops,600TBW,slower:10%`: what the device does, how much may be written in its life,
/// and by how much it becomes slower each year.
pub(super) fn device(text: &str) -> Result<Device, String> {
    let mut device = Device {
        bytes_per_second: 0.0,
        reads_per_second: f64::INFINITY,
        life_bytes: f64::INFINITY,
        slower_each_year: 0.0,
    };
    for part in text.split(',') {
        let lower = part.trim().to_ascii_lowercase();
        if let Some(bytes) = lower.strip_suffix("/s") {
            device.bytes_per_second = size(bytes)?;
        } else if let Some(reads) = lower.strip_suffix("iops") {
            device.reads_per_second = count(reads)?;
        } else if let Some(bytes) = lower.strip_suffix("bw") {
            device.life_bytes = size(&format!("{bytes}b"))?;
        } else if let Some(slower) = lower.strip_prefix("slower:") {
            device.slower_each_year = share(slower)?;
        } else {
            return Err(format!(
                "`{part}` says nothing of a device: it has a rate such as 500MB/s and, if you \
                 like, 20kiops, 600TBW (its life), slower:10% (each year)"
            ));
        }
    }
    if device.bytes_per_second == 0.0 {
        return Err(format!("`{text}` has no rate of bytes, such as 500MB/s"));
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_of_1000_or_1024_as_they_say() {
        assert_eq!(size("20TB"), Ok(20e12));
        assert_eq!(size("64MiB"), Ok(f64::from(64 << 20)));
        assert_eq!(size("1.5g"), Ok(1.5e9));
        assert_eq!(size("812"), Ok(812.0));
        for wrong in ["", "TB", "20XB", "20BB", "20 cats", "-3MB", "1e999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_of_the_whole_day_or_of_hours() {
        assert_eq!(rates("40MB/s"), Ok([40e6; HOURS]));
        assert!(rates("unlimited").is_ok_and(|rates| rates[3].is_infinite()));
        let hours = rates("0-8:5MB/s,8-20:60MB/s").unwrap();
        assert_eq!(
            (hours[0], hours[7], hours[8], hours[19], hours[20]),
            (5e6, 5e6, 60e6, 60e6, 0.0)
        );
        for wrong in [
            "40MB",
            "8-20",
            "0-8:1MB/s,4-12:2MB/s",
            "20-8:1MB/s",
            "0-25:1MB/s",
            "0-8:unlimited",
            "x-8:1MB/s",
        ] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_device_has_a_rate() {
        let all = device("500MB/s,20kiops,600TBW,slower:10%").unwrap();
        assert_eq!((all.bytes_per_second, all.reads_per_second), (5e8, 2e4));
        assert_eq!((all.life_bytes, all.slower_each_year), (6e14, 0.1));
        assert!(device("20kiops").is_err_and(|text| text.contains("no rate of bytes")));
        assert!(device("500MB/s,fast").is_err_and(|text| text.contains("`fast`")));
    }

    #[test]
    fn spans_and_shares() {
        assert_eq!((days("1y"), days("12h"), days("2w")), (Ok(365.0), Ok(0.5), Ok(14.0)));
        assert_eq!((share("30%"), share("0.3"), count("20k")), (Ok(0.3), Ok(0.3), Ok(2e4)));
        assert!(days("3").is_err() && share("x").is_err() && count("3q").is_err());
    }
}
