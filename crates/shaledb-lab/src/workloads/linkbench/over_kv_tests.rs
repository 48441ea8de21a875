//! One session against a naive graph; what a check finds; one batch for each change.

use super::*;
use crate::generate::Random;
use crate::setup::Setup;
use crate::stores::engine::Metrics;
use crate::stores::model::{Model, ModelHandle};
use crate::workloads::linkbench::graph::{LINK_TYPE, NODE_TYPE};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

fn open(dir: &Path) -> KvStore<Model> {
    KvStore::open(dir, &Setup::default(), &TREES).unwrap()
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    id2: u64,
    visible: bool,
    time: u64,
    version: u32,
    data: Vec<u8>,
}

fn seen(link: &Link<'_>) -> Seen {
    let (id2, visible, time) = (link.id2, link.visible, link.time);
    Seen { id2, visible, time, version: link.version, data: link.data.to_vec() }
}

type Naive = BTreeMap<(u64, u64), BTreeMap<u64, Seen>>;

/// What a range query should show.
fn newest(naive: &Naive, range: &LinkRange) -> Vec<Seen> {
    let links = naive.get(&(range.id1, range.link_type)).into_iter().flat_map(BTreeMap::values);
    let mut links: Vec<Seen> =
        links.filter(|link| link.visible && link.time <= range.newest).cloned().collect();
    links.sort_by_key(|link| (Reverse(link.time), link.id2));
    links.into_iter().skip(range.skip as usize).take(range.limit as usize).collect()
}

fn write_any(session: &mut KvGraph<'_, Model>, naive: &mut Naive, random: &mut Random) {
    let (id1, link_type) = (1 + random.below(4), LINK_TYPE + random.below(2));
    let id2 = 1 + random.below(12);
    let links = naive.entry((id1, link_type)).or_default();
    if random.below(3) == 0 {
        let deleted = session.delete_link(id1, link_type, id2).unwrap();
        let was = links.get_mut(&id2).filter(|link| link.visible);
        assert_eq!(deleted, was.is_some());
        if let Some(link) = was {
            link.visible = false;
        }
        return;
    }
    // Few times, so that some are the same; data that may be longer or shorter than before.
    let time = 1000 + random.below(20);
    let data = vec![b'a' + random.below(26) as u8; random.below(6) as usize];
    let (visible, version) = (random.below(8) > 0, random.below(3) as u32);
    let link = Link { id1, link_type, id2, visible, time, version, data: &data };
    let new = session.add_link(&link).unwrap();
    assert_eq!(new, links.insert(id2, seen(&link)).is_none());
}

fn read_any(session: &mut KvGraph<'_, Model>, naive: &Naive, random: &mut Random) {
    let (id1, link_type) = (1 + random.below(5), LINK_TYPE + random.below(2));
    let range = LinkRange {
        id1,
        link_type,
        newest: [u64::MAX, 1010, 999][random.below(3) as usize],
        skip: random.below(3),
        limit: [1, 3, 100][random.below(3) as usize],
    };
    let mut list = Vec::new();
    let shown = session.get_link_list(&range, &mut |link| list.push(seen(link))).unwrap();
    assert_eq!(list, newest(naive, &range), "{range:?}");
    assert_eq!(shown, list.len() as u64);

    let links = naive.get(&(id1, link_type));
    let visible = links.map(|links| links.values().filter(|link| link.visible).count() as u64);
    let count = session.count_links(id1, link_type).unwrap();
    assert_eq!(count.unwrap_or(0), visible.unwrap_or(0));

    let id2s = [1 + random.below(14), 20 + random.below(14), 1 + random.below(14)];
    let expected: Vec<Seen> = id2s.iter().filter_map(|id2| links?.get(id2)).cloned().collect();
    let mut got = Vec::new();
    let shown = session.get_links(id1, link_type, &id2s, &mut |link| got.push(seen(link))).unwrap();
    assert_eq!((got, shown), (expected.clone(), expected.len() as u64));
}

#[test]
fn links_are_those_of_a_naive_graph() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut session = store.session().unwrap();
    let (mut naive, mut random) = (Naive::new(), Random::new(21));
    for round in 0..6000 {
        write_any(&mut session, &mut naive, &mut random);
        read_any(&mut session, &naive, &mut random);
        if round % 500 == 0 {
            check(&store).unwrap();
        }
    }
    let checked = check(&store).unwrap();
    let all = || naive.values().flat_map(BTreeMap::values);
    assert_eq!(checked.links, all().count() as u64);
    assert_eq!(checked.visible, all().filter(|link| link.visible).count() as u64);
    assert!(checked.visible < checked.links);
}

