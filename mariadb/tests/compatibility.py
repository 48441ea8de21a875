"""Which features of InnoDB's manual SHALE has, beside MyRocks and TideSQL: docs/compatibility.md.

    compatibility.py            asks the engines; fails if the page would be another one
    compatibility.py --bless    writes the page
    compatibility.py WORD...    asks for features whose name has one of these words, and prints

The features are in compatibility_tables.py, compatibility_alter.py, compatibility_work.py and
compatibility_keys.py. Where a statement can show a feature, InnoDB, SHALE and MyRocks of one server are asked by it. TideSQL is
not here: what its manual says is written down with the feature. Each feature names the test of this
repository that shows SHALE's answer, which has to exist.
"""

from __future__ import annotations

import argparse
import difflib
import os
import pathlib
import secrets
import sys
import textwrap
from typing import Any

import pymysql

import compatibility_alter
import compatibility_keys
import compatibility_tables
import compatibility_work
import server as servers
from compatibility_feature import ENGINES, Change, Feature, Section

PAGE = servers.REPOSITORY / "docs/compatibility.md"
SECTIONS = (
    compatibility_tables.SECTIONS
    + compatibility_alter.SECTIONS
    + compatibility_work.SECTIONS
    + compatibility_keys.SECTIONS
)
ALGORITHMS = ("instant", "nocopy", "inplace", "copy")
LOCKS = {"none": "writers go on", "shared": "readers go on", "exclusive": "nobody goes on"}
WAIT = (
    "set innodb_lock_wait_timeout = 1, rocksdb_lock_wait_timeout = 1, shale_lock_wait_timeout = 1,"
    " lock_wait_timeout = 5"
)


class Asked:
    """What an engine answered: whether it has the feature, and if not, the refusal."""

    def __init__(
        self,
        answer: str,
        error: tuple[int, str] | None = None,
        statement: str = "",
        given: str = "",
    ) -> None:
        self.answer, self.error, self.statement, self.given = answer, error, statement, given


def connections(server: servers.Server, engine: str) -> dict[str, Any]:
    """Two connections of an empty schema, whose tables are the engine's."""
    server.run("set foreign_key_checks = 0", f"create or replace database {engine}")
    both = {}
    for name in ("A", "B"):
        both[name] = server.connect(engine)
        with both[name].cursor() as cursor:
            cursor.execute(f"set default_storage_engine = {engine}")
            cursor.execute(WAIT)
    return both


