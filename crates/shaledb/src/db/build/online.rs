//! A tree that is filled from live data.
//!
//! From its creation on writers write to the tree what they change. One scan of the source, at one
//! snapshot, gives what was there; it is sorted, written to tables, and put beneath all that the
//! writers have written: `ingest/beneath`. So a newer change hides an older row, and the end takes
//! as long as an edit of the manifest. Until then no delete in the tree may go, and an open drops
//! the tree. For a tree of unique keys writers write to another one beside it: `unique`.
//! docs/decisions/0013-online-index-builds.md has the reasons.

use super::changes::drop_unfinished;
use super::entry::entry_of_row;
use super::options::BuildOptions;
use super::sorter::Sorter;
use super::unique::Unique;
use super::writers::wait_for_writers;
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::db::api::{Ingest, ScanOptions, Snapshot, Tree};
use crate::db::core::Core;
use crate::write::ops::check_bounds;

/// What is added to the name of a unique tree for that of its changes.
const CHANGES_SUFFIX: &str = ".changes";

/// A tree that is being filled while writers go on; see [`Tree::build_online`]. Dropping it drops
/// the tree with all its files, and so does an open after a crash.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// # use shaledb::{BuildOptions, OnlineBuild, TreeConfig};
/// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
/// let mut build: OnlineBuild = people.build_online("by_name", config, options)?;
/// build.add(b"ada1", b"")?;
/// drop(build);
/// assert!(db.tree("by_name").is_err());
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct OnlineBuild {
    source: Tree,
    tree: Tree,
    /// Older than all that is written to the tree.
    seq: SeqNo,
    options: BuildOptions,
    sorter: Option<Sorter>,
    /// What has come so far of entries that come in order.
    run: Option<Ingest>,
    entries: u64,
    unique: Option<Unique>,
    /// After a failure what has come so far is only a part.
    failed: Option<Error>,
}

impl std::fmt::Debug for OnlineBuild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnlineBuild").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// Takes the entries of one row of the source.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// # use shaledb::{BuildOptions, TreeConfig};
/// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
/// # people.put(b"7", b"ada lovelace")?;
/// let mut build = people.build_online("words", config, options)?;
/// build.fill(|key, value, entries| {
///     let mut words = value.split(|byte| *byte == b' ');
///     words.try_for_each(|word| entries.add(&[word, key].concat(), b""))
/// })?;
/// assert!(build.finish()?.contains(b"lovelace7")?);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub struct Entries<'a> {
    build: &'a mut OnlineBuild,
    /// An entry that could not be added, even if nobody is told.
    failed: Option<Error>,
}

impl Entries<'_> {
    /// Adds an entry of the row.
    ///
    /// # Errors
    /// As [`OnlineBuild::add`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// # people.put(b"7", b"ada")?;
    /// let mut build = people.build_online("by_name", config, options)?;
    /// build.fill(|key, value, entries| entries.add(&[value, key].concat(), b""))?;
    /// assert_eq!(build.entries(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let added = self.build.try_add(key, value);
        added.inspect_err(|error| self.failed = Some(error.clone()))
    }
}

