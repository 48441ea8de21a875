"""A backup made while clients write is, restored and brought up to date, the original.

Clients move money between accounts and keep a journal; they make and remove items, whose parts go
with them by a foreign key. `mariadb/backup` runs meanwhile. The backup alone is some state between
transactions. With the binary log from its place on it is the state at the end: read by a replica
that was made of the backup and started at that place while clients still wrote, or replayed by
`mariadb-binlog`. `mariadb-dump` writes what can be read again.
"""

from __future__ import annotations

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from typing import Any, Callable

import pymysql

from server import HERE, Layout, Running, Server, all_of, free_port, say

ACCOUNTS = 50
CLIENTS = 3
PARTS = 3
TABLES = ["account", "journal", "item", "part"]
MARK = "ROLL-BACK-PREPARED"
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
            change_items(cursor, client, done)
            connection.commit()
    connection.close()
    return done


def change_items(cursor: Any, client: int, number: int) -> None:
    """A new item with its parts; an old one goes, and its parts with it."""
    item = number * CLIENTS + client
    cursor.execute("insert into item values (%s)", (item,))
    cursor.execute("insert into part (item) values " + ", ".join([f"({item})"] * PARTS))
    cursor.execute("delete from item where id = %s", (item - 5 * CLIENTS,))


def state(server: Server) -> list[Any]:
    checks = [server.run(f"checksum table bank.{name} extended") for name in TABLES]
    made = [server.run(f"show create table bank.{name}")[0][1] for name in ("item", "part")]
    # The next number of a table is that of the server's last start.
    return [*checks, [re.sub(" AUTO_INCREMENT=[0-9]+", "", one) for one in made],
            server.run("select count(*) from bank.journal")]


def whole(server: Server) -> None:
    """What every state between transactions has."""
    assert server.run("select sum(balance) from bank.account") == [(ACCOUNTS * 100,)]
    for name in TABLES:
        found = server.run(f"check table bank.{name}")
        assert found[-1][3] == "OK", found
    items = server.run("select i.id from bank.item i left join bank.part p on p.item = i.id"
                       f" group by i.id having count(p.id) <> {PARTS}")
    assert not items, f"items in part: {items}"
    orphans = server.run("select p.id from bank.part p left join bank.item i on i.id = p.item"
                         " where i.id is null")
    assert not orphans, f"parts without their item: {orphans}"
    server.refuses("insert into bank.part (item) values (-1)", "a foreign key constraint fails")
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
        "create table bank.item (id int primary key) engine=shale",
        "create table bank.part (id int auto_increment primary key, item int not null,"
        " constraint of_item foreign key (item) references item (id) on delete cascade)"
        " engine=shale",
        "create table bank.aged (id int primary key, a int,"
        " s bigint unsigned generated always as row start,"
        " e bigint unsigned generated always as row end,"
        " period for system_time (s, e)) with system versioning engine=shale",
        "insert into bank.aged (id, a) values (1, 1)",
        f"insert into bank.account select seq, 100 from seq_0_to_{ACCOUNTS - 1}",
        "create user copy@'127.0.0.1'",
        "grant replication slave on *.* to copy@'127.0.0.1'",
        "create view bank.rich as select id from bank.account where balance > 100",
        "create trigger bank.note before insert on bank.journal for each row set @noted = 1",
    )
    return source


def until(what: Callable[[], bool], thread: Running) -> None:
    """Waits for something that comes while the thread runs."""
    while not what():
        assert thread.is_alive(), thread.get()
        time.sleep(0.01)


def beside_a_lock_wait(server: Server) -> None:
    """The stages of a backup wait for nobody who waits for a row, nor do statements for them."""
    holder = server.connect("bank", autocommit=False)
    waiter = server.connect("bank", autocommit=False)
    copier = server.connect("bank")
    change = "update account set balance = balance + 1 where id = 1"
    waits = "select count(*) from information_schema.shale_locks where state = 'waited for'"
    with holder.cursor() as has, waiter.cursor() as cursor, copier.cursor() as copies:
        has.execute(change)
        wait = Running(cursor.execute, change)
        until(lambda: server.run(waits) == [(1,)], wait)
        copies.execute("set lock_wait_timeout = 10")
        for stage in ("start", "flush", "block_ddl"):
            copies.execute(f"backup stage {stage}")
        has.execute("set lock_wait_timeout = 10")
        has.execute("update account set balance = balance - 1 where id = 2")
        copies.execute("backup stage block_commit")
        copies.execute("backup stage end")
        holder.rollback()
        wait.get()
        waiter.rollback()
    for connection in (holder, waiter, copier):
        connection.close()


