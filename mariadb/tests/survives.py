"""What has to survive a statement: copies of tables that are committed in parts, and the server's
own log of DDL, beside a disk or a start that fails.

- Whoever has a snapshot from the middle of a copy gets error 1412, or all rows, never a part.
- A change of the catalog whose sync fails ends the server, and the next start has one definition.
- A server whose tables cannot be opened does not start without them.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pymysql

import server as servers
from group_commit import build

ROWS = 60000
PARTS = "partition by hash (id) partitions 2"
# Each copies all rows, one after the other.
COPIES = ("alter table t coalesce partition 1", "alter table t add partition partitions 1",
          "alter table t remove partitioning", "alter ignore table t add unique (a), algorithm=copy")


def make(server: servers.Server, parts: str) -> None:
    server.run("create or replace database d", "use d",
               f"create table t (id int primary key, a int, b varchar(200)) engine=SHALE {parts}",
               f"insert into t select seq, seq, repeat('x', 200) from seq_1_to_{ROWS}")


def snapshots(server: servers.Server) -> None:
    """Snapshots from all over a copy."""
    refused = 0
    for copy in COPIES:
        running = servers.Running(server.run, "use d", copy)
        held = []
        while running.is_alive() and len(held) < 120:
            connection = server.connect("d", autocommit=False)
            with connection.cursor() as cursor:
                cursor.execute("start transaction with consistent snapshot")
            held.append(connection)
            time.sleep(0.02)
        running.get()
        for connection in held:
            with connection.cursor() as cursor:
                try:
                    cursor.execute("select count(*) from t")
                    (rows,) = cursor.fetchone() or (0,)
                    assert rows == ROWS, f"{copy}: a snapshot has {rows} of {ROWS} rows"
                except pymysql.err.Error as error:
                    assert error.args[0] == 1412, error
                    refused += 1
            connection.close()
    assert refused >= len(COPIES), f"only {refused} snapshots were of the middle of a copy"
    print(f"{len(COPIES)} copies: {refused} snapshots of their middle were refused, none had a part")


def failing_syncs(layout: servers.Layout) -> None:
    """A sync of the catalog's change fails."""
    library, fail = build(layout), layout.folder / "fail"
    layout.environment.update(LD_PRELOAD=str(library), SYNCS_FAIL=str(fail))
    server = servers.Server(layout, "failing", ["shale-durability=none"])
    changes = ("alter table d.t add column c int default 7 after id, algorithm=instant",
               "alter table d.t drop column a, algorithm=instant",
               "rename table d.t to d.u, d.u to d.t")
    try:
        server.start()
        for change in changes:
            # A list of partitions the server leaves behind.
            make(server, "")
            # The first sync there is to fail: no flush of these rows may come before the change.
            server.run("flush tables", "set global shale_wait_idle = 1")
            fail.touch()
            try:
                server.run(change)
            except pymysql.err.Error:
                pass
            assert not fail.exists(), f"{change}: nothing was synced"
            assert server.process is not None
            code = server.process.wait(timeout=60)
            assert code == 1, f"{change}: the server went on, or ended with {code}"
            server.process = None
            server.start()
            columns = server.run("select column_name from information_schema.columns"
                                 " where table_schema = 'd' and table_name = 't' order by 1")
            (row,) = server.run("select * from d.t where id = 5")
            assert len(row) == len(columns) and "x" * 200 in row, (change, columns, row)
            server.run("insert into d.t (id, b) values (1000000, 'y')", "check table d.t")
        server.stop()
    finally:
        server.kill()
        for variable in ("LD_PRELOAD", "SYNCS_FAIL"):
            layout.environment.pop(variable, None)
    print(f"{len(changes)} changes whose sync failed: the server ended, and had one definition then")


def failing_start(server: servers.Server) -> None:
    """A start whose settings the database refuses."""
    server.run("create or replace table d.kept (id int primary key) engine=SHALE",
               "insert into d.kept values (1)")
    server.kill()
    wrong = "shale-space-limit=1"
    try:
        server.start(wrong)
    except SystemExit as refused:
        assert "did not start" in str(refused), refused
        text = server.log.read_text(errors="replace")
        assert "does not start without its tables" in text, server.errors()
    else:
        raise AssertionError("a server without its tables has started")
    server.process = None
    server.start("shale=OFF", "default-storage-engine=InnoDB")
    assert server.run("select 1") == [(1,)]
    server.stop()
    server.start()
    assert server.run("select * from d.kept") == [(1,)]
    server.stop()
    print("a start that fails: the server does not come up without its tables, unless told to")


def main() -> int:
    layout = servers.Layout()
    server = servers.Server(layout, "one", ["log-bin=bin", "server-id=1", "max-connections=300"])
    try:
        server.start()
        make(server, PARTS)
        snapshots(server)
        failing_start(server)
        failing_syncs(layout)
    except (AssertionError, subprocess.TimeoutExpired, SystemExit) as wrong:
        print(f"{wrong}\nthe servers' data and logs: {layout.folder}")
        return 1
    finally:
        server.kill()
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