impl Tree {
    /// Begins to build a tree from this one while writers go on, such as an index.
    ///
    /// The new tree is there at once. Whoever changes the source from now on writes to the new tree
    /// too, in the same batch or transaction: a put of each entry that comes, a delete of each
    /// that goes. They need not know how far the build is. Its reads are complete after
    /// [`OnlineBuild::finish`], at snapshots taken since [`OnlineBuild::snapshot`]; older ones do
    /// not see the right entries.
    ///
    /// An entry's key must tell its row (end with the primary key, say): what puts it and what
    /// deletes it are the same row's.
    ///
    /// # Unique keys
    /// With [`BuildOptions::unique`] keys are of one row each, and values tell which. Writers do
    /// not look for duplicates meanwhile. They write to [`OnlineBuild::tree`], which is then not
    /// the new tree but one of changes beside it, named `NAME.changes`. There they put and delete
    /// each entry under [`entry_of_row`], with the same value. [`OnlineBuild::catch_up`] takes
    /// what they have written, and [`OnlineBuild::finish`] the last of it, with writers held off.
    ///
    /// # The caller's part While this call runs nobody may be changing the source who does not
    /// write to the new tree: hold writers off for the moment, by a lock that each takes to read.
    /// Transactions that have written to the source, prepared ones too, are waited for; batches and
    /// optimistic transactions cannot be seen. A build is dropped under the same lock: who then
    /// writes to its tree gets [`Error::NoSuchTree`].
    ///
    /// # Errors
    /// [`Error::TreeExists`] if the name is taken; [`Error::LockTimeout`] if a transaction does not
    /// end in [`BuildOptions::writers_wait`]; [`Error::Config`] for a setting out of range. There
    /// is no new tree then.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// use shaledb::{BuildOptions, TreeConfig, WriteOptions};
    ///
    /// let people = db.tree_or_create("people")?;
    /// people.put(b"1", b"ada")?;
    /// people.put(b"2", b"grace")?;
    /// let entry = |name: &[u8], key: &[u8]| [name, b"/", key].concat();
    ///
    /// let options = BuildOptions::default();
    /// let mut build = people.build_online("by_name", TreeConfig::default(), options)?;
    /// let by_name = build.tree().clone();
    /// build.fill(|key, value, entries| entries.add(&entry(value, key), b""))?;
    ///
    /// // A writer, meanwhile: 1 gets another name.
    /// let mut batch = shaledb::Batch::new();
    /// batch.put(&people, b"1", b"lovelace");
    /// batch.delete(&by_name, &entry(b"ada", b"1"));
    /// batch.put(&by_name, &entry(b"lovelace", b"1"), b"");
    /// db.write(&batch, WriteOptions::default())?;
    ///
    /// let by_name = build.finish()?;
    /// let keys: Vec<_> = by_name.scan::<&[u8]>(..)?.map(|row| row.unwrap().0).collect();
    /// assert_eq!(keys, [&b"grace/2"[..], b"lovelace/1"]);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn build_online(
        &self,
        name: &str,
        config: TreeConfig,
        options: BuildOptions,
    ) -> Result<OnlineBuild> {
        self.check()?;
        if options.unique.is_some() && options.memory_bytes == 0 {
            let what = "a unique build sorts: memory_bytes must not be 0";
            return Err(Error::InvalidArgument(what.to_owned()));
        }
        let changes = format!("{name}{CHANGES_SUFFIX}");
        let mut created = vec![(name, config.clone())];
        created.extend(options.unique.map(|_| (&*changes, config)));
        let (trees, seq) = self.handle.core.begin_build(&created)?;
        let mut trees = trees.into_iter().map(|inner| Tree { handle: self.handle.clone(), inner });
        let tree = trees.next().ok_or_else(|| Error::NoSuchTree(name.to_owned()))?;
        let with = options.unique.zip(trees.next());
        let build = OnlineBuild {
            source: self.clone(),
            tree,
            seq,
            options,
            sorter: None,
            run: None,
            entries: 0,
            unique: with.map(|(row, changes)| Unique::new(changes, row, seq)),
            failed: None,
        };
        build.wait_for_writers()?;
        Ok(build)
    }
}

impl OnlineBuild {
    fn core(&self) -> &Arc<Core> {
        &self.tree.handle.core
    }

    /// Waits for all who have written to the source, or have written changes.
    fn wait_for_writers(&self) -> Result<()> {
        let trees = [&self.source, self.tree()];
        wait_for_writers(self.core(), &trees, self.options.writers_wait, self.tree.name())
    }