def beside_loads(server: Server, folder: pathlib.Path) -> None:
    """A copy with the first part of a load would not fit the binary log, which has it at its end.
    A load that fails, or whose client goes, is at its end."""
    server.run("create table bank.loaded (id int primary key, pad text, at int) engine=shale")
    rows = 8000
    for number, end in enumerate(["open the gate", "kill query", "kill", "duplicate"]):
        gate_name = f"gate{number}"
        load = (f"insert into loaded select seq, repeat('x', 1000), if(seq = {rows - 500}, "
                f"get_lock('{gate_name}', 600), 0) from seq_1_to_{rows}")
        server.run("truncate table bank.loaded")
        if end == "duplicate":
            server.run(f"insert into bank.loaded values ({rows}, '', 0)")
        gate, loader = server.connect(), server.connect("bank")
        copy = folder.with_name(f"{folder.name}-{number}")
        with gate.cursor() as opens, loader.cursor() as loads:
            opens.execute(f"select get_lock('{gate_name}', 0)")
            assert opens.fetchall() == ((1,),)
            loads.execute("set shale_bulk_load = 1")
            thread = Running(loads.execute, load)
            until(lambda: server.run("select count(*) > 1 from bank.loaded") == [(1,)], thread)
            server.refuses(f"set global shale_checkpoint = '{copy}'", "shale_bulk_load")
            assert not copy.exists()
            if end.startswith("kill"):
                opens.execute(f"{end} {loader.thread_id()}")
            else:
                opens.execute(f"do release_lock('{gate_name}')")
            try:
                thread.get()
                assert end == "open the gate", end
            except pymysql.err.Error as error:
                assert end != "open the gate", error
        # The connection that was killed ends a moment after its client is told.
        gone = f"select count(*) from information_schema.processlist where id = {loader.thread_id()}"
        while end == "kill" and server.run(gone) != [(0,)]:
            time.sleep(0.01)
        server.run(f"set global shale_checkpoint = '{copy}'")
        assert (copy / "CURRENT").exists()
        gate.close()
        if end != "kill":
            loader.close()
    server.run("drop table bank.loaded")


def parts_are_durable(server: Server) -> None:
    """Parts are committed without a sync; the statement that has ended has been synced."""
    server.run("create table bank.large (id int primary key, pad longtext) engine=shale")
    before = server.status("Shale_log_syncs")
    server.run(
        "set shale_bulk_load = 1",
        "insert into bank.large values (1, repeat('x', 5 << 20)), (2, repeat('y', 5 << 20))",
    )
    after = server.status("Shale_log_syncs")
    assert after > before, (before, after)
    server.run("drop table bank.large")


def beside_a_commit(layout: Layout, source: Server) -> None:
    """What is prepared and not yet in the binary log is not committed in a copy."""
    folder = layout.folder / "prepared"
    source.run(
        "create table bank.late (id int primary key) engine=shale",
        "set global binlog_commit_wait_usec = 100000000",
        "set global binlog_commit_wait_count = 2",
    )
    late = Running(source.run, "insert into bank.late values (1)")
    until(lambda: source.prepared() == 1, late)
    source.run(f"set global shale_checkpoint = '{folder}'")
    source.run("insert into bank.late values (2)", "set global binlog_commit_wait_count = 0")
    late.get()
    copy = opened_alone(layout, source, folder)
    assert copy.run("select count(*) from bank.late") == [(0,)]
    replay(layout, source, copy, place_of(folder.with_suffix(".binlog-position")))
    assert copy.run("select id from bank.late") == [(1,), (2,)]
    copy.stop()
    source.run("set global binlog_commit_wait_usec = 0", "drop table bank.late")


def place_of(file: pathlib.Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().split())


def opened_alone(layout: Layout, source: Server, folder: pathlib.Path) -> Server:
    """A server with what SET GLOBAL shale_checkpoint has copied, and definitions of now."""
    assert (folder / MARK).exists()
    name = f"{folder.name}-restored"
    server = Server(layout, name, ["server-id=4", "log-bin=log"])
    shutil.copytree(folder, server.data / "#shale")
    shutil.copytree(source.data / "bank", server.data / "bank")
    server.start()
    # What is prepared from now on is its own.
    assert not (server.data / "#shale" / MARK).exists()
    return server


