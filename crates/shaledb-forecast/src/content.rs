//! What a table holds, without its rows: how densely stretches of the key space are covered.
//!
//! The key space is all numbers of 64 bits. A density is what the whole key space would have if all
//! of it were like the stretch.

use crate::keys::Keys;

/// How densely a stretch of the key space is covered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Density {
    /// Rows of keys that are there once: loaded, or inserted.
    pub rows: f64,
    /// Writes to keys drawn from all that there may be; several may have met the same.
    pub draws: f64,
    /// Deletes of rows that lie deeper.
    pub deletes: f64,
}

impl Density {
    fn plus(&self, other: &Density) -> Density {
        Density {
            rows: self.rows + other.rows,
            draws: self.draws + other.draws,
            deletes: self.deletes + other.deletes,
        }
    }

    /// Entries that are rows.
    pub fn puts(&self, keys: &Keys) -> f64 {
        // Of the keys drawn some are among the rows.
        let there = (self.rows / keys.count()).min(1.0);
        self.rows + keys.met(self.draws) * (1.0 - there)
    }

    /// All entries.
    pub fn entries(&self, keys: &Keys) -> f64 {
        self.puts(keys) + self.deletes
    }

    /// What remains where nothing lies deeper: deletes have met what they delete.
    pub fn at_the_bottom(&self, keys: &Keys) -> Density {
        let puts = self.puts(keys);
        if self.deletes > 0.0 || self.rows >= 0.999 * keys.count() {
            Density { rows: (puts - self.deletes).max(0.0), ..Density::default() }
        } else {
            *self
        }
    }
}

/// One stretch: from `start` up to (not including) `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// How densely it is covered.
    pub density: Density,
}

/// The share of the key space between two places.
pub fn share(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / 2f64.powi(64)
}

/// So many stretches of different density are told apart in one table.
const PIECES_MAX: usize = 4;

/// What a table holds: stretches in order, which may leave gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The stretches.
    pub pieces: Vec<Piece>,
    /// A range delete of all older rows before this place; 0 for none.
    pub dropped_to: u64,
}

impl Content {
    /// One stretch.
    pub fn even(start: u64, end: u64, density: Density) -> Content {
        Content { pieces: vec![Piece { start, end, density }], dropped_to: 0 }
    }

    /// The sum of something over all stretches.
    fn sum(&self, of: impl Fn(&Density) -> f64) -> f64 {
        self.pieces.iter().map(|piece| of(&piece.density) * share(piece.start, piece.end)).sum()
    }

    /// Entries that are rows.
    pub fn puts(&self, keys: &Keys) -> f64 {
        self.sum(|density| density.puts(keys))
    }

    /// Deletes of single rows.
    pub fn deletes(&self) -> f64 {
        self.sum(|density| density.deletes)
    }

    /// The first place, and the end, of stretches and range deletes.
    pub fn bounds(&self) -> (u64, u64) {
        let first = self.pieces.first().map_or(u64::MAX, |piece| piece.start);
        let end = self.pieces.last().map_or(0, |piece| piece.end);
        if self.dropped_to > 0 { (0, end.max(self.dropped_to)) } else { (first, end) }
    }

    /// Adds a stretch behind the others; like neighbours become one.
    fn push(&mut self, piece: Piece) {
        if piece.start >= piece.end {
            return;
        }
        match self.pieces.last_mut() {
            Some(last) if last.end == piece.start && last.density == piece.density => {
                last.end = piece.end;
            }
            _ => self.pieces.push(piece),
        }
        while self.pieces.len() > PIECES_MAX {
            self.join_the_most_alike();
        }
    }

    fn join_the_most_alike(&mut self) {
        let difference = |pair: &[Piece]| {
            let all = |piece: &Piece| {
                let of = &piece.density;
                (of.rows + of.draws + of.deletes, share(piece.start, piece.end))
            };
            let ((one, wide), (other, narrow)) = (all(&pair[0]), all(&pair[1]));
            (one - other).abs() * wide.min(narrow)
        };
        let pairs = self.pieces.windows(2).map(difference).enumerate();
        let Some((at, _)) = pairs.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let (one, other) = (self.pieces[at], self.pieces.remove(at + 1));
        let (wide, narrow) = (share(one.start, one.end), share(other.start, other.end));
        let all = share(one.start, other.end).max(f64::MIN_POSITIVE);
        let mean = |a: f64, b: f64| (a * wide + b * narrow) / all;
        self.pieces[at] = Piece {
            start: one.start,
            end: other.end,
            density: Density {
                rows: mean(one.density.rows, other.density.rows),
                draws: mean(one.density.draws, other.density.draws),
                deletes: mean(one.density.deletes, other.density.deletes),
            },
        };
    }
}

