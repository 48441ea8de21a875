//! Which keys writes go to: how many different ones so many writes meet.
//!
//! Keys are drawn independently, each with a probability that does not change. Then a run of tables
//! that was made of `n` writes has `D(n) = sum of 1 - (1 - p)^n` different keys, which is close to
//! `sum of 1 - e^(-np)`. What two runs have together is `D(n1 + n2)`: so it is enough to know of a
//! table how many writes it was made of.

use serde::Serialize;

/// How writes spread over the keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// Each key as often as any other.
    Uniform,
    /// The key of rank `r` in proportion to `r^-exponent`; the exponent is from 0 to 2. Hot keys
    /// lie anywhere among the others.
    Zipf(f64),
}

/// The largest exponent.
pub const ZIPF_MAX: f64 = 2.0;

/// Ranks are taken together in so many groups; within one all keys count as equally hot.
const GROUPS: usize = 160;
/// How many points of the curve are kept, and up to how many writes for each key.
const POINTS: usize = 300;
const WRITES_MAX: f64 = 1e4;

/// All keys that updates may go to.
#[derive(Clone, Debug)]
pub struct Keys {
    count: f64,
    skew: Skew,
    /// For a skewed load: different keys met by writes, at equal steps of the logarithm of writes.
    curve: Vec<f64>,
    step: f64,
}

impl Keys {
    /// So many keys, at least 1.
    pub fn new(count: f64, skew: Skew) -> Keys {
        let count = count.max(1.0);
        let mut keys = Keys { count, skew, curve: Vec::new(), step: 0.0 };
        if let Skew::Zipf(exponent) = skew {
            let groups = groups(count, exponent);
            let reach = (count * WRITES_MAX).ln_1p();
            keys.step = reach / (POINTS - 1) as f64;
            let met = |at: usize| {
                let writes = (at as f64 * keys.step).exp_m1();
                groups.iter().map(|(keys, each)| keys * -(-writes * each).exp_m1()).sum()
            };
            keys.curve = (0..POINTS).map(met).collect();
        }
        keys
    }

    /// How many there are.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// How many different keys so many writes meet.
    pub fn met(&self, writes: f64) -> f64 {
        match self.skew {
            Skew::Uniform => self.count * -(-writes / self.count).exp_m1(),
            Skew::Zipf(_) => {
                let at = writes.max(0.0).ln_1p() / self.step;
                let below = at.floor() as usize;
                match (self.curve.get(below), self.curve.get(below + 1)) {
                    (Some(low), Some(high)) => low + (high - low) * at.fract(),
                    _ => self.curve.last().copied().unwrap_or(self.count),
                }
            }
        }
    }

    /// How many writes meet so many different keys: the inverse of [`Keys::met`].
    pub fn writes_for(&self, met: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.count * WRITES_MAX);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if self.met(middle) < met { low = middle } else { high = middle }
        }
        low
    }

    /// Which share of all accesses goes to the hottest keys, of which `share` of all are.
    pub fn heat(&self, share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        match self.skew {
            Skew::Uniform => share,
            Skew::Zipf(exponent) => {
                harmonic(share * self.count, exponent) / harmonic(self.count, exponent)
            }
        }
        .clamp(0.0, 1.0)
    }
}

/// The sum of `r^-exponent` for the ranks up to `ranks`, which need not be a whole number.
fn harmonic(ranks: f64, exponent: f64) -> f64 {
    const EXACT: f64 = 64.0;
    let first =
        (1..=ranks.min(EXACT) as u64).map(|rank| (rank as f64).powf(-exponent)).sum::<f64>();
    if ranks <= EXACT {
        return first;
    }
    // Euler and Maclaurin: the integral between the middles of the ranks.
    let (from, to) = (EXACT + 0.5, ranks + 0.5);
    let rest = if (exponent - 1.0).abs() < 1e-9 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - exponent) - from.powf(1.0 - exponent)) / (1.0 - exponent)
    };
    first + rest
}

/// Keys in groups of about one rank: how many, and the probability of each.
fn groups(count: f64, exponent: f64) -> Vec<(f64, f64)> {
    let all = harmonic(count, exponent);
    let mut groups = Vec::with_capacity(GROUPS);
    let mut from = 0.0;
    for group in 1..=GROUPS {
        let to = count.powf(group as f64 / GROUPS as f64).floor().min(count);
        let to = if group == GROUPS { count } else { to };
        if to - from < 1.0 && (to < count || to <= from) {
            continue;
        }
        let share = (harmonic(to, exponent) - harmonic(from, exponent)) / all;
        groups.push((to - from, share / (to - from)));
        from = to;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_writes_meet_what_the_formula_says() {
        let keys = Keys::new(1e6, Skew::Uniform);
        assert!((keys.met(1e6) / 1e6 - 0.632).abs() < 0.001);
        assert!((keys.writes_for(keys.met(3e5)) / 3e5 - 1.0).abs() < 1e-6);
        assert!(keys.met(1e12) <= 1e6 && keys.heat(0.25) == 0.25);
    }

    /// Drawn one by one, with the exact probabilities.
    #[test]
    fn skewed_writes_meet_what_drawing_them_one_by_one_does() {
        for exponent in [0.5, 0.9, 1.0, 1.2] {
            let count = 20_000usize;
            let mut sum = 0.0;
            let sums: Vec<f64> = (1..=count)
                .map(|rank| {
                    sum += (rank as f64).powf(-exponent);
                    sum
                })
                .collect();
            let mut random = 88_172_645_463_325_252u64;
            let mut seen = vec![false; count];
            let mut met = 0;
            let keys = Keys::new(count as f64, Skew::Zipf(exponent));
            for write in 1..=200_000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let drawn = random as f64 / u64::MAX as f64 * sum;
                let rank = sums.partition_point(|&to| to < drawn).min(count - 1);
                met += usize::from(!std::mem::replace(&mut seen[rank], true));
                if [1_000, 20_000, 200_000].contains(&write) {
                    let told = keys.met(f64::from(write));
                    let off = told / met as f64 - 1.0;
                    assert!(off.abs() < 0.03, "{exponent}, {write}: {met}, {told}");
                }
            }
        }
    }

    #[test]
    fn the_hottest_keys_have_most_of_the_accesses() {
        let keys = Keys::new(1e6, Skew::Zipf(0.99));
        assert!((0.6..0.8).contains(&keys.heat(0.02)), "{}", keys.heat(0.02));
        assert!(keys.heat(1.0) > 0.999 && keys.heat(0.0) == 0.0);
    }
}
