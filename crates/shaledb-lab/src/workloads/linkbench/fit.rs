//! Tests of goodness of fit, for tests with fixed seeds.

/// Whether counts of draws fit the probabilities of their bins: Pearson's chi-square statistic is
/// within four deviations of its mean. Bins with an expected count under 10 are put together.
pub(super) fn fits(counts: &[u64], probabilities: &[f64]) -> Result<(), String> {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    let whole: f64 = probabilities.iter().sum();
    assert!((whole - 1.0).abs() < 1e-6, "the probabilities sum to {whole}");
    let (mut chi, mut bins) = (0.0, 0.0);
    let (mut seen, mut expected) = (0.0, 0.0);
    let mut add = |seen: f64, expected: f64| {
        chi += (seen - expected) * (seen - expected) / expected;
        bins += 1.0;
    };
    for (&count, probability) in counts.iter().zip(probabilities) {
        seen += count as f64;
        expected += probability * total as f64;
        if expected >= 10.0 {
            add(seen, expected);
            (seen, expected) = (0.0, 0.0);
        }
    }
    if expected >= 1.0 {
        add(seen, expected);
    }
    let freedom: f64 = bins - 1.0;
    assert!(freedom >= 1.0, "one bin proves nothing");
    let bound = freedom + 4.0 * (2.0 * freedom).sqrt();
    let text = format!("chi-square {chi:.1} with {freedom} degrees of freedom, bound {bound:.1}");
    if chi <= bound { Ok(()) } else { Err(text) }
}

/// Whether draws of whole numbers fit a cumulative distribution function: Kolmogorov and
/// Smirnov's statistic is under its bound for one wrong alarm in a thousand (which is more strict
/// for continuous numbers than for whole ones).
pub(super) fn fits_cdf(mut draws: Vec<u64>, cdf: impl Fn(u64) -> f64) -> Result<(), String> {
    draws.sort_unstable();
    let total = draws.len() as f64;
    let mut distance: f64 = 0.0;
    for (at, &draw) in draws.iter().enumerate() {
        if draws.get(at + 1) != Some(&draw) {
            distance = distance.max(((at + 1) as f64 / total - cdf(draw)).abs());
        }
    }
    let bound = 1.95 / total.sqrt();
    let text = format!("Kolmogorov-Smirnov {distance:.5}, bound {bound:.5}");
    if distance <= bound { Ok(()) } else { Err(text) }
}

/// The cumulative normal distribution, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
pub(super) fn normal_cdf(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let sum = series.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    let erf = 1.0 - sum * (-z * z).exp();
    0.5 * (1.0 + if x < 0.0 { -erf } else { erf })
}

#[test]
fn a_wrong_distribution_does_not_fit() {
    let counts = [1030, 970, 1000, 1000];
    fits(&counts, &[0.25; 4]).unwrap();
    fits(&counts, &[0.28, 0.22, 0.25, 0.25]).unwrap_err();
    let even: Vec<u64> = (0..10_000).map(|at| at % 100).collect();
    fits_cdf(even.clone(), |x| (x + 1) as f64 / 100.0).unwrap();
    fits_cdf(even, |x| (x + 1) as f64 / 104.0).unwrap_err();
    for (x, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (-2.0, 0.022_750_1)] {
        assert!((normal_cdf(x) - share).abs() < 1e-6);
    }
}
