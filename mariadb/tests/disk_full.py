"""A full disk: statements fail and say so, nothing acknowledged is lost, and writes go on by
themselves once there is space. The tables are on a small file system in memory, so it has to run as
root and be allowed to mount; else it says so and is skipped."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time

import pymysql

from server import Layout, Running, Server, say

BYTES = 96 << 20
BALLAST = 40 << 20
ER_RECORD_FILE_FULL = 1114
ROW_BYTES = 20000
CLIENTS = 120
AFTER = 1000000  # the key of a row that is written when there is space again

# What changes a table as a whole; each has to leave nothing behind.
CHANGES = [
    "alter table t add index by_pad (pad(1000), id)",
    "alter table t add column more int default 7, algorithm=copy",
    "create table t2 engine=shale select * from t",
    "optimize table t",
]


def mount(folder: pathlib.Path) -> bool:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "shale-test", str(folder)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        say(f"disk_full: skipped, no file system can be mounted here: {done.stderr.strip()}")
    return done.returncode == 0


def pad(length: int = ROW_BYTES) -> str:
    """Nothing that a codec could shorten to less than half."""
    return os.urandom(length // 2).hex()


def is_full(error: pymysql.Error) -> None:
    """The error says what happened, where, and what comes next."""
    assert error.args[0] == ER_RECORD_FILE_FULL, error
    for words in ("no space left", "#shale", "resume"):
        assert words in error.args[1], error


def fill(server: Server) -> list[int]:
    """Inserts until that fails: the rows that were acknowledged."""
    connection = server.connect("test")
    done: list[int] = []
    with connection.cursor() as cursor:
        for key in range(20000):
            try:
                cursor.execute("insert into t values (%s, %s)", (key, pad()))
            except pymysql.Error as error:
                is_full(error)
                connection.close()
                return done
            done.append(key)
    raise SystemExit("the disk did not become full")


def refused(server: Server, statement: str) -> bool:
    """Whether the statement failed for want of space; `optimize` tells it in its rows."""
    try:
        rows = server.run(statement, database="test")
    except pymysql.Error as error:
        is_full(error)
        return True
    return any("no space left" in str(row[-1]) for row in rows)


def fill_transaction(server: Server) -> int:
    """Inserts and updates of one transaction until one statement or the commit fails."""
    connection = server.connect("test", autocommit=False)
    with connection.cursor() as cursor:
        try:
            for key in range(500000, 500400):
                cursor.execute("insert into t values (%s, %s)", (key, pad(200000)))
                cursor.execute("update t set pad = %s where id = 0", (pad(),))
            connection.commit()
        except pymysql.Error as error:
            is_full(error)
            connection.rollback()
            connection.close()
            return key - 500000
    raise SystemExit("a transaction of 80 MB was committed to a full disk")


def what_is_there(server: Server) -> list[object]:
    return [
        server.run("select id, md5(pad) from test.t order by id"),
        server.run("show create table test.t"),
        server.run("show tables from test"),
        # Trees of statements that failed are gone.
        server.run("select table_name, index_name from information_schema.shale_trees"
                   " where table_schema = 'test' or table_schema is null order by 1, 2"),
    ]


def write_again(server: Server) -> int:
    """Waits until writes go on; how many tries that took."""
    for tries in range(1, 200):
        try:
            server.run(f"insert into test.t values ({AFTER}, 'after')")
            return tries
        except pymysql.Error as error:
            is_full(error)
            time.sleep(0.1)
    raise SystemExit("writes did not go on, though there is space")


def test(server: Server, disk: pathlib.Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(b"\0" * BALLAST)
    server.start()
    server.run(
        "create database if not exists test",
        "create table test.t (id int primary key, pad mediumtext) engine=shale compression='none'",
    )
    done = fill(server)
    before = what_is_there(server)
    assert [row[0] for row in before[0]] == done, (len(before[0]), len(done))
    for statement in CHANGES:
        assert refused(server, statement), f"there was space for: {statement}"
        assert what_is_there(server) == before, f"this left something behind: {statement}"
    rows = fill_transaction(server)
    assert what_is_there(server) == before, "a transaction that failed left something behind"
    ballast.unlink()
    tries = write_again(server)
    # A copy of the table would not fit even now.
    assert not refused(server, CHANGES[0]), f"there is still no space for: {CHANGES[0]}"
    say(f"disk_full: {len(done)} rows until it was full; {len(CHANGES)} statements and a"
        f" transaction of {rows} rows were refused; writes went on after {tries} tries")
    server.kill()
    server.start()
    keys = [row[0] for row in server.run("select id from test.t order by id")]
    assert keys == [*done, AFTER], (len(keys), len(done))
    assert server.run("check table test.t extended")[-1][3] == "OK"
    server.stop()


def fill_up(disk: pathlib.Path) -> None:
    """A file that takes all that is left, to the last page."""
    with open(disk / "filler", "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"f" * size):
                    pass
            except OSError:
                continue


def commits_that_are_late(server: Server, disk: pathlib.Path, round_: int) -> int:
    """Transactions are prepared and wait for their turn in the binary log when the disk becomes
    full. Their commits fail after they are in the log; how many."""
    server.run("set global binlog_commit_wait_usec = 100000000",
               f"set global binlog_commit_wait_count = {CLIENTS + 1}")

    def insert(client: int) -> bool:
        try:
            server.run(f"insert into test.late (id) values ({round_ * 1000 + client})")
        except pymysql.Error as error:
            assert "the transaction is committed later" in error.args[1], error
            return False
        return True

    waiting = [Running(insert, client) for client in range(CLIENTS)]
    while server.prepared() != CLIENTS:
        assert all(thread.is_alive() for thread in waiting), "a commit did not wait"
        time.sleep(0.02)
    # A merge that ends after the disk is full would give back what it has read.
    server.run("set global shale_wait_idle = on")
    fill_up(disk)
    # The one that makes them enough has nothing of Shale.
    server.run(f"insert into test.other values ({round_})")
    server.run("set global binlog_commit_wait_count = 0")
    return [thread.get() for thread in waiting].count(False)


def late(server: Server, disk: pathlib.Path, copy: pathlib.Path) -> None:
    server.given.append("log-bin=log")
    server.start()
    # With it a merge may be larger than the disk: it would take space, fail, and give it back.
    server.run("drop table test.t")
    server.run("create table test.late (id int primary key, other int) engine=shale",
               "create table test.other (id int primary key) engine=innodb")
    rows = "select count(*) from test.late"
    counts = [commits_that_are_late(server, disk, 1)]
    assert counts[0] > 0, "the disk was full, and every commit was made"
    # What would take the tables for whole.
    for statement in (f"set global shale_checkpoint = '{copy}'",
                      "alter table test.late add index (other)",
                      "alter table test.late add column more int, algorithm=copy"):
        server.refuses(statement, "could not be committed yet")
    (disk / "filler").unlink()
    for _ in range(600):
        if server.run(rows) == [(CLIENTS,)]:
            break
        time.sleep(0.1)
    assert server.run(rows) == [(CLIENTS,)]
    counts.append(commits_that_are_late(server, disk, 2))
    # The log in which they are stays one of those that a start looks into.
    server.run("flush binary logs", "insert into test.other values (0)", "flush binary logs")
    server.kill()
    (disk / "filler").unlink()
    server.start()
    assert server.run(rows) == [(2 * CLIENTS,)]
    counts.append(commits_that_are_late(server, disk, 3))
    # Told to end it ends as by a crash: a binary log that is closed is not looked into.
    assert server.process is not None
    server.process.terminate()
    assert server.process.wait(60) == 1
    (disk / "filler").unlink()
    server.start()
    assert server.run(rows) == [(3 * CLIENTS,)]
    assert min(counts) > 0, counts
    say(f"disk_full: {counts} commits of {CLIENTS} were late, and were made after all")
    server.stop()


def main() -> None:
    layout = Layout()
    # Sorting needs room of its own: the folder of temporary files is not on the small disk.
    server = Server(layout, "full", ["shale-memory=16M", "max-allowed-packet=64M"])
    disk = server.data / "#shale"
    if not mount(disk):
        layout.remove()
        return
    try:
        test(server, disk)
        late(server, disk, disk / "copy")
    finally:
        server.kill()
        subprocess.run(["umount", str(disk)], check=True)
    layout.remove()


if __name__ == "__main__":
    main()
