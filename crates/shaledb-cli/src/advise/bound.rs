//! How far a prediction may be off, by how much the stretches of a sample differ.

/// The two-sided 95 % quantile of Student's t.
fn student(degrees: usize) -> f64 {
    const FEW: [f64; 10] = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match degrees {
        0 => f64::INFINITY,
        1..=10 => FEW[degrees - 1],
        // Within a hundredth of the quantile from here on.
        _ => 1.96 + 2.4 / degrees as f64 + 3.0 / (degrees * degrees) as f64,
    }
}

/// Half of the 95 % interval of the mean of `ratios`, as a part of the mean, if `share` of the
/// whole was seen.
pub(super) fn relative(ratios: &[f64], share: f64) -> f64 {
    let count = ratios.len();
    let mean = ratios.iter().sum::<f64>() / count.max(1) as f64;
    if share >= 1.0 {
        return 0.0;
    }
    if count < 2 || mean <= 0.0 {
        return 1.0;
    }
    let square = |ratio: &f64| (ratio - mean).powi(2);
    let deviation = (ratios.iter().map(square).sum::<f64>() / (count - 1) as f64).sqrt();
    let error = deviation / (count as f64).sqrt() * (1.0 - share).sqrt();
    student(count - 1) * error / mean
}

/// The means of both halves of `ratios`, if they differ by more than chance and by a tenth.
pub(super) fn halves(ratios: &[f64]) -> Option<(f64, f64)> {
    let (first, second) = ratios.split_at(ratios.len() / 2);
    if first.len() < 4 {
        return None;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (one, other) = (mean(first), mean(second));
    let variance = |part: &[f64], mean: f64| {
        let squares: f64 = part.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        squares / (part.len() - 1) as f64 / part.len() as f64
    };
    let error = (variance(first, one) + variance(second, other)).sqrt();
    let difference = (one - other).abs();
    (difference > 3.0 * error && difference > 0.1 * one.min(other)).then_some((one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_more_is_known_less() {
        let even = relative(&[0.5, 0.51, 0.49, 0.5], 0.01);
        let uneven = relative(&[0.1, 0.9, 0.5, 0.5], 0.01);
        assert!(even > 0.0 && uneven > 10.0 * even, "{even} {uneven}");
        assert_eq!(relative(&[0.1, 0.9], 1.0), 0.0, "all was seen");
        assert!(relative(&[0.5], 0.1) >= 1.0, "one tells nothing of others");
        assert!((student(30) - 2.042).abs() < 0.01 && (student(1000) - 1.962).abs() < 0.01);
    }

    #[test]
    fn halves_that_differ_are_seen() {
        assert_eq!(halves(&[0.2, 0.2, 0.2, 0.2, 0.6, 0.6, 0.6, 0.6]), Some((0.2, 0.6)));
        assert_eq!(halves(&[0.2, 0.6, 0.2, 0.6, 0.6, 0.2, 0.6, 0.2]), None);
    }
}
