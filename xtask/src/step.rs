//! What a comparison has measured of one step.

use shaledb_lab::run::row::Row;

/// One step of one setting, with the rows of each engine, a pair per repeat.
pub(crate) struct Step {
    pub(crate) setting: String,
    pub(crate) name: String,
    pub(crate) pairs: Vec<(Row, Row)>,
}
