//! The mix of operations and what they are about fit LinkBench's numbers, at fixed seeds.

use super::super::fit::fits;
use super::*;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: LinkbenchOptions,
}

fn options(nodes: u64) -> LinkbenchOptions {
    Command::parse_from(["x", "--maxid1", &nodes.to_string()]).options
}

#[test]
fn operations_are_mixed_as_published() {
    let whole: f64 = PERCENT.iter().sum();
    assert!((whole - 100.0).abs() < 1e-6, "{whole}");
    let mix = Mix::default();
    let mut random = Random::named(1, "mix", 0);
    let mut counts = vec![0; ALL.len()];
    (0..1_000_000).for_each(|_| counts[mix.draw(&mut random) as usize] += 1);
    fits(&counts, &PERCENT.map(|percent| percent / 100.0)).unwrap();
    assert_eq!(KINDS[Kind::GetLinkList as usize], "getlinklist");
    assert_eq!(KINDS[Kind::DeleteNode as usize], "deletenode");
    assert!(ALL.iter().enumerate().all(|(at, &kind)| kind as usize == at));
}

fn weights(count: u64, shape: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-shape)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn counts(nodes: u64, mut draw: impl FnMut(&mut Random) -> u64) -> Vec<u64> {
    let mut random = Random::named(2, "nodes", 0);
    let mut counts = vec![0; nodes as usize + 1];
    (0..500_000).for_each(|_| counts[draw(&mut random) as usize] += 1);
    assert_eq!(counts[0], 0, "ids begin at 1");
    counts[1..].to_vec()
}

#[test]
fn two_orders_are_blended() {
    let nodes = 600;
    let choice = Choice::new(3, &options(nodes));
    let blend = |shape: f64, share: f64| -> Vec<f64> {
        let weights = weights(nodes, shape);
        let of = |order: &Shuffle, id: u64| weights[order.from(id) as usize];
        let both = |id| {
            share * of(&choice.uncorrelated, id) + (1.0 - share) * of(&choice.loaded.by_degree, id)
        };
        (0..nodes).map(both).collect()
    };
    let reads = counts(nodes, |random| choice.read_links(random));
    fits(&reads, &blend(0.8, 0.995)).unwrap();
    fits(&reads, &blend(0.8, 0.95)).unwrap_err();
    let writes = counts(nodes, |random| choice.write_links(random));
    fits(&writes, &blend(0.741, 0.95)).unwrap();
    fits(&writes, &blend(0.8, 0.95)).unwrap_err();
}

#[test]
fn writes_can_be_uniform_where_they_are_not_correlated() {
    let nodes = 600;
    let uniform = LinkbenchOptions { write_uncorrelated_shape: 0.0, ..options(nodes) };
    let choice = Choice::new(3, &uniform);
    let zipf = weights(nodes, 0.741);
    let expected: Vec<f64> = (0..nodes)
        .map(|id| 0.95 / nodes as f64 + 0.05 * zipf[choice.loaded.by_degree.from(id) as usize])
        .collect();
    fits(&counts(nodes, |random| choice.write_links(random)), &expected).unwrap();
}

#[test]
fn nodes_are_chosen_by_their_own_order() {
    let nodes = 600;
    let choice = Choice::new(3, &options(nodes));
    let by = |shape: f64| -> Vec<f64> {
        let weights = weights(nodes, shape);
        (0..nodes).map(|id| weights[choice.nodes.from(id) as usize]).collect()
    };
    fits(&counts(nodes, |random| choice.read_node(random)), &by(0.625)).unwrap();
    fits(&counts(nodes, |random| choice.update_node(random)), &by(0.606)).unwrap();
    let even = vec![1.0 / nodes as f64; nodes as usize];
    fits(&counts(nodes, |random| choice.delete_node(random)), &even).unwrap();
}

#[test]
fn links_that_are_asked_for_exist_as_often_as_they_should() {
    let loaded = Loaded::new(3, 100_000);
    let mut random = Random::named(4, "exists", 0);
    let id1 = 1 + loaded.by_degree.to(20);
    for link_type in [LINK_TYPE, LINK_TYPE + 1] {
        let links = loaded.links_of(id1, link_type);
        assert!(links > 1000, "{links}");
        for exists in [exists::ADD, exists::GET, exists::UPDATE, exists::DELETE] {
            let mut found = 0u32;
            for _ in 0..50_000 {
                let id2 = loaded.id2(&mut random, id1, link_type, exists);
                assert!(id2 >= id1);
                found += u32::from(id2 < id1 + links);
            }
            let share = f64::from(found) / 50_000.0;
            assert!((share - exists).abs() < 0.01, "{share} {exists}");
        }
    }
}

#[test]
fn types_share_all_links_of_a_node() {
    let loaded = Loaded::new(5, 10_000);
    for id1 in 1..=10_000 {
        let of: Vec<u64> = (0..LINK_TYPES).map(|t| loaded.links_of(id1, LINK_TYPE + t)).collect();
        assert_eq!(of.iter().sum::<u64>(), loaded.links(id1));
        assert!(of[0] - of[1] <= 1, "{of:?}");
    }
}

#[test]
fn a_multi_get_asks_for_different_links() {
    let loaded = Loaded::new(3, 100_000);
    let mut random = Random::named(4, "several", 0);
    let mut id2s = Vec::new();
    for rank in [0, 100, 5_000, 20_000, 99_999] {
        let id1 = 1 + loaded.by_degree.to(rank);
        for count in [1, 2, 3, 7, 128] {
            loaded.id2s(&mut random, (id1, LINK_TYPE), count, exists::GET, &mut id2s);
            let mut sorted = id2s.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len() as u64, count, "{rank} {id2s:?}");
            assert!(sorted[0] >= id1);
        }
    }
}
