//! What a figure of an engine will be at full size, by what it was at three smaller ones.

use serde::Serialize;

/// A figure at full size.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Fitted {
    pub(super) value: f64,
    /// How far off it may be either way, as a part of the value.
    pub(super) bound: f64,
}

/// Carries a figure that grows with rows on to `rows`. `points` are rows and figure at three sizes,
/// growing. What does not grow with rows (files that are made in advance, the server's own tables)
/// counts once: only the slope is carried on. Where both slopes that the points have differ, the
/// figure bends, and may go on bending at each doubling.
pub(super) fn carry_on(points: [(f64, f64); 3], rows: f64, is_bending: bool) -> Fitted {
    let [few, some, many] = points;
    let slope = |one: (f64, f64), other: (f64, f64)| {
        if other.0 > one.0 { (other.1 - one.1) / (other.0 - one.0) } else { 0.0 }
    };
    let (first, last) = (slope(few, some).max(0.0), slope(some, many).max(0.0));
    let all = slope(few, many).max(0.0);
    // The last slope is the nearest one, and that over all points the one with the least noise.
    let taken = if is_bending { last } else { all };
    let more = (rows - many.0).max(0.0);
    let value = many.1 + taken * more;
    let doublings = (rows / many.0.max(1.0)).max(1.0).log2();
    let bend = (last - first).abs() / 2.0 * doublings.max(1.0);
    let bound = if value > 0.0 { bend * more / value } else { 0.0 };
    Fitted { value, bound: bound.min(1.0) }
}

impl Fitted {
    /// With one more part of the bound; parts add as squares.
    pub(super) fn and(self, part: f64) -> Fitted {
        Fitted { bound: self.bound.hypot(part).min(1.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_grow_counts_once() {
        let line = carry_on([(10.0, 120.0), (20.0, 140.0), (40.0, 180.0)], 1000.0, false);
        assert!((line.value - 2100.0).abs() < 1e-9 && line.bound < 1e-9, "{line:?}");
    }

    #[test]
    fn what_bends_is_known_less_the_farther_it_goes() {
        let points = [(10.0, 10.0), (20.0, 20.0), (40.0, 36.0)];
        let near = carry_on(points, 80.0, true);
        let far = carry_on(points, 10_000.0, true);
        assert!((near.value - 68.0).abs() < 1e-9 && near.bound > 0.05, "{near:?}");
        assert!(far.bound > 3.0 * near.bound && far.bound <= 1.0, "{far:?}");
        let all = carry_on(points, 80.0, false);
        assert!(all.value > near.value, "all points together rise faster");
    }

    #[test]
    fn all_of_the_source_is_measured_and_not_foreseen() {
        let whole = carry_on([(10.0, 9.0), (20.0, 21.0), (40.0, 39.0)], 40.0, true);
        assert_eq!((whole.value, whole.bound), (39.0, 0.0));
        assert!((whole.and(0.3).and(0.4).bound - 0.5).abs() < 1e-9);
    }

    #[test]
    fn noise_makes_no_figure_fall() {
        let fall = carry_on([(10.0, 30.0), (20.0, 25.0), (40.0, 24.0)], 400.0, true);
        assert!(fall.value >= 24.0, "{fall:?}");
    }
}
