//! How large the data becomes, by what is really written.

use crate::run::DAY;
use crate::scenario::Scenario;

/// What was written until some day, and what is taken to be written from then on.
#[derive(Clone, Debug)]
pub struct Growth<'a> {
    scenario: &'a Scenario,
    /// Up to which day how many bytes a second were written, in order.
    spans: Vec<(f64, f64)>,
    /// Bytes a second after the last span.
    rate: f64,
}

impl<'a> Growth<'a> {
    /// Nothing is known yet: so much is written each second, from the beginning on.
    pub fn at(scenario: &'a Scenario, rate: f64) -> Growth<'a> {
        Growth { scenario, spans: Vec::new(), rate }
    }

    /// What is written after all that is known.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// From what is known on, so much is written each second.
    pub fn go_on_at(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// So it went until a day.
    pub fn known_to(&mut self, day: f64) {
        self.spans.push((day, self.rate));
    }

    /// Bytes written up to a day.
    fn written(&self, day: f64) -> f64 {
        let (mut from, mut bytes) = (0.0, 0.0);
        let rest = [(f64::INFINITY, self.rate)];
        for &(to, rate) in self.spans.iter().chain(&rest) {
            if day <= from {
                break;
            }
            bytes += (day.min(to) - from) * DAY * rate;
            from = to;
        }
        bytes
    }

    /// By how much the keys and values of all rows are more on a day than on an earlier one.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        let scenario = self.scenario;
        let of_byte = scenario.growth(1.0) * scenario.row_bytes();
        let rows_of = |from: f64, to: f64| of_byte * (self.written(to) - self.written(from));
        match scenario.load.retention_days {
            // What is there was written as evenly as what comes.
            Some(days) => {
                let left = |day: f64| scenario.start_bytes * (1.0 - day / days).max(0.0);
                rows_of(from, to) - rows_of(from - days, to - days) + left(to) - left(from)
            }
            None => rows_of(from, to),
        }
    }

    /// Bytes of keys and values of all rows on a day.
    pub fn bytes_on(&self, day: f64) -> f64 {
        (self.scenario.start_bytes + self.between(0.0, day)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Order, sample};

    #[test]
    fn what_was_written_is_there_until_it_is_too_old() {
        let mut scenario = sample();
        scenario.load.inserts = 1.0;
        let mut growth = Growth::at(&scenario, 2e6);
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1.0, "{one} {other}");
        near(growth.bytes_on(10.0), 1e9 + 10.0 * DAY * 2e6);
        growth.known_to(4.0);
        growth.go_on_at(1e6);
        near(growth.bytes_on(10.0), 1e9 + DAY * (4.0 * 2e6 + 6.0 * 1e6));
        near(growth.between(3.0, 5.0), DAY * 3e6);

        scenario.load.order = Order::Ascending;
        scenario.load.retention_days = Some(2.0);
        let mut growth = Growth::at(&scenario, 2e6);
        near(growth.bytes_on(1.0), 0.5e9 + DAY * 2e6);
        growth.known_to(4.0);
        growth.go_on_at(1e6);
        // A day of each, and all that was there at the start is gone.
        near(growth.bytes_on(5.0), DAY * 3e6);
        near(growth.bytes_on(9.0), DAY * 2e6);
    }
}
