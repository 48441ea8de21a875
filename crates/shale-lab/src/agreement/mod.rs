//! Two stores that must answer alike: the same random operations through a workload's interface on
//! both, each answer compared. One of them is as a rule the engine in memory, which is plainly
//! right ([`crate::model`]), behind the tables of key-value engines; the other one has tables of
//! its own, such as a database server. What is measured doing something else would be measured
//! wrongly.

mod graph;
mod oltp;
mod sales;

pub use graph::graph;
pub use oltp::oltp;
pub use sales::sales;

use crate::engine::Result;
use crate::generate::Random;
use std::fmt::Debug;

/// The error of two answers that differ.
fn same<A: PartialEq + Debug>(what: &dyn Debug, tested: A, model: A) -> Result<()> {
    if tested == model {
        return Ok(());
    }
    Err(format!("{what:?}: the store answers {tested:?}, the model {model:?}").into())
}

/// Bytes of any value, those included that text has a meaning for.
fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let meant = [b' ', b'\'', b'"', b'\\', b'%', 0, 0x1a, 0x7f, 0x80, 0xff];
    let length = random.below(most + 1);
    let mut byte = || match random.below(4) {
        0 => meant[random.below(meant.len() as u64) as usize],
        _ => random.bits() as u8,
    };
    (0..length).map(|_| byte()).collect()
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
