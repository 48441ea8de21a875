//! What is in memory: how many writes of which kind, and to where.

use crate::content::{Content, Density, Piece, share};
use crate::scenario::Order;

/// What an entry takes in a memtable beside its key and value.
pub const NODE_BYTES: f64 = 56.0;

/// Where rows are: all of the key space, or, with rows in ascending order, a part of it.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// Where new rows go.
    pub order: Order,
    /// The first place that has a row.
    pub low: u64,
    /// The end of the places that have rows.
    pub high: u64,
    /// With ascending rows: how many places each takes.
    pub unit: f64,
}

impl Ground {
    /// The share of the key space that has rows.
    pub fn width(&self) -> f64 {
        share(self.low, self.high).max(1e-18)
    }
}

/// A memtable.
#[derive(Clone, Debug, Default)]
pub struct Memtable {
    /// Bytes in memory.
    pub bytes: f64,
    /// Bytes of keys and values that users wrote, which are in the log too.
    pub user_bytes: f64,
    /// Writes to rows that are there, or may be.
    pub updates: f64,
    /// New rows.
    pub inserts: f64,
    /// Deletes of rows.
    pub deletes: f64,
    /// Where the first new row went.
    pub from: u64,
    /// A range delete of all older rows before this place.
    pub dropped_to: u64,
}

impl Memtable {
    /// What a table made of it holds, and how many rows went into it. It ends before the present
    /// end of the ground.
    pub fn content(&self, ground: &Ground, end: u64) -> Content {
        let over = |low: u64, high: u64, rows: f64| {
            let width = share(low, high).max(1e-18);
            Density { rows, draws: self.updates / width, deletes: self.deletes / width }
        };
        let mut content = match ground.order {
            Order::Random => Content::even(0, u64::MAX, over(0, u64::MAX, self.inserts)),
            Order::Ascending => {
                let low = ground.low.max(self.dropped_to).min(self.from);
                let mut content = Content::default();
                if self.updates + self.deletes > 0.0 && low < self.from {
                    let density = over(low, self.from, 0.0);
                    content.pieces.push(Piece { start: low, end: self.from, density });
                }
                if self.inserts > 0.0 && self.from < end {
                    let rows = self.inserts / share(self.from, end);
                    let density = Density { rows, ..Density::default() };
                    content.pieces.push(Piece { start: self.from, end, density });
                }
                content
            }
        };
        content.dropped_to = self.dropped_to;
        content
    }
}
