"""What the clients of crash.py do, and what they note of it."""

from __future__ import annotations

import dataclasses
import random
import threading
from typing import Any

import pymysql

import crash_words
import server as servers
from crash_families import TABLES as FAMILIES
from crash_families import family_step

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
    *FAMILIES,
    *crash_words.TABLES,
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

    def __init__(self, server: servers.Server, ledger: Ledger, seed: int, xa: bool,
                 words: bool) -> None:
        super().__init__(daemon=True)
        self.kinds = [self.transfer] * 4 + [self.stamp] * 2 + [self.queue] * 2
        self.kinds += [self.family] * 3
        self.kinds += [self.words] * 4 if words else []
        self.has_words = words
        self.kinds += [self.xa] * 2 if xa else []
        self.server, self.ledger = server, ledger
        self.chance = random.Random(seed)
        self.wrong: str | None = None
        self.start()

    def run(self) -> None:
        try:
            connection = self.server.connect("bank", autocommit=False)
        except pymysql.err.OperationalError:
            return
        with connection.cursor() as cursor:
            while True:
                kind = self.chance.choice(self.kinds)
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

    def family(self, connection: Any, cursor: Any, number: int) -> bool:
        family_step(cursor, self.chance, self.ledger.client, number)
        return self.end(connection, cursor, number)

    def words(self, connection: Any, cursor: Any, number: int) -> bool:
        crash_words.run_steps(self.server, cursor, self.ledger.client, number)
        return self.end(connection, cursor, number)

    def end(self, connection: Any, cursor: Any, number: int) -> bool:
        """One of ten is undone."""
        self.journal(cursor, number, 0, 0, 0)
        if self.chance.random() < 0.1:
            connection.rollback()
            return False
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
        if self.chance.random() < 0.4:
            family_step(cursor, self.chance, client, number)
        if self.has_words and self.chance.random() < 0.4:
            crash_words.run_steps(self.server, cursor, client, number, xa=True)
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
