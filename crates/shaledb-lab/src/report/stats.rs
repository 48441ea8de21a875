//! The tests behind "regressed" and "improved".
//!
//! Written out here, though there are crates for statistics: repeats of a benchmark have ties
//! (sizes, counts) and are few, so that the rank test has to be exact with ties, which those at
//! hand are not.

use crate::generate::Random;

/// Up to so many values in all, the rank test counts every arrangement; beyond, it samples.
const EXACT: usize = 64;

/// Arrangements that are sampled beyond [`EXACT`].
const SAMPLED: usize = 99_999;

/// Series that the bootstrap makes.
const RESAMPLED: usize = 4999;

/// The Mann-Whitney U test, two-sided: how likely ranks as unequal as these are, or more so, if
/// both samples come from one distribution. Exact with ties (the permutation distribution of the
/// midranks). 1 if a sample is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let (n, m) = (a.len(), b.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let doubled = doubled_midranks(a, b);
    let observed: usize = doubled[..n].iter().sum();
    let expected = n * (n + m + 1);
    let far = observed.abs_diff(expected);
    if n + m > EXACT {
        return sampled(&doubled, n, expected, far);
    }
    // ways[k][s]: how many choices of k of the ranks have the (doubled) sum s.
    let all: usize = doubled.iter().sum();
    let mut ways = vec![vec![0.0f64; all + 1]; n + 1];
    ways[0][0] = 1.0;
    for &rank in &doubled {
        for k in (1..=n).rev() {
            for sum in (rank..=all).rev() {
                ways[k][sum] += ways[k - 1][sum - rank];
            }
        }
    }
    let total: f64 = ways[n].iter().sum();
    let unequal: f64 = ways[n]
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(expected) >= far)
        .map(|(_, ways)| ways)
        .sum();
    (unequal / total).min(1.0)
}

/// Twice the rank of each value of `a` and then `b` among all; equal values share the mean.
fn doubled_midranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| *other < value).count();
        let equal = all.iter().filter(|other| *other == value).count();
        2 * below + equal + 1
    };
    all.iter().map(rank).collect()
}

fn sampled(doubled: &[usize], n: usize, expected: usize, far: usize) -> f64 {
    let mut random = Random::named(1, "mann_whitney", 0);
    let mut ranks = doubled.to_vec();
    let mut unequal = 1;
    for _ in 0..SAMPLED {
        for at in 0..n {
            let other = at + random.below((ranks.len() - at) as u64) as usize;
            ranks.swap(at, other);
        }
        let sum: usize = ranks[..n].iter().sum();
        unequal += usize::from(sum.abs_diff(expected) >= far);
    }
    unequal as f64 / (SAMPLED + 1) as f64
}

/// The least p that the rank test can give with so many values on either side and no ties.
pub fn least_p(n: usize, m: usize) -> f64 {
    let choices = (1..=n).fold(1.0, |product, k| product * (m + k) as f64 / k as f64);
    (2.0 / choices).min(1.0)
}

/// Welch's t test of the logarithms, two-sided: how likely means as far apart as these are if both
/// samples have the same one. It sees what few repeats cannot show by their ranks, and in turn
/// takes the logarithms to be normally distributed. Less than a thousandth of the highest value, as
/// zero, counts as a thousandth of it. `None` if a sample has less than two values, or none of both
/// is above zero.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    // No figure of a benchmark is known better than to a thousandth.
    const LEAST_VARIANCE: f64 = 1e-6;
    let highest = a.iter().chain(b).copied().fold(0.0, f64::max);
    if a.len().min(b.len()) < 2 || highest <= 0.0 {
        return None;
    }
    let least = highest / 1000.0;
    let of = |values: &[f64]| {
        let (logs, n): (Vec<f64>, _) =
            (values.iter().map(|value| value.max(least).ln()).collect(), values.len() as f64);
        let mean = logs.iter().sum::<f64>() / n;
        let squares = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        (mean, (squares / (n - 1.0)).max(LEAST_VARIANCE) / n, n)
    };
    let ((mean_a, error_a, n), (mean_b, error_b, m)) = (of(a), of(b));
    let error = error_a + error_b;
    let freedom = error.powi(2) / (error_a.powi(2) / (n - 1.0) + error_b.powi(2) / (m - 1.0));
    Some(student((mean_b - mean_a) / error.sqrt(), freedom))
}