/// The stretches of several tables merged, in order, without gaps being filled: each with the sum
/// of what covers it. What a range delete of any of them covers is gone.
pub fn merged(inputs: &[&Content]) -> Vec<Piece> {
    let dropped_to = inputs.iter().map(|content| content.dropped_to).max().unwrap_or(0);
    let mut pieces: Vec<&Piece> = inputs.iter().flat_map(|content| &content.pieces).collect();
    pieces.sort_by_key(|piece| piece.start);
    let mut cuts: Vec<u64> = pieces.iter().flat_map(|piece| [piece.start, piece.end]).collect();
    cuts.push(dropped_to);
    cuts.sort_unstable();
    cuts.dedup();
    let mut merged: Vec<Piece> = Vec::new();
    let (mut next, mut open): (usize, Vec<&Piece>) = (0, Vec::new());
    for pair in cuts.windows(2) {
        open.retain(|piece| piece.end > pair[0]);
        while next < pieces.len() && pieces[next].start <= pair[0] {
            open.push(pieces[next]);
            next += 1;
        }
        if open.is_empty() || pair[0] < dropped_to {
            continue;
        }
        let sum = open.iter().fold(Density::default(), |sum, piece| sum.plus(&piece.density));
        merged.push(Piece { start: pair[0], end: pair[1], density: sum });
    }
    merged
}

/// Takes stretches in order and cuts them into tables.
#[derive(Debug, Default)]
pub struct Cutter {
    /// The tables that are complete.
    pub tables: Vec<Content>,
    open: Content,
}

impl Cutter {
    /// Adds a stretch to the present table.
    pub fn add(&mut self, piece: Piece) {
        self.open.push(piece);
    }

    /// Ends the present table.
    pub fn cut(&mut self) {
        let table = std::mem::take(&mut self.open);
        if !table.pieces.is_empty() {
            self.tables.push(table);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Skew;

    fn density(rows: f64, draws: f64, deletes: f64) -> Density {
        Density { rows, draws, deletes }
    }

    #[test]
    fn tables_that_overlap_add_up_and_deletes_take_rows_away_at_the_bottom() {
        let keys = Keys::new(1000.0, Skew::Uniform);
        let lower = Content::even(0, u64::MAX, density(1000.0, 0.0, 0.0));
        let upper = Content::even(1 << 63, u64::MAX, density(0.0, 100.0, 200.0));
        let merged = merged(&[&upper, &lower]);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0].density, density(1000.0, 0.0, 0.0));
        // All keys are there: what is drawn replaces.
        assert_eq!(merged[1].density.puts(&keys), 1000.0);
        assert_eq!(merged[1].density.at_the_bottom(&keys), density(800.0, 0.0, 0.0));
    }

    #[test]
    fn what_a_range_delete_covers_is_gone() {
        let lower = Content::even(0, 1 << 40, density(10.0, 0.0, 0.0));
        let mut upper = Content::even(1 << 40, 1 << 41, density(5.0, 0.0, 0.0));
        upper.dropped_to = 1 << 39;
        let merged = merged(&[&upper, &lower]);
        assert_eq!(merged.first().map(|piece| piece.start), Some(1 << 39));
        assert_eq!(merged.last().map(|piece| piece.end), Some(1 << 41));
    }

    #[test]
    fn a_table_keeps_what_it_holds_when_stretches_are_joined() {
        let mut cutter = Cutter::default();
        for at in 0..40u64 {
            let rows = density(f64::from(at as u32 % 7), 0.0, 0.0);
            cutter.add(Piece { start: at << 50, end: (at + 1) << 50, density: rows });
        }
        cutter.cut();
        let keys = Keys::new(1.0, Skew::Uniform);
        let held = cutter.tables[0].puts(&keys);
        let given: f64 = (0..40).map(|at| f64::from(at % 7) * share(0, 1 << 50)).sum();
        assert!(cutter.tables[0].pieces.len() <= PIECES_MAX && (held / given - 1.0).abs() < 1e-9);
    }
}
