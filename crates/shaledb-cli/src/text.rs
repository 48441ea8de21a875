//! Keys and values as text: escapes, hexadecimal, or as they are.

use clap::Args;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// How bytes are read from arguments and printed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Form {
    /// Read and print keys and values in hexadecimal
    #[arg(long, conflicts_with = "raw")]
    pub hex: bool,

    /// Read and print keys and values as they are, without escapes
    #[arg(long)]
    pub raw: bool,
}

impl Form {
    /// The bytes that an argument names.
    pub fn read(self, text: &str) -> Result<Vec<u8>, String> {
        if self.hex {
            from_hex(text)
        } else if self.raw {
            Ok(text.as_bytes().to_vec())
        } else {
            unescape(text.as_bytes())
        }
    }

    /// Appends bytes as they are printed.
    pub fn print(self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.hex {
            out.extend(hex(bytes).as_bytes());
        } else if self.raw {
            out.extend(bytes);
        } else {
            escape(bytes, out);
        }
    }
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Bytes of hexadecimal digits.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(format!("`{text}` has an odd number of hexadecimal digits; a byte has two"));
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .map(|digit| digit as u8)
            .ok_or_else(|| format!("`{text}` has a character that is not hexadecimal"))
    };
    digits.chunks_exact(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Appends bytes with escapes: what is valid UTF-8 and not a control character stays as it is.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.extend(b"\\\\"),
                '\t' => out.extend(b"\\t"),
                '\n' => out.extend(b"\\n"),
                '\r' => out.extend(b"\\r"),
                // At the start of a file it would be a byte order mark.
                c if c.is_control() || c == '\u{feff}' => {
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        out.extend(format!("\\x{byte:02x}").as_bytes());
                    }
                }
                c => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            out.extend(format!("\\x{byte:02x}").as_bytes());
        }
    }
}

/// Escaped text as a string.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    escape(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The bytes of text with escapes.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let wrong = || {
            format!(
                "`{}` has an unknown escape. The escapes are \\xNN, \\t, \\n, \\r, \\0 and \\\\. \
                 Write \\\\ for a backslash, or use --raw",
                String::from_utf8_lossy(text)
            )
        };
        let (&kind, after) = rest.split_first().ok_or_else(wrong)?;
        rest = after;
        match kind {
            b'\\' => out.push(b'\\'),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b'0' => out.push(0),
            b'x' => {
                let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                out.extend(digits.and_then(|digits| from_hex(digits).ok()).ok_or_else(wrong)?);
                rest = &rest[2..];
            }
            _ => return Err(wrong()),
        }
    }
    Ok(out)
}

/// Puts bytes into a JSON object: as a string if they are text, else in hexadecimal under
/// `NAME_hex`.
pub fn put_json(object: &mut Map<String, Value>, name: &str, bytes: &[u8], form: Form) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !form.hex => object.insert(name.to_owned(), text.into()),
        _ => object.insert(format!("{name}_hex"), hex(bytes).into()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = escaped(&all);
        assert!(text.chars().all(|c| !c.is_control()));
        assert_eq!(unescape(text.as_bytes()), Ok(all.clone()));
        assert_eq!(from_hex(&hex(&all)), Ok(all));
        assert_eq!(escaped("caf\u{e9} \u{85}".as_bytes()), "caf\u{e9} \\xc2\\x85");
    }

    #[test]
    fn wrong_escapes_are_named() {
        for wrong in ["\\", "\\q", "\\x", "\\x1", "\\xgg"] {
            assert!(unescape(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(from_hex("abc").is_err());
        assert!(from_hex("zz").is_err());
    }
}
