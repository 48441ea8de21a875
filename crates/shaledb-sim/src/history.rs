//! Histories of concurrent transactions that append to lists and read them, and what is wrong with
//! one: which anomaly, and in which circle of transactions.
//!
//! Lists tell the order of their writes: whoever reads `[3, 5]` has seen that 5 came after 3. So
//! each read says which versions it depends on, and which one it has missed. The final lists give
//! the order of all versions; then "written after" (ww), "read from" (wr) and "overwritten after"
//! (rw) are edges between transactions, and each anomaly is a circle of certain edges.

use std::collections::{BTreeMap, BTreeSet};

/// What a transaction has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Appended a value, which nobody else appends, to the list of a key.
    Append(u32, u32),
    /// Found this list.
    Read(u32, Vec<u32>),
}

/// One transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// What it did, in order.
    pub events: Vec<Event>,
    /// Whether it has committed.
    pub committed: bool,
}

/// What can be wrong, from bad to less bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A committed append is not in the final list, or there twice.
    LostAppend,
    /// A transaction does not see its own appends, or two reads contradict each other's order.
    Incompatible,
    /// Something of a transaction was read that never committed.
    AbortedRead,
    /// Something was read that its transaction wrote over.
    IntermediateRead,
    /// G0: a circle of writes.
    WriteCircle,
    /// G1c: a circle of writes and reads of what was written.
    InformationCircle,
    /// G-single: a circle with one read of what was about to be overwritten.
    ReadSkew,
    /// G2: a circle with several of these.
    WriteSkew,
}

/// What was found, and the transactions (by their place in the history) that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub anomaly: Anomaly,
    /// The transactions: for a circle, in order.
    pub transactions: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Write,
    Read,
    Overwritten,
}

type Edges = BTreeMap<usize, BTreeSet<(usize, Edge)>>;

/// The worst of what is wrong with a history, given the lists at its end.
pub fn check(history: &[Run], finals: &BTreeMap<u32, Vec<u32>>) -> Option<Finding> {
    let mut writers: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (index, run) in history.iter().enumerate() {
        for event in &run.events {
            if let Event::Append(key, value) = event {
                assert!(writers.insert((*key, *value), index).is_none(), "appended twice");
            }
        }
    }
    let mut found = direct(history, finals, &writers);
    let edges = edges(history, finals, &writers);
    found.extend(circles(&edges));
    found.into_iter().min_by_key(|finding| finding.anomaly)
}

fn finding(anomaly: Anomaly, transactions: &[usize]) -> Finding {
    Finding { anomaly, transactions: transactions.to_vec() }
}

/// What can be seen without looking for circles.
fn direct(
    history: &[Run],
    finals: &BTreeMap<u32, Vec<u32>>,
    writers: &BTreeMap<(u32, u32), usize>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let empty = Vec::new();
    for (&(key, value), &writer) in writers {
        let list = finals.get(&key).unwrap_or(&empty);
        let times = list.iter().filter(|found| **found == value).count();
        if history[writer].committed && times != 1 {
            found.push(finding(Anomaly::LostAppend, &[writer]));
        } else if !history[writer].committed && times > 0 {
            found.push(finding(Anomaly::AbortedRead, &[writer]));
        }
    }
    for (index, run) in history.iter().enumerate().filter(|(_, run)| run.committed) {
        let mut appended: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for event in &run.events {
            match event {
                Event::Append(key, value) => appended.entry(*key).or_default().push(*value),
                Event::Read(key, list) => {
                    let appended = appended.get(key).unwrap_or(&empty);
                    let order = finals.get(key).unwrap_or(&empty);
                    found.extend(read(history, writers, index, *key, list, appended, order));
                }
            }
        }
    }
    found
}

