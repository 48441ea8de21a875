//! The log of a database: appending to it, syncing it, and going on in a new file.

use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::stats::{Counter, Timed};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, FlushedOf, Leader, LiveWal, TreeCore};
use crate::memtable::chunk;
use crate::table::format::FileKind;
use crate::table::meta::FileId;
use crate::wal::{LogSyncer, LogWriter, payload};
use crate::write::queue::Group;

impl Core {
    pub fn append_records(&self, leader: &mut Leader, group: &Group, first: SeqNo) -> Result<()> {
        let durable = self.durable.load(Ordering::Acquire);
        let mut buffer = std::mem::take(&mut leader.buffer);
        buffer.clear();
        let Some(wal) = leader.wal.as_mut() else { return Err(Error::Closed) };
        let framer = wal.framer();
        let mut seq = first;
        for (ops, count) in group.commits() {
            framer.frame(&mut buffer, |out| {
                payload::begin(out, seq, durable);
                out.extend_from_slice(ops);
            });
            seq += SeqNo::from(count);
        }
        debug_assert_eq!(
            seq,
            first + SeqNo::from(group.ops.count()),
            "each operation has a number"
        );
        let result = self.append(leader, &buffer);
        if result.is_ok() {
            self.recorder.add(Counter::CommitGroups, 1);
        }
        if buffer.capacity() <= 4 << 20 {
            leader.buffer = buffer;
        }
        result
    }

    /// Appends framed records. After a full disk the log is as it was, after any other error it is
    /// unknown.
    fn append(&self, leader: &mut Leader, records: &[u8]) -> Result<()> {
        let Some(wal) = leader.wal.as_mut() else { return Err(Error::Closed) };
        match wal.append(records) {
            Ok(()) => {
                leader.dirty = true;
                if wal.takes_wish() | chunk::takes_wish() {
                    self.log_keeper.call();
                }
                self.recorder.add(Counter::WalBytes, records.len() as u64);
                Ok(())
            }
            Err(error) if error.is_without_room() => Err(error),
            Err(error) => Err(self.poison(error)),
        }
    }

    /// A table must not become durable before older operations that are only in the log: a crash
    /// would leave a hole. So this syncs the log up to `through`, the last operation of what is to
    /// be flushed, unless everything up to there is synced, or will be in tables and nothing is
    /// prepared. Newer operations may be of the same batch as that last one, so those of other
    /// trees count too; those of the same tree do not if it is flushed alone, since memtables are
    /// sealed between batches. Commits go on meanwhile.
    pub fn sync_before_flush(&self, flushed: &FlushedOf<'_>, through: SeqNo) -> Result<()> {
        if self.durable.load(Ordering::Acquire) >= through {
            return Ok(());
        }
        let trees = self.trees.load();
        let alone = |tree: &TreeCore| flushed.len() == 1 && flushed.contains_key(&tree.id);
        let mut others = trees.by_id.values().filter(|tree| !alone(tree));
        // The log goes on being read from a prepare on, so it must have all numbers that tables
        // have: else a recovery would give those out again, and take new operations for old ones.
        let prepared = self.prepared.lock().values().any(|one| one.log_seq().is_some());
        // So after its commit, too, which must not be lost while its writes stay: it would be found
        // prepared again. This comes second: a commit is noted before it is prepared no more.
        let decided = self.decided.load(Ordering::Acquire) > self.durable.load(Ordering::Acquire);
        let waits = others.any(|tree| tree.first_unflushed_but(flushed).is_some());
        if !decided && !prepared && !waits {
            return Ok(());
        }
        let reached = self.sync_beside_commits()?;
        assert!(reached.is_none_or(|seq| seq >= through), "what is flushed has been in the log");
        Ok(())
    }

    /// Makes the log durable up to now, while commits go on; answers with the last operation that
    /// is, or `None` if the database is closed.
    pub fn sync_beside_commits(&self) -> Result<Option<SeqNo>> {
        let (mut syncers, reached) = {
            let leader = self.leader.lock();
            let Some(wal) = leader.wal.as_ref() else { return Ok(None) };
            let mut syncers = leader.unsynced.clone();
            syncers.push(Arc::new(wal.syncer()?));
            (syncers, leader.next_seq - 1)
        };
        let started = self.env.clock.now_nanos();
        let mut is_own = false;
        for syncer in &syncers {
            is_own |= syncer.sync().map_err(|error| self.poison(error))?;
        }
        self.durable.fetch_max(reached, Ordering::AcqRel);
        if !is_own && syncers.len() == 1 {
            // The rest is for the one who has synced.
            return Ok(Some(reached));
        }
        self.note_sync(started);
        let mut leader = self.leader.lock();
        leader.unsynced.retain(|kept| !syncers.iter().any(|done| Arc::ptr_eq(done, kept)));
        if leader.next_seq - 1 == reached {
            // Nothing was appended meanwhile.
            leader.dirty = false;
        }
        drop(leader);
        // The last one is of the log that went on: nobody has removed it.
        syncers.pop();
        self.close_behind(syncers);
        Ok(Some(reached))
    }

