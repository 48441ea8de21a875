//! The distributions of LinkBench: each draws numbers from a [`Random`] without allocating.
//!
//! - [`Zipf`]: which node is accessed, by rank; rank 0 is the most popular.
//! - [`Shuffle`]: from rank to node, so that popular nodes lie scattered over the key space.
//! - [`Degrees`]: how many links a node has when it is loaded.
//! - [`LogNormal`]: sizes of data. [`Geometric`]: how many links one multi-get asks for.
//!
//! LinkBench's own sampler of Zipf numbers is an approximation, and its geometric one never gives
//! the least number; these draw from the distributions themselves.

use crate::generate::Random;

/// Numbers from 0 to `count - 1`; number k has a weight of 1 / (k + 1)^shape. Shape 0 is uniform.
///
/// Drawn by rejection-inversion (Hoermann and Derflinger, 1996): exact, in constant time and
/// memory.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    shape: f64,
    /// The integral of the weight from 1/2 before the first number, where the first one's whole
    /// weight is its bar.
    low: f64,
    /// The integral to 1/2 after the last number.
    high: f64,
    /// A draw that is no farther below its number is taken without a further look.
    near: f64,
}

impl Zipf {
    /// Of `count` numbers, at least one; the shape is 0 or more.
    pub fn new(count: u64, shape: f64) -> Zipf {
        assert!(count > 0 && shape >= 0.0, "{count} numbers, shape {shape}");
        let mut zipf = Zipf { count: count as f64, shape, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.shape)
    }

    /// The integral of the weight from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        if self.shape == 1.0 {
            return x.ln();
        }
        (x.powf(1.0 - self.shape) - 1.0) / (1.0 - self.shape)
    }

    fn inverse(&self, y: f64) -> f64 {
        if self.shape == 1.0 {
            return y.exp();
        }
        // Rounding may take the base just below zero where the weights fall steeply.
        (1.0 + y * (1.0 - self.shape)).max(0.0).powf(1.0 / (1.0 - self.shape))
    }

    /// The share of the numbers that so many draws are expected to leave out.
    pub fn missed(&self, draws: f64) -> f64 {
        let all = self.high - self.low;
        let (mut from, mut missed) = (0.0, 0.0);
        // The first numbers one by one, later ones of about one weight together.
        while from < self.count {
            let to = (from * 1.02_f64).floor().max(from + 1.0).min(self.count);
            let weight = self.weight(f64::midpoint(from + 1.0, to));
            missed += (to - from) * (-draws * weight / all).exp();
            from = to;
        }
        missed / self.count
    }

    /// The next number.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let y = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(y);
            let nearest = x.round().clamp(1.0, self.count);
            if nearest - x <= self.near || y >= self.integral(nearest + 0.5) - self.weight(nearest)
            {
                return nearest as u64 - 1;
            }
        }
    }
}

/// As many groups as LinkBench has, where there are a million numbers or more.
const GROUPS: u64 = 1024;

/// A permutation that is cheap in both directions, as LinkBench's: numbers are dealt in turn to
/// up to 1024 groups, and each group is turned by an amount of its own.
#[derive(Clone, Debug)]
pub struct Shuffle {
    count: u64,
    turns: Box<[u32]>,
}

impl Shuffle {
    /// Of the numbers below `count`; two of one name and seed are the same.
    pub fn new(seed: u64, name: &str, count: u64) -> Shuffle {
        assert!(count > 0);
        let mut random = Random::named(seed, name, 0);
        // A group of one number could not be turned.
        let groups = GROUPS.min(count.isqrt());
        let turns = (0..groups).map(|_| random.below(count / groups) as u32);
        Shuffle { count, turns: turns.collect() }
    }

    #[inline]
    fn moved(&self, number: u64, by: impl Fn(u64, u64) -> u64) -> u64 {
        debug_assert!(number < self.count);
        let groups = self.turns.len() as u64;
        let (group, position) = (number % groups, number / groups);
        // The first groups have one number more, unless the groups are all of one size.
        let size = (self.count - group).div_ceil(groups);
        let turn = u64::from(self.turns[group as usize]);
        let moved = by(turn, size) + position;
        let position = if moved >= size { moved - size } else { moved };
        position * groups + group
    }

