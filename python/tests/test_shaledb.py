"""What the package promises, beside a dictionary where there is one."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator

import shaledb


class Stop(Exception):
    """What a signal raises."""


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "db"
        self.db = shaledb.open(self.path, memory_bytes=32 << 20)
        self.addCleanup(self.db.close)
        self.tree = self.db.tree("t")


class Trees(Case):
    def test_equals_a_dictionary(self) -> None:
        chance = random.Random(7)
        model: dict[bytes, bytes] = {}
        for step in range(3000):
            key = b"%03d" % chance.randrange(300)
            match_of = chance.randrange(10)
            if match_of < 6:
                model[key] = value = b"v%d" % step * chance.randrange(1, 40)
                self.tree[key] = value
            elif match_of < 8:
                model.pop(key, None)
                self.tree.delete(key)
            elif match_of == 8:
                self.assertEqual(self.tree.get(key), model.get(key))
                self.assertEqual(key in self.tree, key in model)
            elif step % 5 == 0:
                start, stop = sorted((key, b"%03d" % chance.randrange(300)))
                self.tree.delete_range(start, stop)
                model = {k: v for k, v in model.items() if not start <= k < stop}
        rows = sorted(model.items())
        self.assertEqual(list(self.tree.items()), rows)
        self.assertEqual(list(self.tree), [key for key, _ in rows])
        self.assertEqual(list(reversed(self.tree)), [key for key, _ in reversed(rows)])
        self.assertEqual(list(self.tree.values()), [value for _, value in rows])
        inside = [row for row in rows if b"1" <= row[0] < b"2"]
        self.assertEqual(list(self.tree.items(b"1", b"2")), inside)
        self.assertEqual(list(self.tree.items(prefix=b"1", reverse=True)), inside[::-1])
        keys = [b"%03d" % number for number in range(300)]
        self.assertEqual(self.tree.get_many(keys), [model.get(key) for key in keys])
        self.db.flush()
        self.db.compact()
        self.assertEqual(list(self.tree.items()), rows)
        self.tree.clear()
        self.assertEqual(list(self.tree), [])
        self.tree.clear()

    def test_keys_that_are_not_there(self) -> None:
        with self.assertRaises(KeyError) as caught:
            self.tree[b"none"]
        self.assertEqual(caught.exception.args, (b"none",))
        with self.assertRaises(KeyError):
            del self.tree[b"none"]
        self.assertEqual(self.tree.get(b"none", 5), 5)
        self.tree[b"a"] = b""
        del self.tree[b"a"]
        self.assertNotIn(b"a", self.tree)

    def test_trees_come_and_go(self) -> None:
        settings = {"block_bytes": 4096, "codecs": {"bottommost": "zstd:9"}}
        other = self.db.tree("other", settings=settings)
        self.assertEqual(self.db.tree_names(), ["other", "t"])
        other[b"a"] = b"1"
        for again in (
            self.db.tree("other", settings=settings),
            self.db.tree("other", settings=json.dumps(settings)),
            self.db.tree("other", block_bytes=8192),
            self.db.tree("other", create=False),
            self.db.tree("other"),
        ):
            self.assertEqual(again[b"a"], b"1")
        with self.assertRaises(shaledb.TreeExists):
            self.db.tree("other", exist_ok=False)
        with self.assertRaises(shaledb.TreeExists):
            self.db.tree("other", exist_ok=False, block_bytes=4096)
        with self.assertRaises(shaledb.NoSuchTree):
            self.db.tree("third", create=False)
        with self.assertRaises(shaledb.ConfigError):
            self.db.tree("third", create=False, settings=settings)
        with self.assertRaises(shaledb.ConfigError):
            self.db.tree("third", create=False, exist_ok=False)
        with self.assertRaises(shaledb.ConfigError):
            self.db.tree("third", settings=settings, block_bytes=4096)
        with self.assertRaisesRegex(shaledb.ConfigError, "block"):
            self.db.tree("third", block=4096)
        with self.assertRaisesRegex(shaledb.ConfigError, "gzip"):
            self.db.tree("third", codecs={"upper": "gzip"})
        with self.assertRaisesRegex(shaledb.ConfigError, "block_bytes"):
            self.db.tree("other", block_bytes=1)
        self.assertEqual(self.db.tree_names(), ["other", "t"])
        self.db.drop_tree("other")
        with self.assertRaises(shaledb.NoSuchTree):
            other[b"a"] = b"1"

    def test_new_trees_have_the_settings_that_are_asked_for(self) -> None:
        def blob_files(tree: shaledb.Tree) -> int:
            tree[b"a"] = b"x" * 10_000
            stats = json.loads(self.db.stats())
            (one,) = (one for one in stats["trees"] if one["name"] == tree.name)
            return int(one["blob_files"])

        self.assertEqual(blob_files(self.tree), 0)
        self.assertEqual(blob_files(self.db.tree("by name", blob_bytes=4096)), 1)
        self.assertEqual(blob_files(self.db.tree("dict", settings={"blob_bytes": 4096})), 1)
        self.db.close()
        self.db = shaledb.open(self.path, tree={"blob_bytes": 4096})
        self.addCleanup(self.db.close)
        self.assertEqual(blob_files(self.db.tree("default")), 1)
        self.assertEqual(blob_files(self.db.tree("strict", exist_ok=False)), 1)
        self.assertEqual(blob_files(self.db.tree("own", filter_bits=10)), 0)

    def test_loads_and_iterators_are_of_one_moment(self) -> None:
        rows = [(b"%05d" % number, b"x" * 50) for number in range(5000)]
        self.assertEqual(self.tree.load(iter(rows)), len(rows))
        scan = self.tree.items()
        self.assertEqual(next(scan), rows[0])
        self.tree.clear()
        self.assertEqual(list(scan), rows[1:])
        with self.assertRaises(shaledb.InvalidArgument):
            self.tree.load([(b"b", b""), (b"a", b"")])
        self.assertEqual(list(self.tree), [])

    def test_threads_work_side_by_side(self) -> None:
        def work(number: int) -> None:
            for step in range(500):
                self.tree.put(b"%d-%03d" % (number, step), b"%d" % step)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(1 for _ in self.tree), 2000)


class Wholes(Case):
    def test_batches_are_all_or_nothing(self) -> None:
        other = self.db.tree("other")
        with self.db.batch(sync=True) as batch:
            batch.put(self.tree, b"a", b"1")
            batch.put(other, b"b", b"2")
            self.assertEqual(len(batch), 2)
            self.assertNotIn(b"a", self.tree)
        self.assertEqual((self.tree[b"a"], other[b"b"]), (b"1", b"2"))
        with self.assertRaises(ZeroDivisionError):
            with self.db.batch() as batch:
                batch.delete(self.tree, b"a")
                batch.delete_range(other, b"a", b"z")
                raise ZeroDivisionError
        self.assertEqual((self.tree[b"a"], other[b"b"]), (b"1", b"2"))
        with self.assertRaisesRegex(shaledb.Closed, "the batch has ended"):
            batch.put(self.tree, b"a", b"3")

    def test_a_batch_that_failed_is_still_there(self) -> None:
        self.db.close()
        self.db = shaledb.open(self.path, memtable_bytes=64 << 10, space_limit=4 << 20)
        self.addCleanup(self.db.close)
        tree, ballast = self.db.tree("t"), self.db.tree("ballast")
        with self.assertRaises(shaledb.SpaceLimit):
            for number in range(1000):
                ballast[b"%d" % number] = os.urandom(30_000)
        value = os.urandom(3_000_000)
        with self.assertRaises(shaledb.SpaceLimit):
            with self.db.batch() as batch:
                batch.put(tree, b"a", value)
        with self.assertRaises(shaledb.SpaceLimit):
            batch.commit()
        self.assertEqual(len(batch), 1)
        self.db.drop_tree("ballast")
        batch.commit()
        self.assertEqual(tree[b"a"], value)
        with self.assertRaisesRegex(shaledb.Closed, "the batch has ended"):
            batch.commit()

    def test_snapshots_stay(self) -> None:
        self.tree[b"a"] = b"1"
        with self.db.snapshot() as before:
            self.tree[b"a"] = b"2"
            self.assertEqual(self.tree.get(b"a", snapshot=before), b"1")
            self.assertEqual(list(self.tree.items(snapshot=before)), [(b"a", b"1")])
        with self.assertRaises(shaledb.Closed):
            self.tree.get(b"a", snapshot=before)

    def test_transactions(self) -> None:
        self.tree[b"a"] = b"1"
        with self.db.transaction(sync=True) as txn:
            self.assertEqual(txn.get(self.tree, b"a", lock="exclusive"), b"1")
            txn.put(self.tree, b"a", b"2")
            place = txn.savepoint()
            txn.delete(self.tree, b"a")
            txn.delete_range(self.tree, b"x", b"y")
            self.assertEqual(list(txn.items(self.tree)), [])
            txn.rollback_to(place)
            self.assertEqual(txn.get(self.tree, b"a"), b"2")
            self.assertEqual(self.tree[b"a"], b"1")
            with self.db.transaction(lock_timeout=0) as other:
                with self.assertRaises(shaledb.LockTimeout):
                    other.put(self.tree, b"a", b"3")
                other.rollback()
        self.assertEqual(self.tree[b"a"], b"2")
        with self.assertRaises(ZeroDivisionError):
            with self.db.transaction() as txn:
                txn.put(self.tree, b"a", b"3")
                raise ZeroDivisionError
        self.assertEqual(self.tree[b"a"], b"2")
        with self.assertRaises(shaledb.Conflict):
            with self.db.transaction(optimistic=True) as txn:
                txn.put(self.tree, b"a", b"3")
                self.tree[b"a"] = b"4"
        self.assertTrue(issubclass(shaledb.Conflict, shaledb.Retry))

    def test_all_damage_is_told(self) -> None:
        self.db.wait_idle()
        for name in ("one", "two"):
            self.db.tree(name)[b"key"] = b"value"
        self.db.flush()
        self.db.wait_idle()
        tables = list(self.path.glob("*.table"))
        self.assertGreaterEqual(len(tables), 2)
        for table in tables:
            data = bytearray(table.read_bytes())
            data[10] ^= 1
            table.write_bytes(data)
        with self.assertRaises(shaledb.Corruption) as raised:
            self.db.verify()
        self.assertEqual(len(json.loads(raised.exception.report)["damage"]), len(tables))

    def test_a_database_outlives_its_handle(self) -> None:
        self.tree.put(b"a", b"1", sync=True)
        with self.assertRaises(shaledb.Locked):
            shaledb.open(self.path)
        copy = self.path.with_name("copy")
        self.db.checkpoint(copy)
        self.assertEqual(json.loads(self.db.verify())["damage"], [])
        self.assertIn("levels", self.db.stats())
        self.assertGreater(len(str(self.db)), 100)
        self.db.close()
        with self.assertRaises(shaledb.Closed):
            self.tree[b"a"]
        with shaledb.open(self.path, create=False) as again:
            self.assertEqual(again.tree("t")[b"a"], b"1")
            self.assertEqual(again.path, self.path)
        with shaledb.open(copy, read_only=True) as other:
            with self.assertRaises(shaledb.ReadOnly):
                other.tree("t")[b"a"] = b"2"

    def test_iterators_and_snapshots_keep_their_database_open(self) -> None:
        rows = [(b"%05d" % number, b"x" * 50) for number in range(5000)]
        self.tree.load(iter(rows))
        self.db.close()
        scan = shaledb.open(self.path).tree("t").items()
        self.assertEqual(next(scan), rows[0])
        with self.assertRaises(shaledb.Locked):
            shaledb.open(self.path)
        self.assertEqual(list(scan), rows[1:])
        with self.assertRaises(shaledb.Locked):
            shaledb.open(self.path)
        del scan
        snapshot = shaledb.open(self.path).snapshot()
        with self.assertRaises(shaledb.Locked):
            shaledb.open(self.path)
        snapshot.close()
        with shaledb.open(self.path).transaction() as txn:
            with self.assertRaises(shaledb.Locked):
                shaledb.open(self.path)
        del txn
        shaledb.open(self.path).close()

    def test_others_go_on_while_the_last_handle_is_dropped(self) -> None:
        steps, ended = 0, threading.Event()

        def work() -> None:
            nonlocal steps
            while not ended.is_set():
                steps += 1
                time.sleep(0)

        # Nobody is made to let go of the interpreter's lock.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            went_on = False
            for _ in range(50):
                other = shaledb.open(self.path.with_name("other")).tree("t")
                other[b"a"] = b"1"
                before = steps
                del other
                went_on |= steps > before
        finally:
            ended.set()
            sys.setswitchinterval(interval)
            thread.join()
        self.assertTrue(went_on)

    def test_rows_before_damage_are_given(self) -> None:
        for number in range(4000):
            self.tree[b"%06d" % number] = os.urandom(100)
        self.db.compact()
        self.db.close()
        table = next(iter(self.path.glob("*.table")))
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 1
        table.write_bytes(data)
        with shaledb.open(self.path) as db:
            tree = db.tree("t")
            rows, keys = iter(tree.items()), []
            with self.assertRaises(shaledb.Corruption):
                for key, _ in rows:
                    keys.append(key)
            self.assertEqual(keys, [b"%06d" % number for number in range(len(keys))])
            self.assertIn(b"%06d" % (len(keys) - 1), tree)
            with self.assertRaises(shaledb.Corruption):
                tree[b"%06d" % len(keys)]
            self.assertIsNone(next(rows, None), "nothing comes after it")

    def test_a_forked_child_is_refused(self) -> None:
        self.tree[b"a"] = b"1"
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for write in (
                    lambda: self.tree.put(b"child", b"1"),
                    lambda: self.tree.delete(b"a"),
                    lambda: self.tree.clear(),
                    self.db.sync,
                    self.db.flush,
                    self.db.compact,
                    self.db.transaction,
                    self.db.close,
                ):
                    with self.assertRaises(shaledb.Forked):
                        write()
                with self.assertRaises(shaledb.Forked):
                    with self.db.batch() as batch:
                        batch.put(self.tree, b"child", b"1")
                self.assertEqual(self.tree[b"a"], b"1")
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.tree.put(b"b", b"2", sync=True)
        with self.assertRaises(shaledb.Locked):
            shaledb.open(self.path)
        self.db.close()
        with shaledb.open(self.path, create=False) as again:
            self.assertEqual(list(again.tree("t")), [b"a", b"b"])

    @contextlib.contextmanager
    def alarm(self) -> Iterator[None]:
        """A signal comes, as by Ctrl-C, and what is inside is to end by it."""

        def told(*_: object) -> None:
            raise Stop

        before = signal.signal(signal.SIGALRM, told)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with self.assertRaises(Stop):
                yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_signals_end_waits_for_locks(self) -> None:
        self.tree[b"a"] = b"1"
        holder = self.db.transaction()
        holder.put(self.tree, b"a", b"2")
        txn = self.db.transaction(lock_timeout=20)
        serial = self.db.transaction(lock_timeout=20, isolation="serializable")
        for wait in (
            lambda: txn.get(self.tree, b"a", lock="shared"),
            lambda: txn.put(self.tree, b"a", b"3"),
            lambda: txn.delete(self.tree, b"a"),
            lambda: txn.delete_range(self.tree, b"a", b"b"),
            lambda: serial.get(self.tree, b"a"),
            lambda: serial.items(self.tree),
        ):
            with self.alarm():
                wait()
        # They go on.
        txn.put(self.tree, b"b", b"1")
        short = self.db.transaction(lock_timeout=0.01)
        with self.assertRaisesRegex(shaledb.LockTimeout, "10 ms"):
            short.put(self.tree, b"a", b"3")
        holder.commit()
        self.assertEqual(serial.get(self.tree, b"a"), b"2")
        serial.rollback()
        txn.commit()
        self.assertEqual(list(self.tree), [b"a", b"b"])

    def test_a_wait_for_a_lock_ends_when_it_is_free(self) -> None:
        holder = self.db.transaction()
        holder.put(self.tree, b"a", b"1")
        other = threading.Timer(0.2, holder.commit)
        other.start()
        with self.db.transaction(lock_timeout=20, on_conflict="latest") as txn:
            self.assertEqual(txn.get(self.tree, b"a", lock="exclusive"), b"1")
        other.join()

    def test_signals_end_waits_for_background_work(self) -> None:
        ended = threading.Event()
        # Should the signal not come through.
        timer = threading.Timer(20, ended.set)

        def work() -> None:
            value, chance = os.urandom(20_000), random.Random(7)
            while not ended.is_set():
                self.tree[b"%d" % chance.randrange(1 << 30)] = value

        thread = threading.Thread(target=work)
        thread.start()
        timer.start()
        try:
            with self.alarm():
                while True:
                    self.db.wait_idle()
            self.assertFalse(ended.is_set())
        finally:
            ended.set()
            timer.cancel()
            thread.join()
        for call in (self.db.compact, self.db.verify, self.db.wait_idle):
            call()

    def test_a_follower_sees_what_is_written_when_it_looks(self) -> None:
        self.tree[b"a"] = b"1"
        with shaledb.open_follower(self.path, memory_bytes=64 << 20) as follower:
            seen = follower.tree("t", create=False)
            before = follower.refresh()
            self.tree[b"a"] = b"2"
            self.assertEqual(seen[b"a"], b"1")
            self.assertGreater(follower.refresh(), before)
            self.assertEqual(seen[b"a"], b"2")
            with self.assertRaises(shaledb.ReadOnly):
                seen[b"a"] = b"3"
        with self.assertRaises(shaledb.InvalidArgument):
            self.db.refresh()

    def test_wrong_settings_are_named(self) -> None:
        with self.assertRaisesRegex(shaledb.ConfigError, "memory"):
            shaledb.open(self.path.with_name("other"), memory=1)
        with self.assertRaisesRegex(shaledb.ConfigError, "memory_bytes"):
            shaledb.open(self.path.with_name("other"), memory_bytes=1)
        with self.assertRaises(shaledb.NoDatabase):
            shaledb.open(self.path.with_name("other"), create=False)


if __name__ == "__main__":
    unittest.main()
