"""What a database has at the end: engines, checks, and all rows without times and tokens."""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import Any, Callable, Iterable

from server import Server

# What differs from run to run, by its form. The length stays the same, as PHP writes lengths down.
TAKEN_OUT = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b20\d{12}\b"), "TIME"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\b(noon|midnight|\d{1,2}(:\d\d)? [ap]\.m\.)"), "TIME"),
    (re.compile(r"\d{1,2}:\d\d(:\d\d)?( ?[ap]m)?", re.IGNORECASE), "TIME"),
    (re.compile(r"\b1[789]\d{8}\b"), "TIME"),
    # 32 hexadecimal digits and more: keys of caches and sessions.
    (re.compile(r"\b[0-9a-f]{32,}\b"), "TOKEN"),
    (re.compile(r"\b\d+ (second|minute|min|sec)s? ago"), "AGO"),
    # The folder of a run.
    (re.compile(r"[a-z-]+-(SHALE|InnoDB)/"), "FOLDER/"),
    (re.compile(r"\bfilter_[0-9a-f]{13}"), "FILTER"),
    (re.compile(r"_wpnonce=\w{10}"), "NONCE"),
]


def plain(value: Any) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    for pattern, word in TAKEN_OUT:
        text = pattern.sub(word, text)
    return text


def tables(server: Server, database: str) -> dict[str, str]:
    """Tables and their engines."""
    rows = server.run(
        "select table_name, engine from information_schema.tables"
        f" where table_schema = '{database}' and table_type = 'BASE TABLE'"
    )
    return {str(name): str(engine) for name, engine in rows}


def definitions(server: Server, database: str, ignored: str | None = None) -> dict[str, str]:
    """`SHOW CREATE TABLE`, without engine, the next number, and lines that are ignored."""
    made = {}
    for table in tables(server, database):
        text = str(server.run(f"show create table `{database}`.`{table}`")[0][1])
        text = re.sub(r" (ENGINE|AUTO_INCREMENT)=\w+", "", text)
        if ignored is not None:
            kept = [line.rstrip(",") for line in text.splitlines() if not re.fullmatch(ignored, line)]
            text = "\n".join(kept)
        made[table] = text
    return made


def contents(
    server: Server, database: str, ignored: Iterable[tuple[str, str]],
    left_out: Iterable[tuple[str, str, str]],
) -> dict[str, list[tuple[str, ...]]]:
    """Each table's rows, in order of what they are."""
    left_out = list(left_out)
    ignored = list(ignored)
    found = {}
    connection = server.connect(database, charset="utf8mb4")
    try:
        with connection.cursor() as cursor:
            for table in sorted(tables(server, database)):
                cursor.execute(f"select * from `{table}`")
                names = [one[0] for one in cursor.description]
                unseen = {
                    name for name in names
                    if any(re.fullmatch(t, table) and re.fullmatch(c, name) for t, c in ignored)
                }
                rules = [
                    (at, words) for t, c, words in left_out if re.fullmatch(t, table)
                    for at, name in enumerate(names) if re.fullmatch(c, name)
                ]
                rows = []
                for row in cursor.fetchall():
                    values = tuple(
                        "" if name in unseen else "NULL" if value is None else plain(value)
                        for name, value in zip(names, row)
                    )
                    if not any(re.search(words, values[at]) for at, words in rules):
                        rows.append(values)
                found[table] = sorted(rows)
    finally:
        connection.close()
    return found


def checked(server: Server, database: str) -> list[str]:
    """What `CHECK TABLE ... EXTENDED` finds in all tables."""
    bad = []
    for table in sorted(tables(server, database)):
        for row in server.run(f"check table `{database}`.`{table}` extended"):
            if (row[2], row[3]) != ("status", "OK"):
                bad.append(f"CHECK TABLE {table}: {row[2]}: {row[3]}")
    return bad


def foreign_keys(server: Server, database: str) -> list[tuple[str, ...]]:
    """Each column of each foreign key, with its rules, as `information_schema` has them."""
    rows = server.run(
        "select k.table_name, k.constraint_name, k.ordinal_position, k.column_name,"
        " k.referenced_table_name, k.referenced_column_name, r.unique_constraint_name,"
        " r.update_rule, r.delete_rule"
        " from information_schema.key_column_usage k"
        " join information_schema.referential_constraints r"
        " on r.constraint_schema = k.constraint_schema and r.table_name = k.table_name"
        " and r.constraint_name = k.constraint_name"
        f" where k.table_schema = '{database}' and k.referenced_table_name is not null"
    )
    return sorted(tuple(map(str, row)) for row in rows)


def orphans(server: Server, database: str) -> list[str]:
    """Rows whose parent is missing, asked without any foreign key."""
    columns: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for table, name, _, column, parent, referenced, *_ in foreign_keys(server, database):
        columns.setdefault((table, name, parent), []).append((column, referenced))
    bad = []
    for (table, name, parent), pairs in columns.items():
        given = " and ".join(f"c.`{column}` is not null" for column, _ in pairs)
        met = " and ".join(f"p.`{referenced}` = c.`{column}`" for column, referenced in pairs)
        rows = server.run(
            f"select count(*) from `{database}`.`{table}` c where {given}"
            f" and not exists (select 1 from `{database}`.`{parent}` p where {met})"
        )
        if rows[0][0]:
            bad.append(f"{rows[0][0]} rows of {table} have no parent by {name}")
    return bad


def restored(server: Server, database: str, file: pathlib.Path) -> list[str]:
    """What differs of a database that is made of a dump of this one."""
    programs, copy = server.layout.server / "bin", f"{database}_restored"
    common = [f"--socket={server.socket}", "--user=root", "--default-character-set=utf8mb4"]
    with open(file, "wb") as out:
        subprocess.run(
            [str(programs / "mariadb-dump"), "--no-defaults", *common, "--single-transaction", "--routines",
             "--triggers", "--hex-blob", database],
            check=True, stdout=out, env=server.layout.environment,
        )
    server.run(f"create database {copy} character set utf8mb4")
    with open(file, "rb") as dump:
        done = subprocess.run(
            [str(programs / "mariadb"), "--no-defaults", *common, copy], stdin=dump,
            stderr=subprocess.PIPE, text=True, env=server.layout.environment,
        )
    if done.returncode != 0:
        return [f"the dump is not taken: {done.stderr.strip()}"]
    bad = [f"restored: {line}" for line in checked(server, copy) + orphans(server, copy)]
    asked: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("definitions", lambda of: definitions(server, of)),
        ("engines", lambda of: tables(server, of)),
        ("foreign keys", lambda of: foreign_keys(server, of)),
        ("rows", lambda of: contents(server, of, (), ())),
    )
    bad.extend(f"restored: {what} differ" for what, ask in asked if ask(database) != ask(copy))
    return bad