    /// Where a number goes.
    #[inline]
    pub fn to(&self, number: u64) -> u64 {
        self.moved(number, |turn, _| turn)
    }

    /// Which number goes there.
    #[inline]
    pub fn from(&self, number: u64) -> u64 {
        self.moved(number, |turn, size| size - turn)
    }
}

/// How many percent of the nodes have at most so many links: LinkBench's published distribution.
/// Beyond 10000 its points are kept close, because few nodes have many of all links: a straight
/// line from 10000 to the end would be 28 links per node instead of 4.
const AT_MOST: [(u32, f64); 33] = [
    (0, 45.3316),
    (1, 77.4626),
    (2, 86.9581),
    (3, 91.9931),
    (4, 94.4508),
    (5, 95.8281),
    (6, 96.7225),
    (7, 97.3201),
    (8, 97.7614),
    (9, 98.0777),
    (10, 98.3280),
    (20, 99.3270),
    (30, 99.5569),
    (50, 99.7216),
    (75, 99.7963),
    (100, 99.8314),
    (150, 99.8662),
    (200, 99.8851),
    (300, 99.9061),
    (500, 99.9275),
    (750, 99.9416),
    (1000, 99.9507),
    (2000, 99.9694),
    (5000, 99.9875),
    (10_000, 99.9950),
    (15_016, 99.9975),
    (24_000, 99.9990),
    (33_136, 99.9995),
    (64_914, 99.9999),
    (86_783, 99.99995),
    (196_788, 99.99999),
    (450_999, 99.999999),
    (961_963, 100.0),
];

/// Links per node when the graph is loaded, by the node's rank.
#[derive(Clone, Copy, Debug)]
pub struct Degrees {
    nodes: u64,
}

impl Degrees {
    /// Of a graph with so many nodes.
    pub fn new(nodes: u64) -> Degrees {
        Degrees { nodes }
    }

    /// How many links the node of a rank has; rank 0 has the most, and no node has more links than
    /// there are nodes.
    #[inline]
    pub fn of(&self, rank: u64) -> u64 {
        let percent = 100.0 - (rank as f64 + 0.5) * 100.0 / self.nodes as f64;
        let above = AT_MOST.partition_point(|&(_, at_most)| at_most < percent);
        if above == 0 {
            return 0;
        }
        let (least, from) = AT_MOST[above - 1];
        let (most, to) = AT_MOST[above];
        let part = (percent - from) / (to - from) * f64::from(most - least);
        (u64::from(least) + part.ceil() as u64).min(self.nodes)
    }
}

/// Whole numbers whose logarithms are normal, bounded.
#[derive(Clone, Debug)]
pub struct LogNormal {
    median: f64,
    sigma: f64,
    most: u64,
    /// The second of a pair of normal numbers.
    kept: Option<f64>,
}

impl LogNormal {
    /// With this median, this deviation of the logarithm, and at most `most`.
    pub fn new(median: f64, sigma: f64, most: u64) -> LogNormal {
        LogNormal { median, sigma, most, kept: None }
    }

    /// A normal number of mean 0 and deviation 1 (Box and Muller's method, which gives pairs).
    fn normal(&mut self, random: &mut Random) -> f64 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * random.unit()).sin_cos();
        self.kept = Some(radius * sin);
        radius * cos
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self, random: &mut Random) -> u64 {
        let number = self.median * (self.normal(random) * self.sigma).exp();
        (number.round() as u64).min(self.most)
    }
}

/// Numbers from 1: each further one with a chance of `1 - stop`, up to a bound.
#[derive(Clone, Debug)]
pub struct Geometric {
    /// The logarithm of the chance to go on.
    on: f64,
    most: u64,
}

impl Geometric {
    /// With this chance to stop, between 0 and 1, and at most `most`.
    pub fn new(stop: f64, most: u64) -> Geometric {
        Geometric { on: (1.0 - stop).ln(), most }
    }

    /// The next number.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let further = ((1.0 - random.unit()).ln() / self.on).floor();
        (1 + further as u64).min(self.most)
    }
}

#[cfg(test)]
#[path = "distributions_tests.rs"]
mod tests;