/// How likely a value at least as far from zero as `t` is in Student's distribution.
fn student(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularized incomplete beta function, by its continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let far = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / far(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..500 {
        let k = f64::from(step);
        let even = k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k));
        let odd = -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / far(1.0 + term * d);
            c = far(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front.exp() * fraction / a).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function above zero: Stirling's series, after small arguments were
/// raised.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut less) = (x, 0.0);
    while x < 15.0 {
        less += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - less
}

/// The probability that a value of `b` is higher than one of `a`, ties counting half: 0.5 is no
/// difference.
pub fn superiority(a: &[f64], b: &[f64]) -> f64 {
    let wins: f64 = a
        .iter()
        .flat_map(|a| {
            b.iter().map(move |b| f64::from(u8::from(b > a)) + 0.5 * f64::from(u8::from(b == a)))
        })
        .sum();
    wins / (a.len() * b.len()).max(1) as f64
}

/// A series of ratios: in each interval, an amount for some weight (operations per second:
/// operations and seconds; CPU per operation: CPU seconds and operations).
pub type Ratios = Vec<(f64, f64)>;

/// What the bootstrap found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrapped {
    /// The ratio of `b` to that of `a`.
    pub ratio: f64,
    /// How likely a ratio as far from 1 is if both series have the same one.
    pub p: f64,
    /// 95 % of the resampled ratios are between these.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// Compares the ratios of two sides by a circular block bootstrap: each side is one or more series
/// (repeats); blocks of consecutive intervals are drawn, as long as neighbours are alike, so that
/// what hangs together in time stays together. `None` if a side has no amount or no weight.
pub fn block_bootstrap(a: &[Ratios], b: &[Ratios]) -> Option<Bootstrapped> {
    let observed = log_ratio(&sum(b))? - log_ratio(&sum(a))?;
    let (block_a, block_b) = (block_length(a), block_length(b));
    let wider = too_close(a, block_a, b, block_b);
    let mut random = Random::named(1, "block_bootstrap", 0);
    let mut found = Vec::with_capacity(RESAMPLED);
    for _ in 0..RESAMPLED {
        let (a, b) = (resample(a, block_a, &mut random), resample(b, block_b, &mut random));
        // A resample without any amount is as far away as can be.
        found.push(match (log_ratio(&a), log_ratio(&b)) {
            (Some(a), Some(b)) => observed + wider * (b - a - observed),
            (Some(_), None) => f64::NEG_INFINITY,
            _ => f64::INFINITY,
        });
    }
    let far = |log: &&f64| (**log - observed).abs() >= observed.abs();
    let unequal = found.iter().filter(far).count();
    found.sort_by(f64::total_cmp);
    let at = |share: f64| found[((RESAMPLED - 1) as f64 * share) as usize].exp();
    Some(Bootstrapped {
        ratio: observed.exp(),
        p: (1 + unequal) as f64 / (1 + RESAMPLED) as f64,
        low: at(0.025),
        high: at(0.975),
    })
}

fn sum(series: &[Ratios]) -> (f64, f64) {
    let add = |sum: (f64, f64), one: &(f64, f64)| (sum.0 + one.0, sum.1 + one.1);
    series.iter().flatten().fold((0.0, 0.0), add)
}

fn log_ratio((amount, weight): &(f64, f64)) -> Option<f64> {
    (*amount > 0.0 && *weight > 0.0).then(|| (amount / weight).ln())
}

fn resample(series: &[Ratios], block: usize, random: &mut Random) -> (f64, f64) {
    let mut drawn = (0.0, 0.0);
    for one in series.iter().filter(|one| !one.is_empty()) {
        let mut left = one.len();
        while left > 0 {
            let start = random.below(one.len() as u64) as usize;
            for at in 0..block.min(left) {
                let (amount, weight) = one[(start + at) % one.len()];
                drawn.0 += amount;
                drawn.1 += weight;
            }
            left -= block.min(left);
        }
    }
    drawn
}

/// How many intervals a block has: three times the first lag at which intervals are no more alike
/// than chance makes them (blocks of that lag alone cut too much in two: then 15 of 100 equal
/// series with a correlation of 0.7 were called different at 5 %, now 8); at least the cube root of
/// their number, at most a quarter of the shortest series; of several series the longest.
fn block_length(series: &[Ratios]) -> usize {
    let one = |ratios: &Ratios| {
        let values: Vec<f64> =
            ratios.iter().map(|(amount, weight)| amount / weight.max(1e-12)).collect();
        let count = values.len();
        let least = (count as f64).cbrt().ceil() as usize;
        let most = (count / 4).max(1);
        let mean = values.iter().sum::<f64>() / count.max(1) as f64;
        let at_lag = |lag: usize| {
            let pairs = values.iter().zip(&values[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
        };
        let variance = if count == 0 { 0.0 } else { at_lag(0) };
        let chance = 1.96 / (count.max(1) as f64).sqrt();
        let apart = (1..=most)
            .find(|&lag| lag >= count || at_lag(lag) < chance * variance || variance <= 0.0);
        match apart.unwrap_or(most) {
            1 => least,
            lag => least.max(3 * lag),
        }
    };
    let shortest = series.iter().map(Vec::len).filter(|&count| count > 0).min().unwrap_or(0);
    series.iter().map(one).max().unwrap_or(1).min((shortest / 4).max(1))
}

/// By how much resampled means lie too close together: few blocks vary less among themselves than
/// what they were drawn from, and how much that varies is not known well either.
fn too_close(a: &[Ratios], block_a: usize, b: &[Ratios], block_b: usize) -> f64 {
    let blocks = |series: &[Ratios], block: usize| {
        series.iter().map(Vec::len).sum::<usize>() as f64 / block as f64
    };
    let (a, b) = (blocks(a, block_a).max(2.0), blocks(b, block_b).max(2.0));
    let freedom = (a + b - 2.0).max(3.0);
    let among = (a / (a - 1.0) + b / (b - 1.0)) / 2.0;
    (among * freedom / (freedom - 2.0)).sqrt()
}

/// p of several tests, corrected so that of those called different at most a share of `p` is so by
/// chance (Benjamini and Hochberg).
pub fn corrected(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&a, &b| ps[b].total_cmp(&ps[a]));
    let mut corrected = vec![1.0; ps.len()];
    let mut least: f64 = 1.0;
    for (at, &index) in order.iter().enumerate() {
        let rank = ps.len() - at;
        least = least.min(ps[index] * ps.len() as f64 / rank as f64);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn mann_whitney_has_the_values_of_the_tables() {
        // Two-sided exact p: 2/C(8,4), 2/C(10,5), and U = 17 of 5 x 4 (14/126).
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        near(mann_whitney(&low, &high), 2.0 / 70.0);
        near(mann_whitney(&high, &low), 2.0 / 70.0);
        near(mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]), 2.0 / 252.0);
        let (male, female) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        near(mann_whitney(&male, &female), 14.0 / 126.0);
        near(mann_whitney(&female, &male), 14.0 / 126.0);
        near(mann_whitney(&[1.0], &[2.0]), 1.0);
        near(mann_whitney(&[], &[2.0]), 1.0);
        near(least_p(4, 4), 2.0 / 70.0);
        near(least_p(1, 1), 1.0);
        // Critical values of the published table at 5 % two-sided: U <= 2 for 5 x 5, U <= 8 for
        // 7 x 7; one more is not enough.
        let u = |n: usize, u: usize| {
            // The first sample is the lower one, but its highest values are put above u of the
            // other's.
            let mut a: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
            let mut b: Vec<f64> = (1..=n).map(|rank| (n + rank) as f64).collect();
            let mut left = u;
            for at in (0..n).rev() {
                let step = left.min(n);
                if step > 0 {
                    a[at] = (n + step) as f64 + 0.5;
                }
                left -= step;
            }
            b.iter_mut().for_each(|value| *value += 0.25);
            mann_whitney(&a, &b)
        };
        assert!(u(5, 2) <= 0.05 && u(5, 3) > 0.05, "{} {}", u(5, 2), u(5, 3));
        assert!(u(7, 8) <= 0.05 && u(7, 9) > 0.05, "{} {}", u(7, 8), u(7, 9));
    }

    #[test]
    fn ties_are_counted_exactly() {
        // 1 1 2 against 2 3 3: the midranks are 1.5 1.5 3.5 | 3.5 5.5 5.5. Of the 20 choices of
        // three, two have the sum 6.5 (one of the two twos) and, as the other tail, two have 14.5.
        near(mann_whitney(&[1.0, 1.0, 2.0], &[2.0, 3.0, 3.0]), 4.0 / 20.0);
        near(mann_whitney(&[7.0; 5], &[7.0; 5]), 1.0);
    }

    #[test]
    fn many_values_are_sampled() {
        let a: Vec<f64> = (0..40).map(|at| f64::from(at) + 0.1).collect();
        let b: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(mann_whitney(&a, &b) > 0.8);
        let b: Vec<f64> = (0..40).map(|at| f64::from(at) - 20.0).collect();
        assert!(mann_whitney(&a, &b) < 1e-4);
    }

    #[test]
    fn student_has_the_values_of_the_tables() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 2e-6, "{a} {b}");
        // 1 degree of freedom is Cauchy's distribution, 2 have a closed form.
        near(student(1.0, 1.0), 0.5);
        near(student(2.0, 2.0), 1.0 - 2.0 / 6f64.sqrt());
        near(student(0.0, 7.3), 1.0);
        // Critical values at 5 and 1 % two-sided, of the published table.
        for (t, freedom, p) in
            [(3.18245, 3.0, 0.05), (2.22814, 10.0, 0.05), (4.60409, 4.0, 0.01), (1.96, 1e9, 0.05)]
        {
            close(student(t, freedom), if freedom > 1e8 { 0.049_996 } else { p });
            close(student(-t, freedom), student(t, freedom));
        }
        near(ln_gamma(5.0), 24f64.ln());
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
    }

    #[test]
    fn welch_tells_few_repeats_apart() {
        let exp = |logs: [f64; 4]| logs.map(f64::exp);
        // Logarithms 1 to 4 and 3 to 6: t = 2 / sqrt(5/12 + 5/12), 6 degrees of freedom.
        let p = welch(&exp([1.0, 2.0, 3.0, 4.0]), &exp([3.0, 4.0, 5.0, 6.0])).unwrap();
        near(p, student(2.0 / (5.0f64 / 6.0).sqrt(), 6.0));
        // Ten times slower or faster is the same thing; order and scale do not matter.
        let (a, b) = ([100.0, 102.0, 98.0], [90.0, 91.0, 88.0]);
        near(welch(&a, &b).unwrap(), welch(&b, &a).unwrap());
        near(welch(&a, &b).unwrap(), welch(&a.map(|v| 7.0 * v), &b.map(|v| 7.0 * v)).unwrap());
        assert!(welch(&a, &b).unwrap() < 0.01 && welch(&a, &[97.0, 103.0, 99.0]).unwrap() > 0.5);
        // What does not vary at all is not known for certain.
        assert!(
            welch(&[5.0; 3], &[5.0; 3]) == Some(1.0) && welch(&[5.0; 3], &[6.0; 3]) > Some(0.0)
        );
        assert!(welch(&[1.0], &[1.0, 2.0]).is_none() && welch(&[0.0; 2], &[0.0; 2]).is_none());
        assert!(welch(&[0.0; 3], &[5.0, 5.1, 5.2]).unwrap() < 0.01);
        assert!(welch(&[0.0; 3], &[0.0, 5.1, 0.0]).unwrap() > 0.3);
    }

    #[test]
    fn effect_sizes() {
        near(superiority(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        near(superiority(&[1.0, 2.0], &[1.0, 2.0]), 0.5);
        near(superiority(&[3.0], &[1.0]), 0.0);
    }

    #[test]
    fn corrected_as_published() {
        // The example of Benjamini and Hochberg (1995): 15 tests, four are called at 5 %.
        let ps = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let corrected = corrected(&ps);
        assert_eq!(corrected.iter().filter(|&&p| p <= 0.05).count(), 4);
        near(corrected[0], 0.0015);
        near(corrected[3], 0.0095 * 15.0 / 4.0);
        near(corrected[14], 1.0);
        // The order of the tests does not matter.
        let reversed: Vec<f64> = ps.iter().rev().copied().collect();
        near(super::corrected(&reversed)[14], 0.0015);
        assert!(super::corrected(&[]).is_empty());
    }

    /// Rates of seconds: a mean, with noise of 5 % of which a part stays for the next second.
    fn noise(seed: u64, mean: f64, count: usize, stays: f64) -> Ratios {
        let mut random = Random::new(seed);
        let mut at = 0.0;
        (0..count)
            .map(|_| {
                let fresh = (random.below(2001) as f64 - 1000.0) / 1000.0;
                at = stays * at + (1.0 - stays) * fresh;
                (mean * (1.0 + 0.1 * at), 1.0)
            })
            .collect()
    }

    #[test]
    fn the_bootstrap_sees_a_difference_and_its_size() {
        let (a, b) = ([noise(1, 1000.0, 100, 0.0)], [noise(2, 900.0, 100, 0.0)]);
        let found = block_bootstrap(&a, &b).unwrap();
        assert!(found.p < 0.001 && (0.88..0.92).contains(&found.ratio), "{found:?}");
        assert!(found.low < found.ratio && found.ratio < found.high && found.high < 1.0);
        assert_eq!(found, block_bootstrap(&a, &b).unwrap());
        assert_eq!(block_bootstrap(&[vec![(0.0, 1.0)]], &b), None);
        assert_eq!(block_bootstrap(&[], &b), None);
    }

    #[test]
    fn the_bootstrap_is_seldom_wrong_where_there_is_no_difference() {
        // 100 pairs of equal series, whose seconds hang together: of tests at 5 % about 5 are
        // wrong; more than 15 would mean that the blocks are too short. (Single seconds drawn apart
        // are wrong more than 30 times.)
        let wrong = (0..100)
            .filter(|&pair| {
                let a = [noise(1000 + pair, 1000.0, 120, 0.7)];
                let b = [noise(2000 + pair, 1000.0, 120, 0.7)];
                block_bootstrap(&a, &b).unwrap().p < 0.05
            })
            .count();
        assert!(wrong <= 15, "{wrong}");
    }

    #[test]
    fn blocks_are_as_long_as_neighbours_are_alike() {
        let alone = block_length(&[noise(1, 1000.0, 200, 0.0)]);
        let alike = block_length(&[noise(1, 1000.0, 200, 0.9)]);
        assert!(alone <= 8 && alike > 3 * alone && alike <= 50, "{alone} {alike}");
        // Of a short series beside it no block may be most of it.
        assert_eq!(block_length(&[noise(1, 1000.0, 200, 0.9), noise(2, 1000.0, 40, 0.0)]), 10);
        assert_eq!(block_length(&[vec![(1.0, 1.0); 8]]), 2);
        assert_eq!(block_length(&[]), 1);
    }
}
