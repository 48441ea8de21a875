//! Where records end in plain bytes, without reading their fields.

use shaledb_cli::rows::Layout;

/// How records of a layout end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records {
    /// The delimiter of fields, if these may stand in quotes.
    quoted: Option<u8>,
}

impl Records {
    pub(super) fn of(layout: Layout) -> Records {
        let quoted = match layout {
            Layout::Columns { delimiter, quotes: true, .. } => Some(delimiter),
            _ => None,
        };
        Records { quoted }
    }

    /// Whether a line end may be inside of a record.
    pub(super) fn may_hold_line_ends(self) -> bool {
        self.quoted.is_some()
    }

    /// The place after the record that begins at `from`; `None` if it does not end here.
    pub(super) fn end(self, bytes: &[u8], from: usize) -> Option<usize> {
        let Some(delimiter) = self.quoted else {
            return memchr::memchr(b'\n', &bytes[from..]).map(|at| from + at + 1);
        };
        self.scan(bytes, from, delimiter).0
    }

    /// Whether a record has a quote in a field that does not begin with one: the rest of a quoted
    /// field looks so.
    pub(super) fn has_bare_quote(self, record: &[u8]) -> bool {
        self.quoted.is_some_and(|delimiter| self.scan(record, 0, delimiter).1)
    }

    /// Where the record ends, and whether it has a bare quote up to there.
    fn scan(self, bytes: &[u8], from: usize, delimiter: u8) -> (Option<usize>, bool) {
        // A quote opens a field where one begins; inside, each further one closes or opens it.
        let (mut inside, mut begins, mut bare) = (false, true, false);
        for (at, &byte) in bytes.iter().enumerate().skip(from) {
            match byte {
                b'"' if inside || begins => (inside, begins) = (!inside, inside),
                b'\n' if !inside => return (Some(at + 1), bare),
                _ => {
                    bare |= !inside && byte == b'"';
                    begins = !inside && byte == delimiter;
                }
            }
        }
        (None, bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_in_quotes_end_nothing() {
        let layout = Layout::Columns { delimiter: b',', quotes: true, header: true };
        let records = Records::of(layout);
        let text = b"a,\"b\n\"\"c\"\"\n\",d\ne,f\"g\nh\n";
        let end = records.end(text, 0).unwrap();
        assert_eq!(&text[..end], b"a,\"b\n\"\"c\"\"\n\",d\n");
        // A quote in the middle of a field is a byte like others.
        let next = records.end(text, end).unwrap();
        assert_eq!(&text[end..next], b"e,f\"g\n");
        assert!(records.has_bare_quote(&text[end..next]) && !records.has_bare_quote(&text[..end]));
        assert!(records.has_bare_quote(b"of a field, b, c\"\n"), "the rest of a quoted one");
        assert_eq!(records.end(b"a,\"b\n", 0), None);
        assert_eq!(Records::of(Layout::Json).end(b"\"a\nb", 0), Some(3));
    }
}
