"""A backup made while clients write is, restored and brought up to date, the original.

Clients move money between accounts and keep a journal; `mariadb/backup` runs meanwhile. The backup
alone is some state between transactions. With the binary log from its place on it is the state at
the end: read by a replica that was made of the backup and started at that place while clients still
wrote, or replayed by `mariadb-binlog`.
"""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pymysql

from server import HERE, Layout, Server, all_of, free_port, say

ACCOUNTS = 50
CLIENTS = 3
LOG = ["log-bin=log", "server-id=1", "sync-binlog=1", "binlog-format=ROW"]


def work(server: Server, client: int, stop: threading.Event) -> int:
    """Transfers until told to stop; how many were committed."""
    chance = random.Random(client)
    connection = server.connect("bank", autocommit=False)
    done = 0
    with connection.cursor() as cursor:
        while not stop.is_set():
            one, other = sorted(chance.sample(range(ACCOUNTS), 2))
            amount = chance.randrange(-20, 20)
            for account, change in ((one, -amount), (other, amount)):
                cursor.execute(
                    "update account set balance = balance + %s where id = %s", (change, account)
                )
            done += 1
            cursor.execute("insert into journal values (%s, %s, %s)", (client, done, "j" * 100))
            connection.commit()
    connection.close()
    return done


def state(server: Server) -> list[Any]:
    checks = [server.run(f"checksum table bank.{name} extended") for name in ("account", "journal")]
    return [*checks, server.run("select count(*) from bank.journal")]


def whole(server: Server) -> None:
    """What every state between transactions has."""
    assert server.run("select sum(balance) from bank.account") == [(ACCOUNTS * 100,)]
    for name in ("account", "journal"):
        found = server.run(f"check table bank.{name}")
        assert found[-1][3] == "OK", found
    gaps = server.run("select client, count(*), max(number) from bank.journal group by client")
    assert all(count == greatest for _, count, greatest in gaps), gaps


def backup(layout: Layout, *arguments: str) -> int:
    environment = dict(layout.environment, MARIADB=str(layout.server / "bin/mariadb"))
    command = [str(HERE.parent / "backup"), *arguments]
    return subprocess.run(command, env=environment, stdout=sys.stderr).returncode


def replay(layout: Layout, source: Server, to: Server, place: dict[str, str]) -> None:
    """The binary log from a place on, as its files lie in the source's folder."""
    logs = sorted(source.data.glob("log.0*"))
    files = [str(log) for log in logs if log.name >= place["file"]]
    read = subprocess.Popen(
        [str(layout.server / "bin/mariadb-binlog"), "--no-defaults",
         f"--start-position={place['position']}", *files],
        stdout=subprocess.PIPE, env=layout.environment,
    )
    client = [str(layout.server / "bin/mariadb"), "--no-defaults", f"--socket={to.socket}"]
    subprocess.run([*client, "--user=root"], check=True, stdin=read.stdout, env=layout.environment)
    assert read.wait() == 0


def restored(layout: Layout, folder: pathlib.Path, name: str, server_id: int) -> Server:
    """A new server with what is in the backup, started."""
    server = Server(layout, name, [f"server-id={server_id}"])
    assert backup(layout, "--restore", str(folder), str(server.data)) == 0
    server.start()
    whole(server)
    return server


def start_replica(replica: Server, port: int, place: dict[str, str]) -> None:
    replica.run(
        f"set global gtid_slave_pos = '{place['gtid']}'",
        f"change master to master_host='127.0.0.1', master_port={port}, master_user='copy',"
        " master_use_gtid=slave_pos",
        "start slave",
    )


def make_source(layout: Layout, port: int) -> Server:
    source = Server(layout, "source", [*LOG, f"port={port}", "bind-address=127.0.0.1"])
    source.start()
    source.run(
        "create database bank",
        "use bank",
        "create table bank.account (id int primary key, balance int, key(balance)) engine=shale",
        "create table bank.journal (client int, number int, pad text, "
        "primary key (client, number)) engine=shale",
        f"insert into bank.account select seq, 100 from seq_0_to_{ACCOUNTS - 1}",
        "create user copy@'127.0.0.1'",
        "grant replication slave on *.* to copy@'127.0.0.1'",
        "create view bank.rich as select id from bank.account where balance > 100",
        "create trigger bank.note before insert on bank.journal for each row set @noted = 1",
    )
    return source