/// What is wrong with one read of a committed transaction. It had `appended` to the key before.
fn read(
    history: &[Run],
    writers: &BTreeMap<(u32, u32), usize>,
    index: usize,
    key: u32,
    list: &[u32],
    appended: &[u32],
    order: &[u32],
) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some(others) = list.strip_suffix(appended) else {
        return vec![finding(Anomaly::Incompatible, &[index])];
    };
    let writer = |value: &u32| writers.get(&(key, *value)).copied();
    for value in others {
        match writer(value) {
            Some(writer) if history[writer].committed => {}
            Some(writer) => found.push(finding(Anomaly::AbortedRead, &[writer, index])),
            None => found.push(finding(Anomaly::Incompatible, &[index])),
        }
    }
    if !order.starts_with(others) && found.is_empty() {
        found.push(finding(Anomaly::Incompatible, &[index]));
    }
    if let Some(last) = others.last()
        && let Some(of) = writer(last)
        && of != index
    {
        let later = history[of].events.iter().rev().find_map(|event| match event {
            Event::Append(at, value) if *at == key => Some(*value),
            _ => None,
        });
        if later != Some(*last) {
            found.push(finding(Anomaly::IntermediateRead, &[of, index]));
        }
    }
    found
}

fn edges(
    history: &[Run],
    finals: &BTreeMap<u32, Vec<u32>>,
    writers: &BTreeMap<(u32, u32), usize>,
) -> Edges {
    let mut edges = Edges::new();
    let mut add = |from: usize, to: usize, edge: Edge| {
        if from != to && history[from].committed && history[to].committed {
            edges.entry(from).or_default().insert((to, edge));
        }
    };
    let writer = |key: u32, value: u32| writers.get(&(key, value)).copied();
    for (&key, list) in finals {
        for pair in list.windows(2) {
            if let (Some(a), Some(b)) = (writer(key, pair[0]), writer(key, pair[1])) {
                add(a, b, Edge::Write);
            }
        }
    }
    for (index, run) in history.iter().enumerate() {
        for event in &run.events {
            let Event::Read(key, list) = event else { continue };
            let others = list.iter().rev().find(|value| writer(*key, **value) != Some(index));
            if let Some(from) = others.and_then(|value| writer(*key, *value)) {
                add(from, index, Edge::Read);
            }
            // The next version of somebody else, if what was read is a beginning of the order.
            let order = finals.get(key).map_or(&[][..], Vec::as_slice);
            let seen = match others {
                Some(value) => order.iter().position(|at| at == value).map(|at| at + 1),
                None => Some(0),
            };
            let next = seen.and_then(|seen| {
                order[seen..].iter().filter_map(|value| writer(*key, *value)).find(|w| *w != index)
            });
            if let Some(next) = next {
                add(index, next, Edge::Overwritten);
            }
        }
    }
    edges
}

/// The shortest way from one transaction to another over edges that are allowed.
fn way(edges: &Edges, from: usize, to: usize, allowed: &[Edge]) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for (step, edge) in edges.get(&at).into_iter().flatten() {
            if !allowed.contains(edge) || before.contains_key(step) {
                continue;
            }
            before.insert(*step, at);
            if *step == to {
                let mut way = vec![to];
                let mut back = before[&to];
                while back != from {
                    way.push(back);
                    back = before[&back];
                }
                way.push(from);
                way.reverse();
                return Some(way);
            }
            next.push_back(*step);
        }
    }
    None
}

