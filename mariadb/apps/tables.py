"""What a database has at the end: engines, checks, and all rows without times and tokens."""

from __future__ import annotations

import re
from typing import Any, Iterable

from server import Server

# What differs from run to run, by its form. The length stays the same, as PHP writes lengths down.
TAKEN_OUT = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b20\d{12}\b"), "TIME"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\d{1,2}:\d\d(:\d\d)?( ?[ap]m)?", re.IGNORECASE), "TIME"),
    (re.compile(r"\b1[789]\d{8}\b"), "TIME"),
    # 32 hexadecimal digits and more: keys of caches and sessions.
    (re.compile(r"\b[0-9a-f]{32,}\b"), "TOKEN"),
    (re.compile(r"\b\d+ (second|minute|min|sec)s? ago"), "AGO"),
    # The folder of a run.
    (re.compile(r"(wordpress|mediawiki)-(SHALE|InnoDB)/"), "FOLDER/"),
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


def definitions(server: Server, database: str) -> dict[str, str]:
    """`SHOW CREATE TABLE`, without engine and the next number."""
    made = {}
    for table in tables(server, database):
        text = str(server.run(f"show create table `{database}`.`{table}`")[0][1])
        made[table] = re.sub(r" (ENGINE|AUTO_INCREMENT)=\w+", "", text)
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
                rules = [(names.index(c), words) for t, c, words in left_out if re.fullmatch(t, table)]
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
                bad.append(f"{table}: {row[2]}: {row[3]}")
    return bad
