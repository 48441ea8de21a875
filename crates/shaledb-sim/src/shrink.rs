//! Cuts a failing program down to what is needed to fail, for people to read.

use crate::model::Change;
use crate::ops::Op;

/// How often a program is run at most while it is cut down.
const RUNS_MAX: u32 = 2_000;

/// A shorter program that still fails. Any part of a program is a program: what it takes for
/// granted and is not there makes an operation do nothing.
pub fn shrink(program: &[Op], mut fails: impl FnMut(&[Op]) -> bool) -> Vec<Op> {
    let mut program = program.to_vec();
    let mut runs = 0;
    let mut fails = |candidate: &[Op]| {
        runs += 1;
        runs <= RUNS_MAX && fails(candidate)
    };
    let mut part = program.len() / 2;
    while part > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < program.len() {
            let mut candidate = program.clone();
            candidate.drain(at..(at + part).min(program.len()));
            if fails(&candidate) {
                program = candidate;
                shorter = true;
            } else {
                at += part;
            }
        }
        part = if shorter && part == 1 { 1 } else { part / 2 };
    }
    for index in 0..program.len() {
        shrink_batch(&mut program, index, &mut fails);
    }
    program
}

/// Leaves out changes of a batch.
fn shrink_batch(program: &mut [Op], index: usize, fails: &mut impl FnMut(&[Op]) -> bool) {
    let remade = |op: &Op, changes: Vec<Change>| match op {
        Op::Transaction(_, memory_bytes, sync) => Op::Transaction(changes, *memory_bytes, *sync),
        Op::Write(_, sync) => Op::Write(changes, *sync),
        other => other.clone(),
    };
    let (Op::Write(mut changes, _) | Op::Transaction(mut changes, ..)) = program[index].clone()
    else {
        return;
    };
    let mut at = 0;
    while at < changes.len() && changes.len() > 1 {
        let removed = changes.remove(at);
        let before = program[index].clone();
        program[index] = remade(&before, changes.clone());
        if !fails(program) {
            program[index] = before;
            changes.insert(at, removed);
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Change;
    use crate::ops::Generator;

    #[test]
    fn what_is_not_needed_goes() {
        let program = Generator::new(3).program(200);
        let ranges = |program: &[Op]| {
            let count = |op: &Op| match op {
                Op::Write(changes, _) => {
                    changes.iter().filter(|c| matches!(c, Change::DeleteRange(..))).count()
                }
                _ => 0,
            };
            program.iter().map(count).sum::<usize>()
        };
        assert!(ranges(&program) > 2);
        let short = shrink(&program, |program| ranges(program) >= 2);
        let changes = short.iter().map(|op| match op {
            Op::Write(changes, _) => changes.len(),
            _ => 100,
        });
        assert_eq!(changes.sum::<usize>(), 2);
    }
}