/// The first circle of each kind.
fn circles(edges: &Edges) -> Vec<Finding> {
    use Edge::{Overwritten, Read, Write};
    let mut found = Vec::new();
    let kinds: [(Anomaly, Edge, &[Edge]); 4] = [
        (Anomaly::WriteCircle, Write, &[Write]),
        (Anomaly::InformationCircle, Read, &[Write, Read]),
        (Anomaly::ReadSkew, Overwritten, &[Write, Read]),
        (Anomaly::WriteSkew, Overwritten, &[Write, Read, Overwritten]),
    ];
    for (anomaly, with, rest) in kinds {
        let starts = edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
        let circle = starts
            .filter(|(_, (_, edge))| *edge == with)
            .find_map(|(from, (to, _))| way(edges, to, from, rest));
        found.extend(circle.map(|circle| finding(anomaly, &circle)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Append, Read};

    fn run(events: &[Event]) -> Run {
        Run { events: events.to_vec(), committed: true }
    }

    fn found(history: &[Run], finals: &[(u32, &[u32])]) -> Option<Anomaly> {
        let finals = finals.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        check(history, &finals).map(|finding| finding.anomaly)
    }

    #[test]
    fn what_is_serial_is_right() {
        let history = [
            run(&[Append(1, 1), Read(1, vec![1]), Append(2, 2)]),
            run(&[Read(1, vec![1]), Append(1, 3), Read(1, vec![1, 3])]),
            run(&[Read(2, vec![2]), Read(1, vec![1, 3])]),
            Run { events: vec![Append(1, 9), Read(1, vec![])], committed: false },
        ];
        assert_eq!(found(&history, &[(1, &[1, 3]), (2, &[2])]), None);
    }

    #[test]
    fn planted_anomalies_are_found() {
        let lost = [run(&[Append(1, 1)]), run(&[Append(1, 2)])];
        assert_eq!(found(&lost, &[(1, &[2])]), Some(Anomaly::LostAppend));

        let blind = [run(&[Append(1, 1), Read(1, vec![])])];
        assert_eq!(found(&blind, &[(1, &[1])]), Some(Anomaly::Incompatible));
        let order = [run(&[Append(1, 1)]), run(&[Append(1, 2)]), run(&[Read(1, vec![2, 1])])];
        assert_eq!(found(&order, &[(1, &[1, 2])]), Some(Anomaly::Incompatible));

        let aborted =
            [Run { events: vec![Append(1, 1)], committed: false }, run(&[Read(1, vec![1])])];
        assert_eq!(found(&aborted, &[]), Some(Anomaly::AbortedRead));
        assert_eq!(found(&aborted[..1], &[(1, &[1])]), Some(Anomaly::AbortedRead));

        let intermediate = [run(&[Append(1, 1), Append(1, 2)]), run(&[Read(1, vec![1])])];
        assert_eq!(found(&intermediate, &[(1, &[1, 2])]), Some(Anomaly::IntermediateRead));

        let g0 = [run(&[Append(1, 1), Append(2, 1)]), run(&[Append(1, 2), Append(2, 2)])];
        assert_eq!(found(&g0, &[(1, &[1, 2]), (2, &[2, 1])]), Some(Anomaly::WriteCircle));

        let g1c = [run(&[Append(1, 1), Read(2, vec![2])]), run(&[Append(2, 2), Read(1, vec![1])])];
        assert_eq!(found(&g1c, &[(1, &[1]), (2, &[2])]), Some(Anomaly::InformationCircle));

        let skew = [run(&[Read(1, vec![]), Read(2, vec![2])]), run(&[Append(1, 1), Append(2, 2)])];
        assert_eq!(found(&skew, &[(1, &[1]), (2, &[2])]), Some(Anomaly::ReadSkew));

        let g2 = [run(&[Read(1, vec![]), Append(2, 2)]), run(&[Read(2, vec![]), Append(1, 1)])];
        assert_eq!(found(&g2, &[(1, &[1]), (2, &[2])]), Some(Anomaly::WriteSkew));
    }

    #[test]
    fn a_circle_is_told_in_order() {
        let history = [
            run(&[Read(1, vec![]), Append(3, 3)]),
            run(&[Append(1, 1), Read(2, vec![])]),
            run(&[Append(2, 2), Read(3, vec![])]),
        ];
        let finals = BTreeMap::from([(1, vec![1]), (2, vec![2]), (3, vec![3])]);
        let finding = check(&history, &finals).unwrap();
        assert_eq!(finding.anomaly, Anomaly::WriteSkew);
        let mut circle = finding.transactions;
        let first = circle.iter().position(|at| *at == 0).unwrap();
        circle.rotate_left(first);
        assert_eq!(circle, [0, 1, 2]);
    }
}
