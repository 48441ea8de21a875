"""Parents and children of crash.py: families, their members and their guests.

A family's members go with it (CASCADE), its guests stay without it (SET NULL), and both follow its
number. `family_log` gets a row in the same transaction, from which follows which families there are
and how many members each has: so a cascade that is done in part is seen.

`prepared` does one thing more: foreign keys of XA transactions that are prepared when the server is
killed.
"""

from __future__ import annotations

import random
from typing import Any

import pymysql

import server as servers

FAMILIES = 24
TABLES = [
    # The code stays when the number changes.
    "create table family (id int primary key, code bigint, members int, unique key (code))",
    "create table member (id bigint primary key auto_increment, family int not null,"
    " pad varchar(100), key (family),"
    " foreign key (family) references family (id) on delete cascade on update cascade)",
    "create table guest (id bigint primary key auto_increment, code bigint, family int,"
    " foreign key (family) references family (id) on delete set null on update cascade)",
    "create table family_log (client int, number int, code bigint, what varchar(10), members int,"
    " primary key (client, number))",
]
NAMES = ["family", "member", "guest", "family_log"]
LOCK_TIMEOUT = 1205


class Wrong(Exception):
    """Something that was promised does not hold."""


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise Wrong(text)


def family_step(cursor: Any, chance: random.Random, client: int, number: int) -> None:
    """Makes a family, adds to it, gives it another number, or removes it."""
    place, other = sorted(chance.sample(range(1, FAMILIES + 1), 2))
    found = {}
    for one in (place, other):
        cursor.execute("select id, code from family where id = %s for update", (one,))
        found.update(dict(cursor.fetchall()))
    if place not in found:
        code, what, members = client * 10_000_000 + number, "made", chance.randrange(1, 60)
        cursor.execute("insert into family values (%s, %s, %s)", (place, code, members))
        cursor.execute(f"insert into member (family, pad) select {place}, repeat('m', 90)"
                       f" from seq_1_to_{members}")
        cursor.execute("insert into guest (code, family) values (%s, %s), (%s, %s)",
                       (code, place, code, place))
    else:
        code, members = found[place], 0
        what = chance.choice(["grown", "moved", "ended"])
        if what == "moved" and other in found:
            what = "grown"
        if what == "grown":
            members = 1
            cursor.execute("insert into member (family) values (%s)", (place,))
            cursor.execute("update family set members = members + 1 where id = %s", (place,))
        elif what == "moved":
            cursor.execute("update family set id = %s where id = %s", (other, place))
        else:
            cursor.execute("delete from family where id = %s", (place,))
    cursor.execute("insert into family_log values (%s, %s, %s, %s, %s)",
                   (client, number, code, what, members))


def check(run: Any) -> None:
    """No orphan, and each family, member and guest is what the log makes of it."""
    expect(not run("select m.id from member m left join family f on f.id = m.family"
                   " where f.id is null"), "members without their family")
    expect(not run("select g.id from guest g left join family f on f.id = g.family"
                   " where g.family is not null and f.id is null"), "guests of no family")
    logged = dict(run("select code, cast(sum(members) as int) from family_log group by code"
                      " having sum(what = 'ended') = 0"))
    expect(dict(run("select code, members from family")) == logged,
           "the families are not what their log makes of them")
    expect(dict(run("select f.code, count(*) from family f join member m on m.family = f.id"
                    " group by f.code")) == logged, "a family lacks members, or has too many")
    by_rows = run("select family, count(*) from member use index () group by family order by 1")
    expect(run("select family, count(*) from member force index (family) group by family"
               " order by 1") == by_rows, "the index of members has other rows than the table")
    expect(not run("select g.id from guest g left join family f on f.code = g.code"
                   " where not (g.family <=> f.id)"), "a guest is in another family, or was left")
    guests = run("select count(*) from guest")[0][0]
    expect(guests == 2 * run("select count(*) from family_log where what = 'made'")[0][0],
           "guests are missing")
    for table in NAMES:
        told = run(f"check table {table}")
        expect(told[-1][3] == "OK", f"CHECK TABLE {table}: {told}")


LEVELS = ["read committed", "repeatable read", "serializable"]
PREPARED = {
    # A new child of 1; 2 and 3 deleted, 3 with its two children; 4 becomes 5 with its child.
    "child": "insert into d values (1, 1)",
    "parent": "delete from p where id = 2",
    "cascade": "delete from p where id = 3",
    "moved": "update p set id = 5 where id = 4",
}
# What has to wait for each, and what the statement answers after commit and after rollback.
WAITING = [
    ("child", "delete from p where id = 1", 1451, 1),
    ("parent", "insert into c values (20, 2)", 1452, 1),
    ("parent", "insert into d values (20, 2)", 1452, 1),
    ("cascade", "insert into c values (30, 3)", 1452, 1),
    ("cascade", "update c set p = 6 where id = 31", 0, 1),
    ("moved", "insert into c values (40, 4)", 1452, 1),
    ("moved", "insert into c values (50, 5)", 1, 1452),
]


def outcome(server: servers.Server, level: str, statement: str) -> int:
    """How many rows it has changed, or its error; what it has done is undone."""
    connection = server.connect("prepared", autocommit=False)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"set session transaction isolation level {level}")
            cursor.execute("set innodb_lock_wait_timeout = 1, shale_lock_wait_timeout = 1")
            return int(cursor.execute(statement))
    except pymysql.err.MySQLError as error:
        return int(error.args[0])
    finally:
        connection.rollback()
        connection.close()


def make(server: servers.Server) -> None:
    server.run("drop database if exists prepared", "create database prepared")
    server.run(
        "create table p (id int primary key)",
        "create table c (id int primary key, p int, foreign key (p) references p (id)"
        " on delete cascade on update cascade)",
        "create table d (id int primary key, p int, foreign key (p) references p (id))",
        "insert into p values (1), (2), (3), (4), (6)",
        "insert into c values (31, 3), (32, 3), (41, 4)", database="prepared")


def prepare(server: servers.Server, name: str, level: str) -> None:
    connection = server.connect("prepared", autocommit=False)
    with connection.cursor() as cursor:
        cursor.execute(f"set session transaction isolation level {level}")
        for statement in (f"xa start '{name}'", PREPARED[name], f"xa end '{name}'",
                          f"xa prepare '{name}'"):
            cursor.execute(statement)
    # The connection is left as it is; the kill ends it.
    connection.close()


def prepared(server: servers.Server) -> int:
    """What is prepared keeps its foreign keys over a kill; how many statements have been asked."""
    asked = 0
    server.start()
    for decision in ("commit", "rollback"):
        for level in LEVELS:
            make(server)
            for name in PREPARED:
                prepare(server, name, level)
            server.kill()
            server.start()
            expect(len(server.run("xa recover")) == len(PREPARED), "a prepared one is lost")
            for name, statement, *_ in WAITING:
                answer = outcome(server, level, statement)
                expect(answer == LOCK_TIMEOUT,
                       f"{name} is prepared, and does not wait at {level}: {statement}: {answer}")
            server.run(*(f"xa {decision} '{name}'" for name in PREPARED))
            for name, statement, committed, undone in WAITING:
                answer = outcome(server, level, statement)
                wanted = committed if decision == "commit" else undone
                expect(answer == wanted,
                       f"after {decision} of {name}, {statement} answers {answer}, not {wanted}")
                asked += 1
            rows = server.run("select * from c order by id", database="prepared")
            expect(rows == ([(41, 5)] if decision == "commit"
                            else [(31, 3), (32, 3), (41, 4)]), f"after {decision}: {rows}")
    server.stop()
    return asked