#[test]
fn nodes_are_added_changed_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut session = store.session().unwrap();
    let mut nodes = NodeRows::default();
    for id in 1..=3 {
        let node = Node { id, node_type: NODE_TYPE, version: 1, time: 5, data: &[] };
        nodes.push(node, |to| to.extend_from_slice(b"loaded"));
    }
    session.load_nodes(&nodes).unwrap();
    let node = Node { id: 77, node_type: NODE_TYPE, version: 1, time: 6, data: b"added" };
    assert_eq!(session.add_node(&node).unwrap(), 4, "the next id, whatever the node's own");
    let mut data = Vec::new();
    let mut see = |node: &Node<'_>| data.push((node.id, node.version, node.data.to_vec()));
    assert!(session.get_node(NODE_TYPE, 2, &mut see).unwrap());
    assert!(session.get_node(NODE_TYPE, 4, &mut see).unwrap());
    assert!(!session.get_node(NODE_TYPE, 77, &mut see).unwrap());
    assert!(!session.get_node(NODE_TYPE + 1, 2, &mut see).unwrap(), "of another type");
    let changed = Node { id: 2, version: 2, data: b"", ..node };
    assert!(session.update_node(&changed).unwrap());
    assert!(session.get_node(NODE_TYPE, 2, &mut see).unwrap());
    let wanted = [(2, 1, b"loaded".to_vec()), (4, 1, b"added".to_vec()), (2, 2, Vec::new())];
    assert_eq!(data, wanted);

    assert!(!session.delete_node(NODE_TYPE + 1, 2).unwrap());
    assert!(session.delete_node(NODE_TYPE, 2).unwrap());
    assert!(!session.delete_node(NODE_TYPE, 2).unwrap());
    assert!(!session.update_node(&changed).unwrap(), "a deleted node does not come back");
    assert!(!session.get_node(NODE_TYPE, 2, &mut |_| ()).unwrap());
    assert_eq!(session.add_node(&node).unwrap(), 5, "the id of a deleted node is not used again");
    assert_eq!(check(&store).unwrap().nodes, 4);
    drop(session);
    store.drop_tables().unwrap();
    assert_eq!(check(&store).unwrap(), Checked::default());
    assert_eq!(store.session().unwrap().add_node(&node).unwrap(), 1);
}

/// Two links of one node and another's, and the store.
fn three_links(dir: &Path) -> KvStore<Model> {
    let store = open(dir);
    let mut session = store.session().unwrap();
    for (id1, id2) in [(1, 1), (1, 2), (9, 9)] {
        let (link_type, visible, version) = (LINK_TYPE, true, 0);
        let link = Link { id1, link_type, id2, visible, time: 7 + id2, version, data: b"data" };
        assert!(session.add_link(&link).unwrap());
    }
    drop(session);
    assert_eq!(check(&store).unwrap(), Checked { nodes: 0, links: 3, visible: 3 });
    store
}

#[test]
fn a_check_finds_what_is_wrong() {
    let spoil = |spoil: &dyn Fn(&mut ModelHandle)| {
        let dir = tempfile::tempdir().unwrap();
        let store = three_links(dir.path());
        spoil(&mut store.engine.handle().unwrap());
        check(&store).unwrap_err().to_string()
    };
    let mut key = Encoder::new();
    let link = Link {
        id1: 1,
        link_type: LINK_TYPE,
        id2: 2,
        visible: true,
        time: 9,
        version: 0,
        data: b"data",
    };
    let entry = index_key(&mut key, &link).to_vec();
    let count = count_key(&mut key, 1, LINK_TYPE).to_vec();
    let row = link_key(&mut key, 1, LINK_TYPE, 2).to_vec();

    let missing = spoil(&|handle| handle.delete(INDEX, &entry).unwrap());
    assert!(missing.contains("no entry in the index"), "{missing}");
    let other = spoil(&|handle| handle.put(INDEX, &entry, b"\0\0\0\0Data").unwrap());
    assert!(other.contains("no entry in the index"), "{other}");
    let more = spoil(&|handle| handle.delete(LINKS, &row).unwrap());
    assert!(more.contains("2 links have 3 entries"), "{more}");
    let one = Count { id: 1, link_type: LINK_TYPE, count: 1, time: 0, version: 0 };
    let value = count_value(&mut key, &one).to_vec();
    let wrong = spoil(&|handle| handle.put(COUNTS, &count, &value).unwrap());
    assert!(wrong.contains("is 1, its links are 2"), "{wrong}");
    let gone = spoil(&|handle| handle.delete(COUNTS, &count).unwrap());
    assert!(gone.contains("3 links can be seen, 1 are counted"), "{gone}");
    let short = spoil(&|handle| handle.put(LINKS, &row, b"short").unwrap());
    assert!(short.contains("`linktable`"), "{short}");
}