    /// Lets go of logs that are not to be synced any more: a flush may have removed their files.
    fn close_behind(&self, syncers: Vec<Arc<LogSyncer>>) {
        if !syncers.is_empty() {
            self.tables.let_go(syncers);
        }
    }

    /// Takes the next sequence number for something that is not in the log.
    pub fn append_nothing(&self, leader: &mut Leader) -> Result<()> {
        self.append_one(leader, payload::put_nothing).map(drop)
    }

    /// Appends a record of one operation; answers with its sequence number. Whoever calls makes it
    /// visible.
    pub fn append_one(&self, leader: &mut Leader, put: impl FnOnce(&mut Vec<u8>)) -> Result<SeqNo> {
        let seq = leader.next_seq;
        let durable = self.durable.load(Ordering::Acquire);
        let Some(wal) = leader.wal.as_mut() else { return Err(Error::Closed) };
        let mut record = Vec::new();
        wal.framer().frame(&mut record, |out| {
            payload::begin(out, seq, durable);
            put(out);
        });
        self.append(leader, &record)?;
        debug_assert!(seq > self.visible.load(Ordering::Relaxed), "the number is new");
        leader.next_seq = seq + 1;
        Ok(seq)
    }

    /// Goes on in a new log file. If none can be made (a full disk), the present one is kept.
    pub fn rotate_log(&self, leader: &mut Leader) {
        let Some(old) = leader.wal.as_ref() else { return };
        let opened = old.syncer().and_then(|syncer| Ok((syncer, self.next_log(old.id())?)));
        let (syncer, wal) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "no new log file could be made; the present one grows on");
                return;
            }
        };
        assert!(wal.id() > old.id(), "logs are replayed in the order of their numbers");
        let old_bytes = old.bytes();
        // What is in logs that are gone is in tables: they would keep their files.
        let first = self.log_file.load(Ordering::Acquire);
        self.close_behind(leader.unsynced.extract_if(.., |kept| kept.id() < first).collect());
        if leader.dirty {
            leader.unsynced.push(Arc::new(syncer));
        }
        {
            let mut wals = self.wals.lock();
            if let Some(last) = wals.last_mut() {
                assert!(last.id < wal.id() && last.last_seq.is_none(), "only the last log grows");
                last.last_seq = Some(leader.next_seq - 1);
                last.bytes = old_bytes;
            }
            wals.push(LiveWal { id: wal.id(), last_seq: None, bytes: 0 });
        }
        self.begin_log(leader, wal);
        self.sched.want_old_logs_freed();
        if let Some(oldest) = self.oldest_log_to_free()
            && let Err(error) = self.prepare_again(leader, oldest)
        {
            tracing::warn!(%error, "old logs are kept for a prepared transaction");
        }
    }

    /// Goes on in this log file.
    pub fn begin_log(&self, leader: &mut Leader, wal: LogWriter) {
        if !self.stepped {
            self.log_keeper.keep(wal.preparer());
        }
        if let Some(old) = leader.wal.replace(wal) {
            self.log_keeper.note_pace(old.pace());
        }
        leader.dirty = false;
        // What is left to be done for the old one is not this thread's to do.
        self.log_keeper.call();
    }

    /// Sees to it that the next log file will be there; whether it is. Who steps has no threads
    /// that make one, and makes it when it is needed.
    pub fn sees_to_next_log(&self, leader: &Leader) -> bool {
        let after = leader.wal.as_ref().map_or(0, LogWriter::id);
        let is_next = |spare: &LogWriter| spare.id() > after;
        if self.stepped || self.spare_log.lock().as_ref().is_some_and(is_next) {
            return true;
        }
        self.sched.want_spare_log();
        self.log_keeper.call_later();
        false
    }

    /// A new log file: the one made in advance, if it is there.
    fn next_log(&self, after: FileId) -> Result<LogWriter> {
        // Logs are replayed in the order of their numbers. One that came too late stays: its name
        // is to be removed, too.
        let spare = self.spare_log.lock().take_if(|spare| spare.id() > after);
        let log = spare.map_or_else(|| self.create_log(), Ok);
        // Not before: the spare one comes after this one.
        self.sched.want_spare_log();
        log
    }

    fn create_log(&self) -> Result<LogWriter> {
        let (id, pace) = (self.new_file(), self.log_keeper.pace());
        LogWriter::create(&*self.env.fs, &self.path(FileKind::Wal, id), id, &self.guard, pace)
    }

    /// Makes the next log file in advance: that syncs the directory, which no writer should wait
    /// for.
    pub fn make_spare_log(&self) -> Result<()> {
        let newest = self.wals.lock().last().map_or(0, |wal| wal.id);
        if self.spare_log.lock().as_ref().is_some_and(|spare| spare.id() > newest) {
            return Ok(());
        }
        let log = self.create_log()?;
        if let Some(preparer) = log.preparer()
            && !self.stepped
        {
            // The first append finds its pages mapped, and the thread ahead some time.
            while preparer.prepare() {}
        }
        let old = {
            let mut spare = self.spare_log.lock();
            // Another thread may have made a later one meanwhile.
            if spare.as_ref().is_some_and(|other| other.id() > log.id()) {
                Some(log)
            } else {
                spare.replace(log)
            }
        };
        if let Some(old) = old {
            self.env.fs.remove(old.path())?;
        }
        Ok(())
    }

    /// Makes every record appended so far, which end at `through`, durable. A failure poisons:
    /// what the kernel did with the pages is unknown, and a second sync would answer for others.
    pub fn sync_log(&self, leader: &mut Leader, through: SeqNo) -> Result<()> {
        if !leader.dirty && leader.unsynced.is_empty() {
            return Ok(());
        }
        let started = self.env.clock.now_nanos();
        let mut run = || -> Result<()> {
            for syncer in &leader.unsynced {
                syncer.sync()?;
            }
            if let Some(wal) = leader.wal.as_mut() {
                wal.sync()?;
            }
            Ok(())
        };
        // After a failure all count as not synced: no later call answers that they are.
        run().map_err(|error| self.poison(error))?;
        self.close_behind(std::mem::take(&mut leader.unsynced));
        leader.dirty = false;
        self.durable.fetch_max(through, Ordering::AcqRel);
        self.note_sync(started);
        Ok(())
    }

    pub fn note_sync(&self, started: u64) {
        let nanos = self.env.clock.now_nanos() - started;
        self.recorder.add_all([(Counter::WalSyncs, 1), (Counter::WalSyncNanos, nanos)]);
        self.recorder.time(Timed::Sync, nanos);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use crate::table::gone::Gone;
    use crate::{Background, Config, Db, Env, OpenOptions};

    #[test]
    fn logs_that_are_gone_are_not_kept_for_a_sync() {
        let config =
            Config { memory_bytes: 8 << 20, memtable_bytes: 64 << 10, ..Config::default() };
        let (env, background) = (Env::memory(), Background::Stepped);
        let db =
            Db::open_in("/db", config, OpenOptions { env, background, read_only: false }).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        db.core().tables.wake_remover_by(|| ());
        for n in 0..2_000u32 {
            tree.put(&n.to_be_bytes(), &[7; 1000]).unwrap();
            if n % 100 == 99 {
                db.flush().unwrap();
            }
        }
        let kept = db.core().leader.lock().unsynced.len();
        assert!(kept < 4, "{kept}");
        // To close the last of a file that was removed takes long: no writer should have to.
        let gone = db.core().tables.take_gone();
        assert!(gone.iter().any(|gone| matches!(gone, Gone::Held(_))), "{}", gone.len());
    }

    #[test]
    fn a_log_that_was_made_in_advance_too_late_makes_way_for_another() {
        let config = Config { memory_bytes: 8 << 20, ..Config::default() };
        let (env, background) = (Env::memory(), Background::Stepped);
        let fs = env.fs.clone();
        let db =
            Db::open_in("/db", config, OpenOptions { env, background, read_only: false }).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        let core = db.core();
        let newest = || core.leader.lock().wal.as_ref().unwrap().id();
        let late = core.create_log().unwrap();
        let (id, path) = (late.id(), late.path().to_path_buf());
        core.spare_log.lock().take();
        tree.put(b"a", b"1").unwrap();
        core.rotate_log(&mut core.leader.lock());
        assert!(newest() > id, "a writer has made its own meanwhile");
        *core.spare_log.lock() = Some(late);
        tree.put(b"b", b"2").unwrap();
        core.rotate_log(&mut core.leader.lock());
        assert!(fs.exists(&path).unwrap());
        core.make_spare_log().unwrap();
        let spare = core.spare_log.lock().as_ref().unwrap().id();
        assert!(spare > newest() && !fs.exists(&path).unwrap());
        core.make_spare_log().unwrap();
        assert_eq!(core.spare_log.lock().as_ref().unwrap().id(), spare, "it is there already");
        tree.put(b"c", b"3").unwrap();
        core.rotate_log(&mut core.leader.lock());
        assert_eq!(newest(), spare);
        assert_eq!(tree.scan::<&[u8]>(..).unwrap().count(), 3);
    }
}