def run(connection: Any, statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        if cursor.description is None:
            return "done"
        return " ".join(
            "(" + ",".join("NULL" if value is None else str(value) for value in row) + ")"
            for row in cursor.fetchall()
        )


def failed(error: pymysql.err.MySQLError) -> tuple[int, str]:
    return int(error.args[0]), str(error.args[1])


def ask(server: servers.Server, engine: str, feature: Feature) -> Asked:
    """Whether an engine has a feature."""
    statements = feature.of.get(engine, feature.sql)
    if engine in feature.says and not statements or not statements:
        return Asked(feature.says[engine])
    both = connections(server, engine)
    answer, error, statement = "", None, ""
    try:
        for number, line in enumerate(statements):
            who, _, rest = line.partition(": ") if line.startswith("B: ") else ("A", "", line)
            statement = rest.replace("ENGINE", engine)
            try:
                answer = run(both[who], statement)
            except pymysql.err.MySQLError as problem:
                error = failed(problem)
                answer = f"error {error[0]}"
                if number < len(statements) - 1 or answer != feature.want:
                    break
    finally:
        for connection in both.values():
            connection.close()
    wanted = feature.want if engine not in feature.of else None
    has = not answer.startswith("error") if wanted is None else answer == wanted
    if has:
        return Asked(feature.says.get(engine, "yes"))
    if error is None:
        return Asked(feature.says.get(engine, "no"), None, statement, answer)
    return Asked(feature.says.get(engine, "no"), error, statement)


def change(server: servers.Server, engine: str, wanted: Change) -> Asked:
    """The best way by which an engine does a change. What is refused leaves the table as it was."""
    both = connections(server, engine)
    error, statement = None, f"alter table t {wanted.sql.replace('ENGINE', engine)}"
    try:
        for line in (*wanted.before, wanted.table):
            run(both["A"], line)
        values = "(id, a) values (1, 1), (2, 2)" if " a int" in wanted.table else "() values ()"
        run(both["A"], f"insert ignore into t {values}")
        for algorithm in ALGORITHMS:
            for lock, who in LOCKS.items():
                try:
                    run(both["A"], f"{statement}, algorithm={algorithm}, lock={lock}")
                    return Asked(
                        "instant"
                        if algorithm == "instant" and lock == "none"
                        else f"{algorithm}, {who}"
                    )
                except pymysql.err.MySQLError as problem:
                    error = failed(problem)
                    if not error[1].startswith("LOCK="):  # the way is refused, whoever goes on
                        break
    except pymysql.err.MySQLError as problem:
        error = failed(problem)
    finally:
        for connection in both.values():
            connection.close()
    return Asked("no", error, statement)


Answers = dict[str, dict[str, Asked]]


def ask_all(server: servers.Server, engine: str, sections: list[Section]) -> dict[str, Asked]:
    answers = {}
    for section in sections:
        for row in section.rows:
            asked = change if isinstance(row, Change) else ask
            answers[row.name] = asked(server, engine, row)  # type: ignore[operator]
    return answers


HEAD = """# What SHALE has of InnoDB

Made by `mariadb/tests/compatibility.py --bless`, which `mariadb/test` runs and compares. Each row
is a feature of InnoDB's pages in MariaDB's manual. InnoDB, SHALE and MyRocks of one server, MariaDB
{version}, were asked by statements, where a statement can show it; `no` is followed by the number
of the error. What is of TideSQL is what its pages in MariaDB's manual say (TideSQL 5, 2026; `?`
where they do not say), as nothing of it was run. The last column has the test of this repository
that shows SHALE's answer: a program of `mariadb/tests`, or a test of
`mariadb/shale/mysql-test/shale/t`.

| | features | InnoDB | SHALE | MyRocks | TideSQL |
|---|---|---|---|---|---|
{sums}
[What SHALE refuses](#what-shale-refuses) is at the end.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def told(asked: Asked) -> str:
    """As the page has it."""
    if asked.answer == "no" and asked.error is not None:
        return f"no ({asked.error[0]})"
    return asked.answer


def sums(sections: list[Section], answers: Answers) -> str:
    """How many features of each section an engine has."""
    lines = []
    for section in sections:
        counts = []
        for engine in ENGINES:
            of = [answers[engine][row.name] for row in section.rows]
            counts.append(sum(asked.answer not in ("no", "?") for asked in of))
        theirs = sum(row.tidesql not in ("no", "?") for row in section.rows)
        unsaid = sum(row.tidesql == "?" for row in section.rows)
        counts_text = " | ".join(map(str, counts))
        lines.append(
            f"| [{section.title}](#{anchor(section.title)}) | {len(section.rows)} | {counts_text} |"
            f" {theirs}, {unsaid} not said |\n"
        )
    return "".join(lines)


def anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def page(version: str, answers: Answers) -> str:
    sections = list(SECTIONS)
    text = HEAD.format(version=version, sums=sums(sections, answers))
    for section in sections:
        text += f"\n## {section.title}\n"
        if section.text:
            text += "\n" + textwrap.fill(section.text, 99, break_on_hyphens=False) + "\n"
        text += "\n| | InnoDB | SHALE | MyRocks | TideSQL | test |\n|---|---|---|---|---|---|\n"
        for row in section.rows:
            note = f" ({row.note})" if isinstance(row, Feature) and row.note else ""
            of = " | ".join(cell(told(answers[engine][row.name])) for engine in ENGINES)
            text += f"| {cell(row.name + note)} | {of} | {row.tidesql} | {row.tests} |\n"
    return text + refusals(answers)


def refusals(answers: Answers) -> str:
    """Each statement that InnoDB takes and SHALE does not, with SHALE's words."""
    text = "\n## What SHALE refuses\n\nStatements that InnoDB takes, with SHALE's error, or its"
    text += " other answer.\n\n"
    text += "| | statement | SHALE | test |\n|---|---|---|---|\n"
    for section in SECTIONS:
        for row in section.rows:
            asked = answers["shale"][row.name]
            if (
                asked.answer == "no"
                and asked.statement
                and answers["innodb"][row.name].answer != "no"
            ):
                words = f"{asked.error[0]}: {asked.error[1]}" if asked.error else asked.given
                of = (row.name, f"`{asked.statement}`", words, row.tests)
                text += "| " + " | ".join(map(cell, of)) + " |\n"
    return text


def missing_tests() -> list[str]:
    """Names of tests that there are not, and of features that are there twice."""
    here = servers.HERE
    suite = here.parent / "shale/mysql-test/shale/t"
    names = [row.name for section in SECTIONS for row in section.rows]
    wrong = [f"{name} is there twice" for name in names if names.count(name) > 1]
    for section in SECTIONS:
        for row in section.rows:
            for name in filter(None, (one.strip() for one in row.tests.split(","))):
                file = here / name if name.endswith(".py") else suite / f"{name}.test"
                if not file.exists():
                    wrong.append(f"{row.name}: there is no test {file}")
    return wrong


def untested(answers: Answers) -> list[str]:
    """Features that SHALE has, and that no test is named for."""
    return [
        f"{row.name}: SHALE says {answers['shale'][row.name].answer}, and no test is named"
        for section in SECTIONS
        for row in section.rows
        if not row.tests and answers["shale"][row.name].answer != "no"
    ]


def options(layout: servers.Layout) -> list[str]:
    """Options of the server: MyRocks, and a key to encrypt with."""
    keys = layout.folder / "keys"
    keys.write_text(f"1;{secrets.token_hex(32)}\n")
    keys.chmod(0o600)
    return [
        "plugin-load-add=ha_rocksdb",
        "plugin-load-add=file_key_management",
        f"loose-file-key-management-filename={keys}",
        "query-cache-type=1",
        "max-allowed-packet=64M",
        "sql-mode=STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
        "innodb-flush-log-at-trx-commit=0",
        "shale-durability=none",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="features of InnoDB on three engines")
    parser.add_argument("--bless", action="store_true", help="write docs/compatibility.md")
    parser.add_argument("words", nargs="*", help="only features whose name has one of these")
    given = parser.parse_args()
    sections = list(SECTIONS)
    if given.words:
        sections = [
            Section(
                one.title,
                one.text,
                tuple(row for row in one.rows if any(word in row.name for word in given.words)),
            )
            for one in sections
        ]
    # In memory: what a disk does is asked elsewhere.
    memory = pathlib.Path("/dev/shm")
    layout = servers.Layout(memory if os.access(memory, os.W_OK) else None)
    server = servers.Server(layout, "one", options(layout))
    try:
        server.start()
        version = server.run("select version()")[0][0].split("-")[0]
        answers: Answers = dict(
            zip(ENGINES, servers.all_of((ask_all, server, one, sections) for one in ENGINES))
        )
        server.stop()
    finally:
        server.kill()
    if given.words:
        show(sections, answers)
        layout.remove()
        return 0
    return finish(given.bless, layout, page(version, answers), answers)


def show(sections: list[Section], answers: Answers) -> None:
    for section in sections:
        for row in section.rows:
            print(row.name)
            for engine in ENGINES:
                asked = answers[engine][row.name]
                print(f"    {engine}: {told(asked)} {asked.error or ''} {asked.statement}")


def finish(bless: bool, layout: servers.Layout, text: str, answers: Answers) -> int:
    wrong = missing_tests() + untested(answers)
    if bless:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        was = PAGE.read_text().splitlines() if PAGE.exists() else []
        print(
            "\n".join(difflib.unified_diff(was, text.splitlines(), str(PAGE), "now", lineterm=""))
        )
        wrong.append("the answers are not those of docs/compatibility.md; --bless writes them")
    print("\n".join(wrong))
    rows = sum(len(section.rows) for section in SECTIONS)
    has = sum(asked.answer not in ("no", "?") for asked in answers["shale"].values())
    print(f"compatibility: {rows} features, {has} of SHALE, {len(wrong)} faults")
    if not wrong:
        layout.remove()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
