"""Words, places and versions on replicas, in dumps and in XA transactions.

    words_replica.py [--seconds 5] [--seed N] [--formats row,statement,mixed] [--innodb]

A primary of SHALE; a replica of SHALE with parallel appliers, with --innodb one of InnoDB too,
which may crash by itself (10.11.18: index corruption of `note`, SIGSEGV). Clients run the
transactions of `crash_words.py`. For each format of the binary log there are two times so many
seconds: with XA transactions, and then without, while the replicas are killed (XA transactions
do not survive that on any engine: crash.py). Then all servers have the rows that the log makes of
them, the versions too, and the servers of SHALE answer as InnoDB. Last: dumps of both engines are
read by the other one.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pymysql

import crash_words
import server as servers
from crash_families import Wrong, expect

AGAIN = (1205, 1213)


def make(layout: servers.Layout, port: int, followers: int) -> list[servers.Server]:
    made = []
    for number, (name, engine) in enumerate(
        [("primary", "SHALE"), ("shale", "SHALE"), ("innodb", "InnoDB")], 1
    ):
        options = [f"server-id={number}", f"default-storage-engine={engine}",
                   f"gtid-pos-auto-engines={engine}", "skip-slave-start=1"]
        options += (["log-bin=bin", f"port={port}", "bind-address=127.0.0.1"]
                    if name == "primary" else
                    ["slave-parallel-threads=4", "slave-parallel-mode=optimistic",
                     "relay-log=relay", "slave-transaction-retries=1000"])
        if name == "innodb":
            # Its gap locks would let a prepared transaction wait for one that comes later.
            options.append("transaction-isolation=READ-COMMITTED")
        made.append(servers.Server(layout, name, options))
    servers.all_of((one.start,) for one in made)
    for one in made:
        one.run("set sql_log_bin=0", f"alter table mysql.gtid_slave_pos engine="
                f"{'InnoDB' if one.name == 'innodb' else 'SHALE'}")
    made[0].run("create user copy@'127.0.0.1'",
                "grant replication slave on *.* to copy@'127.0.0.1'", "create database bank")
    made[0].run(*crash_words.TABLES, database="bank")
    for one in made[1:1 + followers]:
        one.run(f"change master to master_host='127.0.0.1', master_port={port},"
                " master_user='copy', master_use_gtid=slave_pos, master_connect_retry=1",
                "start slave")
    return made


def time_goes_back(server: servers.Server) -> None:
    """A cascade at an earlier time than its rows begin keeps them in the past, as InnoDB does: so
    it is on replicas, whose row events have no parts of seconds."""
    found = {}
    for engine in ("InnoDB", "SHALE"):
        server.run("set sql_log_bin=0", "create or replace database clock", "use clock",
                   f"set default_storage_engine={engine}",
                   "create table parent (id int primary key)",
                   "create table child (id int primary key, parent int, body text,"
                   " fulltext (body), foreign key (parent) references parent (id)"
                   " on delete cascade on update cascade) with system versioning",
                   "insert into parent values (1), (2), (3)", "set timestamp = 2000000.5",
                   "insert into child values (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')",
                   "set timestamp = 2000000", "delete from parent where id = 1",
                   "update parent set id = 20 where id = 2")
        found[engine] = server.run(
            "select id, parent, body, row_start > row_end from child for system_time all"
            " order by id, row_end", database="clock")
    expect(found["SHALE"] == found["InnoDB"], f"time goes back: {found}")


class Writer(threading.Thread):
    """One client of a number of its own; what goes wrong is in `wrong`."""

    def __init__(self, server: servers.Server, client: int, xa: bool, mode: str) -> None:
        super().__init__(daemon=True)
        self.server, self.client, self.xa, self.mode = server, client, xa, mode
        self.stopped, self.done = False, 0
        self.wrong: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            connection = self.server.connect("bank", autocommit=False)
            with connection.cursor() as cursor:
                cursor.execute(f"set names utf8mb4, binlog_format = {self.mode}")
                number = 0
                while not self.stopped:
                    number += 1
                    try:
                        self.one(cursor, number)
                        self.done += 1
                    except pymysql.err.OperationalError as error:
                        if error.args[0] not in AGAIN:
                            raise
                        connection.rollback()
            connection.close()
        except BaseException as error:
            self.wrong = error

    def one(self, cursor: Any, number: int) -> None:
        if not self.xa:
            crash_words.run_steps(self.server, cursor, self.client, number)
            cursor.execute("rollback" if number % 9 == 0 else "commit")
            return
        name = f"w{self.client}-{number}"
        cursor.execute("xa start %s", (name,))
        try:
            crash_words.run_steps(self.server, cursor, self.client, number, xa=True)
        except pymysql.err.OperationalError:
            for statement in ("xa end %s", "xa rollback %s"):
                try:
                    cursor.execute(statement, (name,))
                except pymysql.err.OperationalError:
                    pass
            raise
        for statement in ("xa end", "xa prepare",
                          "xa rollback" if number % 4 == 0 else "xa commit"):
            cursor.execute(f"{statement} %s", (name,))


def await_replica(primary: servers.Server, replica: servers.Server) -> None:
    ((position,),) = primary.run("select @@gtid_binlog_pos")
    ends = time.monotonic() + 120
    while replica.run(f"select master_gtid_wait('{position}', 0.5)")[0][0] != 0:
        told = replica.run("select variable_value from information_schema.global_status"
                           " where variable_name = 'slave_running'")
        if told[0][0] != "ON" or time.monotonic() > ends:
            raise Wrong(f"{replica.name} does not reach {position} (appliers {told[0][0]}):"
                        f" {waits(replica)}\n{replica.errors()}")


def waits(replica: servers.Server) -> str:
    """What its connections do, and the locks that they hold and wait for."""
    told = [f"{name}: {replica.run(f'select * from information_schema.{name}')}"
            for name in ("processlist", "shale_transactions", "shale_locks")]
    return "\n".join(["", *told, str(replica.run("show slave status"))])


def rows(server: servers.Server, database: str = "bank") -> list[Any]:
    """Of all tables."""
    return [sorted(server.run(f"select {columns} from {table}", database=database))
            for table, columns in {
                "topic": "*", "note": "client, slot, topic, title, body, st_astext(place)",
                "scrap": "*", "note_log": "*",
                # A replica notes its own time of cascades.
                "past": "client, slot, topic, body",
            }.items()]


def same_rows(
    told: str, one: servers.Server, other: servers.Server, database: str = "bank"
) -> None:
    for ours, theirs in zip(rows(one), rows(other, database)):
        here, there = set(ours) - set(theirs), set(theirs) - set(ours)
        expect(ours == theirs, f"{told}: {one.name} has {len(ours)} rows, {len(here)} of them its"
               f" own: {sorted(here)[:3]}, {other.name} {len(theirs)}: {sorted(there)[:3]}")


def dump(layout: servers.Layout, source: servers.Server, into: servers.Server, name: str) -> None:
    """The tables of a server in a database of another one, of that one's engine."""
    connected = ["--no-defaults", "--user=root"]
    text = subprocess.run(
        [str(layout.server / "bin/mariadb-dump"), *connected, f"--socket={source.socket}",
         # A replica's versions may end before they begin, which a load refuses on any engine.
         *(["--dump-history"] if source.name == "primary" else []), "--hex-blob", "bank"],
        check=True, stdout=subprocess.PIPE,
        env=layout.environment).stdout
    here, there = ((b"ENGINE=InnoDB", b"ENGINE=SHALE") if source.name == "innodb" else
                   (b"ENGINE=SHALE", b"ENGINE=InnoDB"))
    expect(text.count(here) == len(crash_words.NAMES),
           f"{source.name} has tables of another engine")
    into.run("stop slave", "set sql_log_bin=0", f"create database {name}")
    subprocess.run(
        [str(layout.server / "bin/mariadb"), *connected, f"--socket={into.socket}",
         "--init-command=set sql_log_bin=0", name], check=True, input=text.replace(here, there),
        env=layout.environment)
    same_rows(f"dump {name}", source, into, name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--formats", default="row,statement,mixed")
    parser.add_argument("--innodb", action="store_true", help="a replica of InnoDB follows, too")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    layout = servers.Layout()
    made = make(layout, servers.free_port(), 1 + given.innodb)
    primary, shale, innodb = made
    replicas = made[1:2 + given.innodb]
    client, done, answers, kills = chance.randrange(1000) * 1000, 0, 0, 0
    try:
        time_goes_back(primary)
        for mode in given.formats.split(","):
            for xa in (True, False):
                writers = [Writer(primary, client + k, xa, mode) for k in range(4)]
                client += len(writers)
                if xa:
                    time.sleep(given.seconds)
                else:
                    ends = time.monotonic() + given.seconds
                    while time.monotonic() < ends:
                        time.sleep(chance.random() * 2)
                        for replica in replicas:
                            replica.kill()
                        kills += len(replicas)
                        servers.all_of((replica.start,) for replica in replicas)
                        for replica in replicas:
                            replica.run("start slave")
                for writer in writers:
                    writer.stopped = True
                for writer in writers:
                    writer.join()
                    if writer.wrong is not None:
                        raise writer.wrong
                done += sum(writer.done for writer in writers)
                for replica in replicas:
                    await_replica(primary, replica)
                for replica in replicas:
                    same_rows(f"{mode}, xa {xa}, {replica.name}", primary, replica)
                # InnoDB's own answers depend on what is in its cache: its rows are compared.
                answers += sum(crash_words.check(one, chance, is_replica=one is not primary)
                               for one in made[:2])
        dump(layout, primary, innodb, "from_shale" if given.innodb else "bank")
        dump(layout, innodb, shale, "from_innodb")
        answers += crash_words.check(shale, chance, "from_innodb", True)
        servers.all_of((one.stop,) for one in made)
    except BaseException:
        servers.say(f"--seed {given.seed}: the servers' data and logs: {layout.folder}")
        raise
    print(f"words_replica: {done} transactions, {kills} kills of replicas, {answers} answers are"
          " InnoDB's; dumps of either engine are read by the other")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
