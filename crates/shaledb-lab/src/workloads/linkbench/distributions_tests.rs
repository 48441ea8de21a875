//! Draws fit their formulas, at fixed seeds.

use super::super::fit::{fits, fits_cdf, normal_cdf};
use super::*;

fn weights(count: u64, shape: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-shape)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn zipf_counts(count: u64, shape: f64, draws: u32) -> Vec<u64> {
    let zipf = Zipf::new(count, shape);
    let mut random = Random::named(1, "zipf", count);
    let mut counts = vec![0; count as usize];
    (0..draws).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
    counts
}

#[test]
fn zipf_numbers_have_their_weights() {
    for count in [1, 2, 3, 10, 1000] {
        for shape in [0.0, 0.606, 0.625, 0.741, 0.8, 1.0, 1.25] {
            let counts = zipf_counts(count, shape, 400_000);
            if count == 1 {
                assert_eq!(counts, [400_000]);
                continue;
            }
            fits(&counts, &weights(count, shape))
                .unwrap_or_else(|e| panic!("{count} {shape}: {e}"));
        }
    }
}

#[test]
fn draws_leave_out_as_many_numbers_as_expected() {
    for shape in [0.0, 0.8, 1.0, 1.4] {
        let zipf = Zipf::new(20_000, shape);
        for draws in [500, 20_000, 200_000] {
            let counts = zipf_counts(20_000, shape, draws);
            let missed = counts.iter().filter(|&&count| count == 0).count() as f64 / 20_000.0;
            let told = zipf.missed(f64::from(draws));
            assert!((told - missed).abs() < 0.01, "{shape}, {draws}: {told}, {missed}");
        }
    }
}

#[test]
fn another_shape_of_zipf_is_noticed() {
    let counts = zipf_counts(1000, 0.8, 400_000);
    fits(&counts, &weights(1000, 0.77)).unwrap_err();
}

#[test]
fn zipf_numbers_of_a_large_range_have_their_weights() {
    let count = 300_000;
    let counts = zipf_counts(count, 0.741, 1_000_000);
    fits(&counts, &weights(count, 0.741)).unwrap();
    // Far too many for a table: the first number's share is that of the integral.
    let zipf = Zipf::new(1_000_000_000, 0.8);
    let mut random = Random::new(3);
    let half = 500_000_000;
    let low = (0..200_000).filter(|_| zipf.draw(&mut random) < half).count() as f64 / 200_000.0;
    // The sum to n is about n^0.2 / 0.2 - 4.44, so half of the numbers have this share.
    let sum = |n: f64| n.powf(0.2) / 0.2 - 4.437_538;
    let expected = sum(5e8) / sum(1e9);
    assert!((low - expected).abs() < 0.003, "{low} {expected}");
}

#[test]
fn a_shuffle_is_a_permutation_and_has_an_inverse() {
    for count in [1, 2, 3, 4, 5, 1023, 1024, 1025, 2047, 10_000, 1_100_000] {
        let shuffle = Shuffle::new(7, "a", count);
        let mut seen = vec![false; count as usize];
        for number in 0..count {
            let to = shuffle.to(number);
            assert!(!std::mem::replace(&mut seen[to as usize], true), "{count}: {to} twice");
            assert_eq!(shuffle.from(to), number);
        }
    }
}

#[test]
fn a_shuffle_scatters_neighbours_and_depends_on_its_name() {
    let count = 1_000_000;
    let shuffle = Shuffle::new(7, "a", count);
    let far = (0..1000).filter(|&n| shuffle.to(n).abs_diff(shuffle.to(n + 1)) > 10_000).count();
    assert!(far > 900, "{far}");
    let other = Shuffle::new(7, "b", count);
    let same = (0..1000).filter(|&number| shuffle.to(number) == other.to(number)).count();
    assert!(same < 20, "{same}");
    // Small graphs have orders that differ, too.
    let (one, other) = (Shuffle::new(7, "a", 600), Shuffle::new(7, "b", 600));
    let same = (0..600).filter(|&number| one.to(number) == other.to(number)).count();
    assert!(same < 100, "{same}");
}

#[test]
fn links_per_node_follow_the_published_table() {
    let nodes = 1_000_000;
    let degrees = Degrees::new(nodes);
    let links: Vec<u64> = (0..nodes).map(|rank| degrees.of(rank)).collect();
    assert!(links.windows(2).all(|pair| pair[0] >= pair[1]), "rank 0 has the most");
    for (most, percent) in AT_MOST {
        let at_most = links.iter().filter(|&&links| links <= u64::from(most)).count() as f64;
        let share = at_most / nodes as f64 * 100.0;
        assert!((share - percent).abs() <= 2e-4, "at most {most}: {share} %, not {percent} %");
    }
    // 4.10 in the published data; straight lines between fewer points give a little more.
    let mean = links.iter().sum::<u64>() as f64 / nodes as f64;
    assert!((4.1..4.4).contains(&mean), "{mean}");
}

#[test]
fn no_node_has_more_links_than_there_are_nodes() {
    for nodes in [1, 2, 100, 5000] {
        let most = (0..nodes).map(|rank| Degrees::new(nodes).of(rank)).max().unwrap();
        assert!(most <= nodes, "{nodes}: {most}");
    }
}

#[test]
fn sizes_are_log_normal() {
    for (median, most) in [(8.0, 254), (128.0, (1 << 20) - 1)] {
        let mut sizes = LogNormal::new(median, 1.0, most);
        let mut random = Random::named(5, "sizes", 0);
        let draws: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut random)).collect();
        assert!(draws.iter().all(|&size| size <= most));
        let cdf = |size: u64| {
            if size == most { 1.0 } else { normal_cdf(((size as f64 + 0.5) / median).ln()) }
        };
        fits_cdf(draws.clone(), cdf).unwrap();
        fits_cdf(draws, |size| cdf((size as f64 * 0.97) as u64)).unwrap_err();
    }
}

#[test]
fn multi_gets_are_geometric() {
    let geometric = Geometric::new(0.382, 128);
    let mut random = Random::named(6, "geometric", 0);
    let mut counts = vec![0; 129];
    (0..500_000).for_each(|_| counts[geometric.draw(&mut random) as usize] += 1);
    let mut expected: Vec<f64> =
        (0..=128).map(|n| if n == 0 { 0.0 } else { 0.382 * 0.618f64.powi(n - 1) }).collect();
    expected[128] += 0.618f64.powi(128);
    assert_eq!(counts[0], 0);
    fits(&counts[1..], &expected[1..]).unwrap();
    let mean: f64 = counts.iter().enumerate().map(|(n, &c)| n as f64 * c as f64).sum::<f64>() / 5e5;
    assert!((mean - 2.618).abs() < 0.01, "{mean}");
    let bounded = Geometric::new(0.001, 5);
    assert!((0..1000).all(|_| (1..=5).contains(&bounded.draw(&mut random))));
}
