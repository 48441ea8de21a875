"""Kills servers at random moments, and looks whether what they acknowledged is there.

    crash.py [--kills 30] [--seed N] [--clients 4] [--mode optimistic]

A primary (binary log of rows, GTIDs, sync_binlog=1) and a replica with parallel appliers; every
table is SHALE's, those in which the servers keep their GTIDs too. Clients run transactions of
several tables and note what was acknowledged. Then SIGKILL of the primary, of the replica or of
both; restart; what must hold is checked: `check_primary` and `check_replica` say what.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import threading
import time
from typing import Any

import pymysql

import server as servers

ACCOUNTS = 64
START = 1000
GONE = (2003, 2006, 2013, 2055)
AGAIN = (1205, 1213)

TABLES = [
    "create table account (id int primary key, owner int, balance bigint, key (owner, balance))",
    f"insert into account select seq, seq % 8, {START} from seq_1_to_{ACCOUNTS}",
    "create table journal (client int, number int, source int, target int, amount int,"
    " primary key (client, number), key (source), key (target))",
    # Rows of one group always carry the same stamp.
    "create table stamped (grp int, member int, stamp bigint, pad varchar(200),"
    " primary key (grp, member), key (stamp))",
    "insert into stamped select a.seq, b.seq, 0, repeat('x', 100)"
    " from seq_1_to_12 a, seq_1_to_40 b",
    # A queue: what is in `done` is no longer in `todo`.
    "create table todo (id bigint primary key auto_increment, client int, number int,"
    " key (client))",
    "create table done (id bigint primary key, client int, number int, unique (client, number))",
    "create table xa_rows (client int, number int, part int, primary key (client, number, part))",
    # Without a primary key: the replica finds rows by scans.
    "create table heap (client int, number int)",
]


@dataclasses.dataclass
class Ledger:
    """What one client knows. Numbers rise; an unknown outcome is of the last number of its kind."""

    client: int
    number: int = 0
    acknowledged: set[int] = dataclasses.field(default_factory=set)
    unknown: set[int] = dataclasses.field(default_factory=set)
    undone: set[int] = dataclasses.field(default_factory=set)
    kinds: dict[int, str] = dataclasses.field(default_factory=dict)
    # XA transactions whose prepare was acknowledged, and how they were to end.
    prepared: dict[int, str] = dataclasses.field(default_factory=dict)


class Client(threading.Thread):
    """Runs transactions until the server is gone."""

    def __init__(self, server: servers.Server, ledger: Ledger, seed: int) -> None:
        super().__init__(daemon=True)
        self.server, self.ledger = server, ledger
        self.chance = random.Random(seed)
        self.wrong: str | None = None
        self.start()

    def run(self) -> None:
        kinds = [self.transfer] * 4 + [self.stamp] * 2 + [self.queue] * 2 + [self.xa] * 2
        try:
            connection = self.server.connect("bank", autocommit=False)
        except pymysql.err.OperationalError:
            return
        with connection.cursor() as cursor:
            while True:
                kind = self.chance.choice(kinds)
                self.ledger.number += 1
                number = self.ledger.number
                self.ledger.kinds[number] = kind.__name__
                self.ledger.unknown.add(number)
                try:
                    kept = kind(connection, cursor, number)
                except pymysql.err.MySQLError as error:
                    if error.args[0] in GONE or error.args[0] == 0:
                        return
                    if error.args[0] not in AGAIN:
                        self.wrong = f"client {self.ledger.client}, {kind.__name__}: {error}"
                        return
                    self.give_up(connection, cursor, number)
                    kept = False
                (self.ledger.acknowledged if kept else self.ledger.undone).add(number)
                self.ledger.unknown.discard(number)

    def give_up(self, connection: Any, cursor: Any, number: int) -> None:
        try:
            if self.ledger.kinds[number] == "xa":
                for statement in ("xa end %s", "xa rollback %s"):
                    try:
                        cursor.execute(statement, (f"x{self.ledger.client}-{number}",))
                    except pymysql.err.OperationalError as error:
                        if error.args[0] in GONE:
                            raise
            else:
                connection.rollback()
        except pymysql.err.MySQLError:
            pass

    def journal(self, cursor: Any, number: int, source: int, target: int, amount: int) -> None:
        cursor.execute("insert into journal values (%s, %s, %s, %s, %s)",
                       (self.ledger.client, number, source, target, amount))

    def transfer(self, connection: Any, cursor: Any, number: int) -> bool:
        source, target = self.chance.sample(range(1, ACCOUNTS + 1), 2)
        amount = self.chance.randrange(1, 50)
        for account, change in sorted(((source, -amount), (target, amount))):
            cursor.execute("update account set balance = balance + %s where id = %s",
                           (change, account))
        self.journal(cursor, number, source, target, amount)
        if self.chance.random() < 0.1:
            connection.rollback()
            return False
        connection.commit()
        return True

    def stamp(self, connection: Any, cursor: Any, number: int) -> bool:
        stamp = self.ledger.client * 10_000_000 + number
        cursor.execute("update stamped set stamp = %s, pad = repeat(%s, %s) where grp = %s",
                       (stamp, chr(97 + number % 26), self.chance.randrange(200),
                        self.chance.randrange(1, 13)))
        self.journal(cursor, number, 0, 0, 0)
        connection.commit()
        return True

    def queue(self, connection: Any, cursor: Any, number: int) -> bool:
        client = self.ledger.client
        for part in range(3):
            cursor.execute("insert into todo (client, number) values (%s, %s)",
                           (client, number * 10 + part))
        cursor.execute("insert into heap values (%s, %s)", (client, number))
        cursor.execute("select id, client, number from todo where client = %s order by id limit 2"
                       " for update", (client,))
        rows = cursor.fetchall()
        for row in rows:
            cursor.execute("insert into done values (%s, %s, %s)", row)
        cursor.execute("delete from todo where client = %s and id <= %s", (client, rows[-1][0]))
        if number % 5 == 0:
            cursor.execute("delete from heap where client = %s and number < %s",
                           (client, number - 40))
        self.journal(cursor, number, 0, 0, 0)
        connection.commit()
        return True

    def xa(self, connection: Any, cursor: Any, number: int) -> bool:
        client = self.ledger.client
        name = f"x{client}-{number}"
        source, target = sorted(self.chance.sample(range(1, ACCOUNTS + 1), 2))
        cursor.execute("xa start %s", (name,))
        for account, change in ((source, -1), (target, 1)):
            cursor.execute("update account set balance = balance + %s where id = %s",
                           (change, account))
        cursor.execute("insert into xa_rows values (%s, %s, 1), (%s, %s, 2)",
                       (client, number, client, number))
        self.journal(cursor, number, source, target, 1)
        cursor.execute("xa end %s", (name,))
        if self.chance.random() < 0.3:
            cursor.execute("xa commit %s one phase", (name,))
            return True
        cursor.execute("xa prepare %s", (name,))
        commits = self.chance.random() < 0.8
        self.ledger.prepared[number] = "commit" if commits else "rollback"
        cursor.execute(f"xa {'commit' if commits else 'rollback'} %s", (name,))
        return commits


class Wrong(Exception):
    """Something that was promised does not hold."""


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise Wrong(text)


def resolve(server: servers.Server, ledgers: list[Ledger], chance: random.Random) -> int:
    """Decides what XA RECOVER lists, and checks that what was prepared is there or decided."""
    rows = server.run("xa recover")
    by_client = {ledger.client: ledger for ledger in ledgers}
    listed = set()
    for _, length, _, data in rows:
        name = data if isinstance(data, str) else data.decode()
        client, number = map(int, name[1:].split("-"))
        ledger = by_client[client]
        listed.add((client, number))
        expect(number not in ledger.acknowledged | ledger.undone,
               f"{name} was decided, and XA RECOVER lists it")
        commits = ledger.prepared.get(number, chance.choice(["commit", "rollback"]))
        server.run(f"xa {commits} '{name}'")
        (ledger.acknowledged if commits == "commit" else ledger.undone).add(number)
        ledger.unknown.discard(number)
    for ledger in ledgers:
        for number, wanted in list(ledger.prepared.items()):
            if number in ledger.unknown and (ledger.client, number) not in listed:
                # Its prepare was acknowledged: gone only by the decision that was sent.
                there = journal_has(server, ledger.client, number)
                expect(there == (wanted == "commit"),
                       f"x{ledger.client}-{number} was prepared, is neither listed nor decided")
        ledger.prepared.clear()
    return len(rows)


def journal_has(server: servers.Server, client: int, number: int) -> bool:
    return bool(server.run(f"select 1 from journal where client = {client} and number = {number}",
                           database="bank"))


def check_primary(server: servers.Server, ledgers: list[Ledger]) -> None:
    """Nothing acknowledged is lost, nothing is there in part, every index has the same rows."""
    run = lambda *sql: server.run(*sql, database="bank")  # noqa: E731
    journal = run("select client, number, source, target, amount from journal")
    there: dict[int, set[int]] = {}
    for client, number, *_ in journal:
        there.setdefault(client, set()).add(number)
    for ledger in ledgers:
        mine = there.get(ledger.client, set())
        lost = ledger.acknowledged - mine
        expect(not lost, f"client {ledger.client}: acknowledged and lost: {sorted(lost)[-5:]}"
               f" {[ledger.kinds[number] for number in sorted(lost)[-5:]]}")
        more = mine & ledger.undone
        expect(not more, f"client {ledger.client}: rolled back and there: {sorted(more)[-5:]}")
        expect(not mine - ledger.acknowledged - ledger.unknown, "rows of no known transaction")
        # What was unknown is known now.
        ledger.acknowledged |= mine & ledger.unknown
        ledger.undone |= ledger.unknown - mine
        ledger.unknown.clear()
    balance = {number: START for number in range(1, ACCOUNTS + 1)}
    for _, _, source, target, amount in journal:
        if source:
            balance[source] -= amount
            balance[target] += amount
    expect(dict(run("select id, balance from account")) == balance,
           "the accounts are not what the journal makes of them")
    expect(dict(run("select id, balance from account force index (owner) where owner >= 0"))
           == balance, "the index on owner is not what the journal makes of it")
    check_rows(run, ledgers)


def check_rows(run: Any, ledgers: list[Ledger]) -> None:
    expect(not run("select grp from stamped group by grp having count(*) <> 40"
                   " or min(stamp) <> max(stamp)"), "a group is stamped in part")
    by_index = run("select count(*), sum(stamp) from stamped force index (stamp) where stamp >= 0")
    expect(by_index == run("select count(*), sum(stamp) from stamped use index ()"),
           "the index on stamp has other rows than the table")
    queues: dict[tuple[int, int], int] = {}
    for table in ("todo", "done"):
        for client, number in run(f"select client, number from {table}"):
            place = (client, number)
            queues[place] = queues.get(place, 0) + 1
    wanted = {(ledger.client, number * 10 + part): 1 for ledger in ledgers
              for number in ledger.acknowledged if ledger.kinds[number] == "queue"
              for part in range(3)}
    expect(queues == wanted, "the queue has other rows than were put in")
    parts = dict(((client, number), count) for client, number, count in run(
        "select client, number, count(*) from xa_rows group by client, number"))
    expect(parts == {(ledger.client, number): 2 for ledger in ledgers
                     for number in ledger.acknowledged if ledger.kinds[number] == "xa"},
           "the rows of XA transactions are not those that were committed")
    for table in ("account", "journal", "stamped", "todo", "done", "xa_rows", "heap"):
        told = run(f"check table {table}")
        expect(told[-1][3] == "OK" or told[-1][2] == "note", f"CHECK TABLE {table}: {told}")


def check_replica(primary: servers.Server, replica: servers.Server) -> None:
    """The replica gets to where the primary is, and has the same rows."""
    (position,) = primary.run("select @@gtid_binlog_pos")[0]
    (reached,) = replica.run(f"select master_gtid_wait('{position}', 120)")[0]
    if reached != 0:
        status = replica.run("show all slaves status")[0]
        raise Wrong(f"the replica does not reach {position}: "
                    + "; ".join(str(cell) for cell in status if "rror" in str(cell)))
    tables = "account, journal, stamped, todo, done, xa_rows, heap"
    ours, theirs = (one.run(f"checksum table {tables}", database="bank")
                    for one in (primary, replica))
    expect(ours == theirs, f"after {position} the replica has other rows:\n{ours}\n{theirs}")


class Pair:
    """A primary and its replica."""

    def __init__(self, layout: servers.Layout, port: int, mode: str) -> None:
        common = ["log-bin=bin", "binlog-format=ROW", "sync-binlog=1", "gtid-strict-mode=1",
                  "log-slave-updates=1", "sync-master-info=1", "sync-relay-log=0",
                  "gtid-pos-auto-engines=SHALE", "max-binlog-size=1M", "slave-net-timeout=10"]
        self.primary = servers.Server(layout, "primary", [
            *common, "server-id=1", f"port={port}", "bind-address=127.0.0.1"])
        self.replica = servers.Server(layout, "replica", [
            *common, "server-id=2", "slave-parallel-threads=4",
            f"slave-parallel-mode={mode}", "relay-log=relay", "slave-transaction-retries=1000",
            "skip-slave-start=1", "innodb-lock-wait-timeout=5", "shale-lock-wait-timeout=5"])
        self.port = port

    def begin(self) -> None:
        servers.all_of([(self.primary.start,), (self.replica.start,)])
        for one in (self.primary, self.replica):
            one.run("stop slave", "set sql_log_bin=0",
                    "alter table mysql.gtid_slave_pos engine=SHALE")
        self.primary.run(
            "create user copy@localhost", "grant replication slave on *.* to copy@localhost",
            "create user copy@'127.0.0.1'", "grant replication slave on *.* to copy@'127.0.0.1'",
            "create database bank")
        self.primary.run(*TABLES, database="bank")
        self.replica.run(
            f"change master to master_host='127.0.0.1', master_port={self.port},"
            " master_user='copy', master_use_gtid=slave_pos, master_connect_retry=1",
            "start slave")


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def await_work(ledgers: list[Ledger], count: int) -> None:
    """Until so many transactions have been acknowledged: a kill before any would show nothing."""
    for _ in range(1200):
        if sum(len(ledger.acknowledged) for ledger in ledgers) >= count:
            return
        time.sleep(0.05)
    raise Wrong(f"{count} transactions took longer than a minute")


def rounds(pair: Pair, given: argparse.Namespace, chance: random.Random) -> dict[str, int]:
    ledgers: list[Ledger] = []
    counts = {"kills": 0, "transactions": 0, "prepared": 0}
    while counts["kills"] < given.kills:
        new = [Ledger(len(ledgers) + number) for number in range(1, given.clients + 1)]
        ledgers += new
        clients = [Client(pair.primary, one, chance.randrange(1 << 60)) for one in new]
        await_work(new, chance.randrange(8, 80))
        time.sleep(chance.random() * 0.2)
        victims = chance.choice([["primary"], ["primary"], ["replica"], ["primary", "replica"]])
        if victims == ["replica"]:
            # The primary goes on; so it dies a little later, or the clients would never end.
            pair.replica.kill()
            pair.replica.start()
            pair.replica.run("start slave")
            counts["kills"] += 1
            time.sleep(chance.random() / 2)
            victims = ["primary"]
        for name in victims:
            getattr(pair, name).kill()
            counts["kills"] += 1
        for client in clients:
            client.join()
            if client.wrong:
                raise Wrong(client.wrong)
        servers.all_of((getattr(pair, name).start,) for name in victims)
        if "replica" in victims:
            pair.replica.run("start slave")
        counts["prepared"] += resolve(pair.primary, ledgers, chance)
        check_primary(pair.primary, ledgers)
        check_replica(pair.primary, pair.replica)
        counts["transactions"] = sum(len(ledger.acknowledged) for ledger in ledgers)
        servers.say(f"{counts['kills']:3} kills ({'+'.join(victims)}):"
                    f" {counts['transactions']} transactions, {counts['prepared']} found prepared")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description="kills servers, and checks what is left")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--mode", default="optimistic", help="slave_parallel_mode")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    layout = servers.Layout()
    pair = Pair(layout, free_port(), given.mode)
    try:
        pair.begin()
        counts = rounds(pair, given, random.Random(given.seed))
        servers.all_of([(pair.primary.stop,), (pair.replica.stop,)])
    except (Wrong, SystemExit) as error:
        print(f"--seed {given.seed}: {error}\nthe servers' data and logs: {layout.folder}")
        return 1
    finally:
        pair.primary.kill()
        pair.replica.kill()
    print(f"crash: {counts['kills']} kills, {counts['transactions']} acknowledged transactions,"
          f" {counts['prepared']} prepared ones found and decided")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