def beside_a_lock_wait(server: Server) -> None:
    """The stages of a backup wait for nobody who waits for a row, nor do statements for them."""
    holder = server.connect("bank", autocommit=False)
    waiter = server.connect("bank", autocommit=False)
    copier = server.connect("bank")
    with holder.cursor() as has, waiter.cursor() as waits, copier.cursor() as copies:
        has.execute("update account set balance = balance + 1 where id = 1")
        change = "update account set balance = balance + 1 where id = 1"
        wait = threading.Thread(target=waits.execute, args=(change,))
        wait.start()
        look = "select count(*) from information_schema.shale_locks where state = 'waited for'"
        while server.run(look) == [(0,)]:
            time.sleep(0.01)
        copies.execute("set lock_wait_timeout = 10")
        for stage in ("start", "flush", "block_ddl"):
            copies.execute(f"backup stage {stage}")
        # To one who waits for the backup that waits for the other it would be refused.
        has.execute("set lock_wait_timeout = 10")
        has.execute("update account set balance = balance - 1 where id = 2")
        copies.execute("backup stage block_commit")
        copies.execute("backup stage end")
        holder.rollback()
        wait.join()
        waiter.rollback()
    for connection in (holder, waiter, copier):
        connection.close()


def beside_a_load(server: Server, folder: pathlib.Path) -> None:
    """What has the first part of a load would not fit the binary log, which has it at its end."""
    server.run("create table bank.loaded (id int primary key, pad text, at int) engine=shale")
    gate = server.connect()
    loader = server.connect("bank")
    rows = 8000
    load = (f"insert into loaded select seq, repeat('x', 1000), if(seq = {rows}, "
            f"get_lock('gate', 60), 0) from seq_1_to_{rows}")
    with gate.cursor() as opens, loader.cursor() as loads:
        opens.execute("select get_lock('gate', 0)")
        loads.execute("set shale_bulk_load = 1")
        thread = threading.Thread(target=loads.execute, args=(load,))
        thread.start()
        while server.run("select count(*) from bank.loaded") == [(0,)]:
            time.sleep(0.01)
        try:
            server.run(f"set global shale_checkpoint = '{folder}'")
            raise AssertionError("a part of a load was copied")
        except pymysql.err.Error as error:
            assert "shale_bulk_load" in str(error), error
        assert not folder.exists()
        opens.execute("do release_lock('gate')")
        thread.join()
        server.run(f"set global shale_checkpoint = '{folder}'")
        assert folder.exists()
    assert server.run("select count(*) from bank.loaded") == [(rows,)]
    server.run("drop table bank.loaded")
    gate.close()
    loader.close()


def main() -> None:
    layout = Layout()
    port = free_port()
    source = make_source(layout, port)
    beside_a_lock_wait(source)
    beside_a_load(source, layout.folder / "whole")
    stop = threading.Event()
    folder = layout.folder / "backup"
    place: dict[str, str] = {}

    def back_up() -> tuple[Server, int]:
        try:
            time.sleep(1)  # some transactions before it, and some after
            options = ["--", f"--socket={source.socket}", "--user=root"]
            assert backup(layout, str(folder), *options) == 0
            assert backup(layout, str(folder), *options) != 0, "a folder that exists was taken"
            told = (folder / "binlog-position").read_text().split()
            place.update(line.split("=", 1) for line in told)
            replica = restored(layout, folder, "replica", 3)
            then = replica.run("select count(*) from bank.journal")[0][0]
            start_replica(replica, port, place)
            time.sleep(1)
            return replica, then
        finally:
            stop.set()

    results = all_of([(back_up,), *((work, source, n, stop) for n in range(CLIENTS))])
    replica, then = results[0]
    committed = sum(results[1:])
    assert 0 < then < committed, (then, committed)
    end = source.run("select @@gtid_binlog_pos")[0][0]
    assert replica.run(f"select master_gtid_wait('{end}', 60)") == [(0,)], replica.errors()
    whole(replica)
    assert state(replica) == state(source)
    assert "copy" in (folder / "users.sql").read_text()
    copy = restored(layout, folder, "copy", 2)
    assert backup(layout, "--restore", str(folder), str(copy.data)) != 0, "tables were overwritten"
    assert copy.run("select count(*) from bank.journal") == [(then,)]
    assert copy.run("select count(*) >= 0 from bank.rich") == [(1,)]
    assert len(copy.run("show triggers from bank")) == 1
    replay(layout, source, copy, place)
    whole(copy)
    assert state(copy) == state(source)
    say(f"backup: {then} of {committed} transactions in the backup at {place['file']}"
        f" {place['position']}; all of them on a replica made of it, and after a replay")
    for server in (replica, copy, source):
        server.stop()
    if not os.environ.get("KEEP"):
        layout.remove()


if __name__ == "__main__":
    main()
