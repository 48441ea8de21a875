"""How many syncs a commit costs with eight clients, without a binary log and with one, and how many
a change of tables, and values of sequences.

Syncs are counted in the server, by a library that is loaded into it (syncs.c), and made slow, so
that commits meet. What must hold: commits share syncs, of Shale's log and of the binary log, and
the commit after the binary log's sync has none. A value of a sequence is durable before the binary
log has it, and before a client has it whose statement is its own transaction.
"""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys
from typing import Iterator

import server as servers

CLIENTS = 8
COMMITS = 40


def build(layout: servers.Layout) -> pathlib.Path:
    library = layout.folder / "syncs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
                    str(library), str(servers.HERE / "syncs.c"), "-ldl"], check=True)
    return library


def work(server: servers.Server, client: int) -> None:
    connection = server.connect("commits")
    with connection.cursor() as cursor:
        for number in range(COMMITS):
            cursor.execute("insert into t values (%s)", (client * 1000 + number,))
    connection.close()


def counted(log: pathlib.Path) -> dict[str, int]:
    lines = log.read_text().splitlines() if log.exists() else []
    return {"log": sum("#shale" in line for line in lines),
            "binlog": sum("/bin.0" in line for line in lines), "all": len(lines)}


@contextlib.contextmanager
def counting(layout: servers.Layout, library: pathlib.Path, name: str,
             options: list[str]) -> Iterator[tuple[servers.Server, pathlib.Path]]:
    """A server whose syncs are counted and slow, and the file that has them."""
    log = layout.folder / f"{name}.syncs"
    layout.environment["LD_PRELOAD"] = str(library)
    layout.environment["SYNCS_LOG"] = str(log)
    layout.environment["SYNCS_MICROS"] = "20000"
    server = servers.Server(layout, name, options)
    try:
        server.start()
        server.run("create database commits")
        yield server, log
        server.stop()
    finally:
        server.kill()
        for variable in ("LD_PRELOAD", "SYNCS_LOG", "SYNCS_MICROS"):
            layout.environment.pop(variable, None)


def measure(layout: servers.Layout, library: pathlib.Path, name: str, options: list[str],
            clients: int) -> dict[str, float]:
    with counting(layout, library, name, options) as (server, log):
        server.run("create table t (id int primary key)", database="commits")
        before = counted(log)
        servers.all_of((work, server, client) for client in range(clients))
        after = counted(log)
        (rows,) = server.run("select count(*) from t", database="commits")[0]
    assert rows == clients * COMMITS, rows
    per = {kind: (after[kind] - before[kind]) / rows for kind in after}
    print(f"{name:24} {clients} clients, {rows} commits; syncs per commit:"
          f" Shale's log {per['log']:.2f}, binary log {per['binlog']:.2f}, all {per['all']:.2f}")
    return per


# Changes of a table of four trees. Trees are made before the catalog names them, and dropped after
# that: a change of the manifest for each, one of the catalog, and the log before each. An index that
# is built beside writers is begun and ended by changes of its own, and has a table that is synced.
CHANGES = {
    "create table {t} (id int primary key, a int, b int, c int, key (a), key (b), key (c))": 3,
    "truncate {t}": 4,
    "alter table {t} drop key a, drop key b, add key x (a, b), add key y (b, a)": 14,
    "drop table {t}": 2,
}


def of_ddl(layout: servers.Layout, library: pathlib.Path) -> list[str]:
    """The changes that cost more syncs of SHALE's files than they may, in most of some rounds."""
    wrong = []
    with counting(layout, library, "ddl", []) as (server, log):
        counts: dict[str, list[int]] = {change: [] for change in CHANGES}
        for number in range(5):
            for change in CHANGES:
                before = counted(log)["log"]
                server.run(change.format(t=f"t{number}"), database="commits")
                counts[change].append(counted(log)["log"] - before)
                if change.startswith("create"):
                    server.run(f"insert into t{number} values (1, 2, 3, 4)", database="commits")
    for change, most in CHANGES.items():
        # A sync of the background may come between.
        usual = sorted(counts[change])[2]
        print(f"{change.split(' {')[0]:24} {usual} syncs of Shale's files")
        if usual > most:
            wrong.append(f"{change}: at most {most} syncs of Shale's files: {counts[change]}")
    return wrong