#[test]
fn damaged_rows_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let store = three_links(dir.path());
    let mut handle = store.engine.handle().unwrap();
    let mut session = store.session().unwrap();
    let mut key = Encoder::new();
    handle.put(NODES, &1u64.to_be_bytes(), b"short").unwrap();
    handle.put(COUNTS, count_key(&mut key, 1, LINK_TYPE), b"short").unwrap();
    handle.put(LINKS, link_key(&mut key, 1, LINK_TYPE, 1), b"short").unwrap();
    let range = LinkRange { id1: 9, link_type: LINK_TYPE, newest: u64::MAX, skip: 0, limit: 10 };
    let entry = key.start().u64(9).u64(LINK_TYPE).u8(1).u64_descending(16).u64(9).bytes();
    handle.put(INDEX, entry, b"\0").unwrap();
    let errors = [
        session.get_node(NODE_TYPE, 1, &mut |_| ()).unwrap_err(),
        session.count_links(1, LINK_TYPE).unwrap_err(),
        session.delete_link(1, LINK_TYPE, 1).unwrap_err(),
        session.delete_link(1, LINK_TYPE, 2).unwrap_err(),
        session.get_links(1, LINK_TYPE, &[1], &mut |_| ()).unwrap_err(),
        session.get_link_list(&range, &mut |_| ()).unwrap_err(),
    ];
    for (error, tree) in errors.iter().zip([NODES, COUNTS, LINKS, COUNTS, LINKS, INDEX]) {
        assert!(error.to_string().contains(TREES[tree]), "{error}");
    }
}

/// Writes of any kind that went to a [`Counting`].
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A model that counts its writes and refuses each third one.
struct Counting(Model);

struct CountingHandle(ModelHandle);

impl CountingHandle {
    fn count(&self) -> Result<()> {
        let refused = WRITES.fetch_add(1, Ordering::Relaxed) % 3 == 2;
        if refused { Err("refused".into()) } else { Ok(()) }
    }
}

impl Engine for Counting {
    type Handle = CountingHandle;
    const NAME: &'static str = "counting";

    fn version() -> String {
        String::new()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Counting> {
        Model::open(dir, setup, trees).map(Counting)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<CountingHandle> {
        self.0.handle().map(CountingHandle)
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.0.clear_tree(tree)
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl Handle for CountingHandle {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.count()?;
        self.0.put(tree, key, value)
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        self.0.get(tree, key, found)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.count()?;
        self.0.delete(tree, key)
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        self.count()?;
        self.0.write(batch)
    }

    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.0.scan(tree, from, rows, row)
    }
}

#[test]
fn a_change_of_links_is_one_write_and_whole_when_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let store = KvStore::<Counting>::open(dir.path(), &Setup::default(), &TREES).unwrap();
    let mut session = store.session().unwrap();
    let mut random = Random::new(4);
    let (mut refused, mut done) = (0, 0);
    for time in 0..3000 {
        let (id1, link_type, id2) = (1 + random.below(3), LINK_TYPE, 1 + random.below(9));
        let before = WRITES.load(Ordering::Relaxed);
        let (visible, version) = (true, 0);
        let answer = if random.below(3) == 0 {
            session.delete_link(id1, link_type, id2)
        } else {
            let link = Link { id1, link_type, id2, visible, time, version, data: b"x" };
            session.add_link(&link)
        };
        let writes = WRITES.load(Ordering::Relaxed) - before;
        match answer {
            Ok(false) => assert!(writes <= 1, "nothing to delete, or a link that was there"),
            Ok(true) => assert_eq!(writes, 1),
            Err(_) => assert_eq!(writes, 1),
        }
        refused += u32::from(answer.is_err());
        done += u32::from(answer.is_ok() && writes == 1);
        check(&store).unwrap();
    }
    assert!(refused > 500 && done > 1000, "{refused} {done}");
}