def beside_clients(layout: Layout, source: Server) -> None:
    """Copies alone are of their places in the binary log, also where that goes on to its next file."""
    stop = threading.Event()
    source.run("set global max_binlog_size = 4096")
    clients = [Running(work, source, client, stop) for client in range(CLIENTS)]
    copies = [layout.folder / f"alone{number}" for number in range(10)]
    for copy in copies:
        time.sleep(0.1)
        source.run(f"set global shale_checkpoint = '{copy}'")
    stop.set()
    for thread in clients:
        thread.get()
    source.run("insert into bank.journal values (-1, 1, '')",
               "set global max_binlog_size = 1073741824", "flush binary logs")
    for folder in copies[-2:]:
        copy = opened_alone(layout, source, folder)
        whole(copy)
        assert state(copy) != state(source)
        replay(layout, source, copy, place_of(folder.with_suffix(".binlog-position")))
        assert state(copy) == state(source)
        copy.stop()
    source.run("delete from bank.journal", "delete from bank.item")


def dump(layout: Layout, server: Server) -> bytes:
    return subprocess.run(
        [str(layout.server / "bin/mariadb-dump"), "--no-defaults", "--user=root",
         f"--socket={server.socket}", "--single-transaction", "--databases", "bank"],
        check=True, stdout=subprocess.PIPE, env=layout.environment).stdout


def read_dump(layout: Layout, server: Server, script: bytes) -> None:
    server.run("drop database bank")
    subprocess.run(
        [str(layout.server / "bin/mariadb"), "--no-defaults", "--user=root",
         f"--socket={server.socket}"], check=True, input=script, env=layout.environment)


def dumped(layout: Layout, source: Server, to: Server) -> None:
    """What mariadb-dump writes is read again, parents before children or after them."""
    read_dump(layout, to, dump(layout, source))
    to.run("rename table bank.item to bank.zitem")
    script = dump(layout, to)
    assert script.index(b"CREATE TABLE `part`") < script.index(b"CREATE TABLE `zitem`")
    read_dump(layout, to, script)
    to.run("rename table bank.zitem to bank.item")
    whole(to)
    assert state(to) == state(source)


def refusals(layout: Layout, folder: pathlib.Path) -> None:
    """What would be lost, or is not whole, is not restored."""
    other = Server(layout, "other", ["server-id=5"])
    (other.data / "bank").mkdir()
    definition = other.data / "bank" / "account.frm"
    definition.write_bytes(b"of another engine")
    assert backup(layout, "--restore", str(folder), str(other.data)) != 0, "a .frm was replaced"
    assert definition.read_bytes() == b"of another engine"
    assert not (other.data / "#shale").exists()
    definition.unlink()
    part = layout.folder / "part"
    shutil.copytree(folder, part)
    (part / "complete").unlink()
    assert backup(layout, "--restore", str(part), str(other.data)) != 0, "it was not completed"
    assert not (other.data / "#shale").exists()


def main() -> None:
    layout = Layout()
    port = free_port()
    source = make_source(layout, port)
    beside_a_lock_wait(source)
    beside_loads(source, layout.folder / "load")
    parts_are_durable(source)
    beside_a_commit(layout, source)
    beside_clients(layout, source)
    stop = threading.Event()
    folder = layout.folder / "backup"
    place: dict[str, str] = {}

    def back_up() -> tuple[Server, int]:
        try:
            time.sleep(1)  # some transactions before it, and some after
            options = ["--", f"--socket={source.socket}", "--user=root"]
            assert backup(layout, str(folder), *options) == 0
            assert backup(layout, str(folder), *options) != 0, "a folder that exists was taken"
            place.update(place_of(folder / "binlog-position"))
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
    refusals(layout, folder)
    # Its ids are InnoDB's, of whose table the backup has nothing.
    copy.run("update bank.aged set a = a + 1")
    assert copy.run("select a from bank.aged") == [(2,)]
    assert copy.run("select count(*) >= 0 from bank.rich") == [(1,)]
    assert len(copy.run("show triggers from bank")) == 1
    replay(layout, source, copy, place)
    whole(copy)
    assert state(copy) == state(source)
    dumped(layout, source, copy)
    say(f"backup: {then} of {committed} transactions in the backup at {place['file']}"
        f" {place['position']}; all of them on a replica made of it, and after a replay")
    for server in (replica, copy, source):
        server.stop()
    if not os.environ.get("KEEP"):
        layout.remove()


if __name__ == "__main__":
    main()