# Statements, whether they are in a transaction that stays open, and what is synced by them: of
# Shale's log and of the binary log, in this order. The rest of a cache of values costs nothing.
VALUES: list[tuple[str, bool, dict[str, list[str]]]] = [
    ("select nextval(plain)", False, {"plain": ["log"], "binlog": ["log", "binlog"]}),
    ("select nextval(cached)", False, {"plain": ["log"], "binlog": ["log", "binlog"]}),
    ("select nextval(cached)", False, {"plain": [], "binlog": []}),
    ("select nextval(plain)", True, {"plain": [], "binlog": ["log", "binlog"]}),
    ("select nextval(cached)", True, {"plain": [], "binlog": []}),
    ("insert into t (a) values (1)", False,
     {"plain": ["log"], "binlog": ["log", "binlog"]}),
    ("insert into aside select nextval(plain)", False,
     {"plain": ["log"], "binlog": ["log", "binlog"]}),
    # Of a temporary table nothing outlives the server.
    ("insert into aside values (1)", False, {"plain": [], "binlog": []}),
    ("select previous value for plain", False, {"plain": [], "binlog": []}),
    ("select * from plain", False, {"plain": [], "binlog": []}),
    # What comes before the last statement is not counted.
    ("lock tables plain write; select nextval(plain)", False,
     {"plain": ["log"], "binlog": ["log", "binlog"]}),
    ("begin; insert into other values (nextval(plain)); commit", False,
     {"plain": ["log"], "binlog": ["binlog"]}),
    ("xa start 'x'; insert into other values (nextval(plain)); xa end 'x'; xa prepare 'x'", False,
     {"plain": ["log"], "binlog": ["binlog"]}),
    ("select setval(plain, 1000)", False, {"plain": ["log"], "binlog": ["log", "binlog"]}),
]


def kinds(log: pathlib.Path) -> list[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    named = {"#shale": "log", "/bin.0": "binlog"}
    return [kind for line in lines for part, kind in named.items() if part in line]


def of_sequences(layout: servers.Layout, library: pathlib.Path, name: str,
                 options: list[str]) -> list[str]:
    """The statements with sequences that sync otherwise than they should, in most of some rounds."""
    wrong = []
    seen: list[list[list[str]]] = [[] for _ in VALUES]
    with counting(layout, library, f"sequences-{name}", options) as (server, log):
        for number in range(3):
            server.run(f"create database s{number}")
            connection = server.connect(f"s{number}")
            with connection.cursor() as cursor:
                cursor.execute("create sequence plain nocache")
                cursor.execute("create sequence cached")
                cursor.execute("create table t (id bigint primary key default nextval(plain), a int)")
                cursor.execute("create temporary table aside (id bigint)")
                cursor.execute("create table other (id bigint) engine=innodb")
                for place, (statement, open_, _) in enumerate(VALUES):
                    if open_:
                        cursor.execute("begin")
                    *first, last = statement.split("; ")
                    for one in first:
                        cursor.execute(one)
                    before = len(kinds(log))
                    cursor.execute(last)
                    seen[place].append(kinds(log)[before:])
                    cursor.execute("xa commit 'x'" if "xa " in statement else "commit")
                    cursor.execute("unlock tables")
            connection.close()
    for (statement, open_, expected), found in zip(VALUES, seen):
        print(f"{name:7} {statement}{' (open)' if open_ else ''}: {found}")
        # A sync of the background may come between.
        if found.count(expected[name]) < 2:
            wrong.append(f"{name}: {statement} syncs {expected[name]}: {found}")
    return wrong


def main() -> int:
    layout = servers.Layout()
    library = build(layout)
    binlog = ["log-bin=bin", "binlog-format=ROW", "sync-binlog=1", "server-id=1"]
    alone = measure(layout, library, "alone", [], 1)
    shared = measure(layout, library, "shared", [], CLIENTS)
    alone_logged = measure(layout, library, "alone-binlog", binlog, 1)
    wrong = of_ddl(layout, library)
    wrong += of_sequences(layout, library, "plain", [])
    wrong += of_sequences(layout, library, "binlog", binlog)
    logged = measure(layout, library, "shared-binlog", binlog, CLIENTS)
    if not 0.95 <= alone["log"] <= 1.3:
        wrong.append("a commit alone costs one sync")
    if shared["log"] > 0.9:
        wrong.append("eight clients share syncs of Shale's log")
    if not (0.95 <= alone_logged["log"] <= 1.3 and 0.95 <= alone_logged["binlog"] <= 1.3):
        wrong.append("with a binary log: one sync to prepare, one of that log, none to commit")
    if logged["log"] > 0.9 or logged["binlog"] > 0.9:
        wrong.append("eight clients share the syncs of both logs")
    for text in wrong:
        print(f"does not hold: {text}")
    if not wrong:
        layout.remove()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
