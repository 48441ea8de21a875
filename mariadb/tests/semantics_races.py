"""Cases of semantics.py in which many connections do the same at once; answers are of the end."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import pymysql

import server as servers

CONNECTIONS = 8
ROUNDS = 16


@dataclasses.dataclass
class Race:
    title: str
    text: str
    run: Callable[[servers.Server, str], str]
    reason: str = ""


def at_once(server: servers.Server, engine: str, work: Callable[[int, Any], None]) -> list[int]:
    """Runs `work(number, cursor)` on connections of their own; the error codes that came."""

    def one(number: int) -> list[int]:
        codes = []
        connection = server.connect(engine)
        with connection.cursor() as cursor:
            for round_ in range(ROUNDS):
                try:
                    work(number * ROUNDS + round_, cursor)
                except pymysql.err.MySQLError as error:
                    codes.append(error.args[0])
                    connection.rollback()
        connection.close()
        return codes

    found = servers.all_of((one, number) for number in range(CONNECTIONS))
    return [code for codes in found for code in codes]


def told(codes: list[int]) -> str:
    kinds = sorted(set(codes))
    return "no error" if not kinds else "errors " + ",".join(map(str, kinds))


def count_up(server: servers.Server, engine: str) -> str:
    codes = at_once(
        server, engine, lambda _, c: c.execute("update t set v = v + 1 where id = 10")
    )
    (value,) = server.run("select v from t where id = 10", database=engine)[0]
    return f"{told(codes)}; v = {value + len(codes)} with those"


def count_up_read(server: servers.Server, engine: str) -> str:
    def step(_: int, cursor: Any) -> None:
        cursor.execute("begin")
        cursor.execute("select v from t where id = 10 for update")
        (value,) = cursor.fetchone()
        cursor.execute("update t set v = %s where id = 10", (value + 1,))
        cursor.execute("commit")

    codes = at_once(server, engine, step)
    (value,) = server.run("select v from t where id = 10", database=engine)[0]
    return f"{told(codes)}; v = {value + len(codes)} with those"


def unique_race(server: servers.Server, engine: str) -> str:
    server.run("create table u (id int primary key auto_increment, x int, unique (x))",
               database=engine)
    codes = at_once(
        server, engine, lambda n, c: c.execute("insert into u (x) values (%s)", (n % ROUNDS,))
    )
    rows = server.run("select count(*), count(distinct x) from u", database=engine)[0]
    return f"{told(codes)}; {rows[0]} rows of {rows[1]} values; {len(codes)} refused"


def change_race(statement: str) -> Callable[[servers.Server, str], str]:
    def run(server: servers.Server, engine: str) -> str:
        server.run("create table u (id int primary key, x int, n int, unique (x))", database=engine)

        def step(number: int, cursor: Any) -> None:
            # After a deadlock the statement is given again, as an application does.
            while True:
                try:
                    cursor.execute(statement, (number % 5,))
                    return
                except pymysql.err.OperationalError as error:
                    if error.args[0] != 1213:
                        raise

        codes = at_once(server, engine, step)
        total = server.run("select count(*), count(distinct x) from u", database=engine)[0]
        by_index = server.run("select count(*) from u force index (x) where x >= 0",
                              database=engine)[0]
        (sum_,) = server.run("select sum(n) from u", database=engine)[0]
        return f"{told(codes)}; {total[0]} rows, {by_index[0]} by the index; sum of n = {sum_}"

    return run


def queue(server: servers.Server, engine: str) -> str:
    """Each takes rows out of a queue; no row may be taken by two."""
    server.run("create table q (id int primary key, taken int, key (taken))",
               f"insert into q select seq, 0 from seq_1_to_{CONNECTIONS * ROUNDS}",
               "create table taken (id int, who int)", database=engine)

    def step(number: int, cursor: Any) -> None:
        cursor.execute("begin")
        cursor.execute("select id from q where taken = 0 order by id limit 1 for update")
        row = cursor.fetchone()
        if row is not None:
            cursor.execute("update q set taken = 1 where id = %s", row)
            cursor.execute("insert into taken values (%s, %s)", (row[0], number))
        cursor.execute("commit")

    codes = at_once(server, engine, step)
    rows = server.run("select count(*), count(distinct id) from taken", database=engine)[0]
    same = rows[0] == rows[1] == CONNECTIONS * ROUNDS - len(codes)
    return "each row taken once" if same else f"{rows} taken, {told(codes)}"


EIGHT = f"{CONNECTIONS} connections, each {ROUNDS} times: "
CASES = [
    Race("Eight count up by autocommit UPDATE", EIGHT
         + "`update t set v = v + 1 where id = 10`. v was 1.", count_up),
    Race("Eight count up by FOR UPDATE", EIGHT
         + "BEGIN, SELECT ... FOR UPDATE, UPDATE, COMMIT. v was 1.", count_up_read),
    Race("Eight insert the same unique values", EIGHT
         + f"`insert into u (x) values (n)` with the same {ROUNDS} values from each.", unique_race),
    Race("Eight replace the same rows", EIGHT
         + "`replace into u select n, n, 1`, n of 0 to 4, statements repeated at error 1213.",
         change_race("replace into u select a, a, 1 from (select %s a) d")),
    Race("Eight insert or update the same rows", EIGHT
         + "`insert into u ... on duplicate key update n = n + 1`, repeated at error 1213.",
         change_race("insert into u select a, a, 1 from (select %s a) d"
                     " on duplicate key update n = n + 1")),
    Race("Eight take from a queue", EIGHT
         + "the first row with taken = 0 FOR UPDATE, then taken = 1.", queue),
]