    /// The tree that those who change the source write to: the new one or, of a unique build, that
    /// of its changes.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let build = people.build_online("by_name", config, options)?;
    /// assert_eq!(build.tree().name(), "by_name");
    /// drop(build);
    /// assert!(db.tree("by_name").is_err());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn tree(&self) -> &Tree {
        self.unique.as_ref().map_or(&self.tree, |unique| &unique.changes.tree)
    }

    /// A snapshot of what the source has now, for who gives entries by [`OnlineBuild::add`]: all of
    /// them must be those of one such snapshot.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// people.put(b"1", b"ada")?;
    /// let mut build = people.build_online("by_name", config, options)?;
    /// let snapshot = build.snapshot();
    /// if let Some(name) = people.get_at(b"1", &snapshot)? {
    ///     build.add(&[&*name, b"1"].concat(), b"")?;
    /// }
    /// assert!(build.finish()?.contains(b"ada1")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.core())
    }

    /// Adds an entry of the snapshot, in any order; with [`BuildOptions::memory_bytes`] 0 keys have
    /// to ascend. Of equal keys the last one counts, of unique ones if they are of the same row.
    /// Nobody sees it before [`OnlineBuild::finish`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the key is longer than 64 KiB, of unique ones together with
    /// the row, if it does not ascend where it has to, or if the value tells no row; what the disk
    /// fails with. Then the build has failed, since the entry is not in it: drop it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let mut build = people.build_online("by_name", config, options)?;
    /// build.add(b"grace2", b"")?;
    /// build.add(b"ada1", b"")?;
    /// assert_eq!(build.finish()?.scan::<&[u8]>(..)?.count(), 2);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_whole()?;
        let added = self.try_add(key, value);
        self.fail_with(added)
    }

    fn try_add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tree.check()?;
        self.core().check_writable()?;
        let entry = match &self.unique {
            None => None,
            Some(unique) if unique.has_rows() => {
                let what = "all entries must be added before the first catch_up; drop the build";
                return Err(Error::InvalidArgument(what.to_owned()));
            }
            Some(unique) => Some(entry_of_row(key, unique.row_of(value)?)),
        };
        let key = entry.as_deref().unwrap_or(key);
        check_bounds(key, value)?;
        if self.options.memory_bytes == 0 {
            return self.add_in_order(key, value);
        }
        let sorter = match &mut self.sorter {
            Some(sorter) => sorter,
            None => {
                let (core, bytes) = (&self.tree.handle.core, self.options.memory_bytes);
                self.sorter.insert(Sorter::new(core, &self.tree.inner, bytes))
            }
        };
        sorter.add(key, value)?;
        self.entries += 1;
        Ok(())
    }

    fn add_in_order(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let run = match &mut self.run {
            Some(run) => run,
            None => self.run.insert(Ingest::new(self.tree.clone())?),
        };
        run.add(key, value)?;
        self.entries += 1;
        Ok(())
    }

    /// Refuses to go on after a failure.
    fn check_whole(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn fail_with<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Scans the source at one snapshot and adds what `entries_of` makes of each row: key, value,
    /// and where to put its entries. An error of `entries_of` ends the scan, for whoever wants to
    /// give the build up; it cannot be finished then.
    ///
    /// # Errors
    /// Those of `entries_of`, of the scan, and of [`OnlineBuild::add`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// people.put(b"1", b"ada")?;
    /// let mut build = people.build_online("by_name", config, options)?;
    /// build.fill(|key, value, entries| entries.add(&[value, key].concat(), b""))?;
    /// assert!(build.finish()?.contains(b"ada1")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn fill(
        &mut self,
        entries_of: impl FnMut(&[u8], &[u8], &mut Entries<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_whole()?;
        // Whatever ends it, by a panic too: what it has given is a part.
        let ended = "a scan of the source did not come to its end; drop the build";
        self.failed = Some(Error::InvalidArgument(ended.to_owned()));
        let filled = self.fill_from_scan(entries_of);
        self.failed = filled.as_ref().err().cloned();
        filled
    }

    fn fill_from_scan(
        &mut self,
        mut entries_of: impl FnMut(&[u8], &[u8], &mut Entries<'_>) -> Result<()>,
    ) -> Result<()> {
        let (snapshot, source) = (self.snapshot(), self.source.clone());
        let options =
            ScanOptions { snapshot: Some(&snapshot), fill_cache: false, ..ScanOptions::default() };
        let mut entries = Entries { build: self, failed: None };
        for row in source.scan_with(options)? {
            let (key, value) = row?;
            entries_of(&key, &value, &mut entries)?;
            if let Some(error) = entries.failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// How many entries were added.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let mut build = people.build_online("by_name", config, options)?;
    /// build.add(b"ada1", b"")?;
    /// assert_eq!(build.entries(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The bytes that sorting takes in memory now.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # let config = shaledb::TreeConfig::default();
    /// let options = shaledb::BuildOptions { memory_bytes: 10_000, ..Default::default() };
    /// let mut build = people.build_online("by_name", config, options)?;
    /// for n in 0..1000u32 {
    ///     build.add(&n.to_le_bytes(), b"a value of some length")?;
    ///     assert!(build.memory_bytes() <= 10_000);
    /// }
    /// assert!(build.spilled_bytes() > 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.sorter.as_ref().map_or(0, Sorter::memory_bytes)
    }

    /// The bytes that sorting has written to files, each time that it has.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let build = people.build_online("by_name", config, options)?;
    /// assert_eq!(build.spilled_bytes(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn spilled_bytes(&self) -> u64 {
        self.sorter.as_ref().map_or(0, Sorter::spilled_bytes)
    }

    /// Takes what writers have changed since the last call, of a unique build; answers how many
    /// entries that were. The first call takes the rows that were added, too, and all must have
    /// been. Writers go on. The fewer entries are left, the shorter they are held off by
    /// [`OnlineBuild::finish`]: call it until it answers few, or no fewer than before. A build that
    /// is not unique has nothing to take.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if two of the rows that were added have the same key;
    /// [`Error::InvalidArgument`] if a writer has put something else than an entry of (key, row);
    /// what the disk fails with. The build has failed then: drop it.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// use shaledb::{Batch, BuildOptions, Error, TreeConfig, UniqueRow, entry_of_row};
    ///
    /// people.put(b"1", b"ada")?;
    /// people.put(b"2", b"grace")?;
    /// let options = BuildOptions { unique: Some(UniqueRow::Value), ..BuildOptions::default() };
    /// let mut build = people.build_online("by_name", TreeConfig::default(), options)?;
    /// let changes = build.tree().clone();
    /// build.fill(|key, value, entries| entries.add(value, key))?;
    ///
    /// // A writer, meanwhile: 2 gets the name of 1.
    /// let mut batch = Batch::new();
    /// batch.put(&people, b"2", b"ada");
    /// batch.delete(&changes, &entry_of_row(b"grace", b"2"));
    /// batch.put(&changes, &entry_of_row(b"ada", b"2"), b"2");
    /// db.write(&batch, shaledb::WriteOptions::default())?;
    ///
    /// while build.catch_up()? > 1000 {}
    /// // Now nobody writes.
    /// let error = build.finish().unwrap_err();
    /// assert!(matches!(error, Error::Duplicate { key, .. } if key == b"ada"));
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn catch_up(&mut self) -> Result<u64> {
        self.check_whole()?;
        let caught_up = self.take_changes(true);
        self.fail_with(caught_up)
    }

    fn take_changes(&mut self, flush: bool) -> Result<u64> {
        let Some(unique) = &mut self.unique else { return Ok(0) };
        unique.put_rows(&self.tree, self.sorter.take(), self.seq)?;
        unique.round(&self.tree, flush)
    }

    /// Writes the entries to tables and puts them beneath what writers have written meanwhile. The
    /// tree is complete and durable then. Writers go on; only those of this tree may wait for a
    /// flush, as ever. Answers with the tree.
    ///
    /// A unique build takes the last changes, and for that nobody may be writing to the source or
    /// to the changes: hold writers off while this call runs. Prepared transactions are waited for.
    /// From then on writers write to the tree itself, and keep its keys unique.
    ///
    /// # Errors
    /// That of the call that has failed, if one has; [`Error::NoSuchTree`] if the tree has been
    /// dropped; what the disk fails with. Of a unique build as [`OnlineBuild::catch_up`], and
    /// [`Error::Duplicate`] if two rows have the same key now; [`Error::LockTimeout`] if a
    /// transaction does not end in [`BuildOptions::writers_wait`]. The tree is gone then; but after
    /// [`Error::Poisoned`] the next open decides, and it is either complete or gone.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let build = people.build_online("by_name", config, options)?;
    /// let by_name = build.finish()?;
    /// assert_eq!(db.tree("by_name")?.id(), by_name.id());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<Tree> {
        self.try_finish()
    }

    /// As [`OnlineBuild::finish`], but after an error the build stays, with its tree: writers go
    /// on, and their commits succeed, until it is dropped. It is good for nothing else then.
    ///
    /// # Errors
    /// As [`OnlineBuild::finish`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # use shaledb::{BuildOptions, TreeConfig};
    /// # let (config, options) = (TreeConfig::default(), BuildOptions::default());
    /// let mut build = people.build_online("by_name", config, options)?;
    /// let by_name = build.try_finish()?;
    /// assert_eq!(db.tree("by_name")?.id(), by_name.id());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn try_finish(&mut self) -> Result<Tree> {
        self.check_whole()?;
        let ended = self.end();
        let gone = || Error::InvalidArgument("the build has ended; drop it".to_owned());
        self.failed = Some(ended.as_ref().err().cloned().unwrap_or_else(gone));
        ended
    }

    fn end(&mut self) -> Result<Tree> {
        self.tree.check()?;
        if self.unique.is_some() {
            self.wait_for_writers()?;
            self.take_changes(false)?;
            self.unique.iter().try_for_each(|unique| unique.check(&self.tree))?;
            self.core().end_build(&self.tree.inner)?;
            return Ok(self.tree.clone());
        }
        let mut run = match self.run.take() {
            Some(run) => run,
            None => Ingest::new(self.tree.clone())?,
        };
        if let Some(sorter) = self.sorter.take() {
            sorter.drain(&mut |key, value| run.add(key, value))?;
        }
        run.finish_beneath(self.seq, true)?;
        Ok(self.tree.clone())
    }
}

impl Drop for OnlineBuild {
    /// Drops what is unfinished: the tree, and that of its changes in any case.
    fn drop(&mut self) {
        self.sorter = None;
        self.run = None;
        let changes = self.unique.iter().map(|unique| &unique.changes.tree);
        let trees: Vec<&Tree> = std::iter::once(&self.tree).chain(changes).collect();
        drop_unfinished(&trees);
    }
}
