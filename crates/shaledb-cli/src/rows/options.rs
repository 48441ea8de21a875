//! How text is read as rows.

/// What the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Lines of a key, a tab and a value.
    Pairs {
        /// Whether backslashes are escapes.
        escaped: bool,
    },
    /// An object in each line, or one array of objects.
    Json,
    /// Rows of fields.
    Columns {
        /// What stands between two fields: ASCII, no quote and no line end.
        delimiter: u8,
        /// Whether a field may stand in quotes, which are doubled inside it.
        quotes: bool,
        /// Whether the first row names the columns.
        header: bool,
    },
}

/// How text is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the text is.
    pub layout: Layout,
    /// The columns or fields that make the key.
    pub key: Vec<String>,
    /// What stands between the parts of a key.
    pub separator: String,
    /// The column or field that is the value; else the whole row is.
    pub value: Option<String>,
    /// The longest row.
    pub row_bytes_max: usize,
}

impl Options {
    /// Rows of this layout, without a choice of columns.
    pub fn new(layout: Layout) -> Options {
        let (key, separator) = (Vec::new(), "/".to_owned());
        Options { layout, key, separator, value: None, row_bytes_max: 256 << 20 }
    }
}
