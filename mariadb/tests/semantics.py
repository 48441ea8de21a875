"""What concurrent SQL answers on SHALE, InnoDB and MyRocks, side by side: docs/semantics.md.

    semantics.py            runs the cases; fails if the page would be another one
    semantics.py --bless    writes the page
    semantics.py NAME...    runs the cases whose title has one of these words, and prints

Each case is a script for connections A, B and C (semantics_cases.py, semantics_more.py). What must
hold beside the page: SHALE answers as InnoDB does, unless the case says why not.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from typing import Any

import pymysql

import semantics_cases
import semantics_more  # noqa: F401 (it adds its cases)
import semantics_races
import server as servers

ENGINES = {"innodb": "InnoDB", "rocksdb": "MyRocks", "shale": "SHALE"}
PAGE = servers.REPOSITORY / "docs/semantics.md"


def answer_of(cursor: Any) -> str:
    """Rows as `1,2; 3,4`, or how many were changed."""
    if cursor.description is None:
        return f"{cursor.rowcount} changed"
    rows = cursor.fetchall()
    if not rows:
        return "no row"
    return " ".join("(" + ",".join("NULL" if v is None else str(v) for v in row) + ")"
                    for row in rows)


def code_of(error: Exception) -> str:
    code = error.args[0] if error.args else error
    return f"error {code}"


class Session:
    """A connection of a case; at most one statement of it is on its way."""

    def __init__(self, server: servers.Server, engine: str, isolation: str) -> None:
        self.connection = server.connect(engine)
        self.running: servers.Running | None = None
        for statement in (
            f"set session transaction isolation level {isolation}",
            f"set default_storage_engine={engine}",
            # Long enough that no case runs into it but those that set it; MyRocks, which does not
            # look for deadlocks unless told to, ends them by it.
            "set innodb_lock_wait_timeout=60, rocksdb_lock_wait_timeout=6",
            "set shale_lock_wait_timeout=60",
        ):
            self.ask(statement)

    def ask(self, statement: str) -> str:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)
                return answer_of(cursor)
        except pymysql.err.MySQLError as error:
            return code_of(error)

    def begin(self, statement: str, watcher: pymysql.connections.Connection) -> str:
        """Starts a statement; its answer, or `waits` if it stands still."""
        self.running = servers.Running(self.ask, statement)
        seen, times = None, 0
        while self.running.is_alive() and times < 12:
            with watcher.cursor() as cursor:
                cursor.execute(
                    "select query_id, state from information_schema.processlist"
                    " where id = %s and command = 'Query'",
                    (self.connection.thread_id(),),
                )
                now = cursor.fetchone()
            times = times + 1 if now is not None and now == seen else 0
            seen = now
            time.sleep(0.04)
        if self.running.is_alive():
            return "waits"
        return self.end()

    def end(self) -> str:
        assert self.running is not None, "the case awaits a statement that was not begun"
        answer = self.running.get()
        self.running = None
        return answer


class Case:
    """One run of a script on one engine."""

    def __init__(self, server: servers.Server, engine: str, case: semantics_cases.Script) -> None:
        self.server, self.engine, self.case = server, engine, case
        self.sessions: dict[str, Session] = {}
        self.told: list[str] = []

    def session(self, who: str) -> Session:
        if who not in self.sessions:
            self.sessions[who] = Session(self.server, self.engine, self.case.isolation)
        return self.sessions[who]

    def run(self, lines: list[str]) -> str:
        watcher = self.server.connect()
        try:
            for line in lines:
                self.step(line, watcher)
            left = [who for who, session in self.sessions.items() if session.running]
            assert not left, f"{self.case.title} ({self.engine}): {left} still wait: {self.told}"
        finally:
            watcher.close()
            for session in self.sessions.values():
                session.connection.close()
        return "; ".join(self.told)

    def step(self, line: str, watcher: pymysql.connections.Connection) -> None:
        who, _, statement = line.partition(" ")
        name, mark = who[0], who[1:]
        statement = statement.strip().replace("ENGINE", self.engine)
        if mark == "x":  # the connection goes away
            gone = self.sessions.pop(name)
            gone.connection.close()
            return
        session = self.session(name)
        if mark == ".":
            if session.running is not None:
                self.told.append(f"{name} then {session.end()}")
        elif mark == "&" and session.running is not None:
            return
        elif mark == "&":
            self.told.append(f"{name} {session.begin(statement, watcher)}")
        elif mark == "?":
            self.told.append(f"{name} {session.ask(statement)}")
        else:
            answer = session.ask(statement)
            if answer.startswith("error"):
                self.told.append(f"{name} {answer}")


def prepare(server: servers.Server, engine: str, setup: list[str]) -> None:
    server.run(f"drop database if exists {engine}", f"create database {engine}")
    server.run(f"set default_storage_engine={engine}", *setup, database=engine)


Answers = dict[str, dict[str, str]]


def run_engine(server: servers.Server, engine: str, wanted: list[Any]) -> dict[str, str]:
    answers = {}
    for case in wanted:
        servers.say(f"{engine}: {case.title}")
        if isinstance(case, semantics_cases.Script):
            prepare(server, engine, case.setup)
            answers[case.title] = Case(server, engine, case).run(case.lines)
        else:
            prepare(server, engine, semantics_cases.SETUP)
            answers[case.title] = case.run(server, engine)
    return answers


def run_restarts(server: servers.Server, wanted: list[Any]) -> Answers:
    """Cases around a restart: all first parts, the restart, all second parts."""
    answers: Answers = {engine: {} for engine in ENGINES}
    tables = []
    for number, case in enumerate(wanted):
        for engine in ENGINES:
            table = f"r{number}"
            server.run(f"drop database if exists {engine}_{table}",
                       f"create database {engine}_{table}")
            tables.append((case, engine, f"{engine}_{table}"))
    first = {}
    for case, engine, database in tables:
        server.run(f"set default_storage_engine={engine}", *case.setup, database=database)
        run = Case(server, engine, case)
        first[database] = in_database(run, database, case.lines)
    server.stop()
    server.start()
    for case, engine, database in tables:
        run = Case(server, engine, case)
        second = in_database(run, database, case.after)
        answers[engine][case.title] = "; ".join(part for part in (first[database], second) if part)
    return answers


def in_database(run: Case, database: str, lines: list[str]) -> str:
    names = sorted({line[0] for line in lines})
    return run.run([f"{name} use {database}" for name in names] + lines)


def as_innodb(case: Any, answers: Answers) -> str:
    if answers["shale"][case.title] == answers["innodb"][case.title]:
        return "yes"
    return "no: " + case.reason if case.reason else "no"


HEAD = """# What concurrent SQL answers

Made by `mariadb/tests/semantics.py --bless`; `./test` runs the cases and compares. Each case ran on
Shale, InnoDB and MyRocks of one server, MariaDB {version}, with each engine's defaults. The
scripts are below the table: `A`, `B` and `C` are connections. In an answer, `waits` says that the
statement stood still, and `then` what it answered when it went on; rows are in parentheses; error
1205 is a lock wait that timed out, 1213 a deadlock, 1062 a duplicate key, 1020 a row changed
since it was read.

| case | InnoDB | MyRocks | SHALE | as InnoDB? |
|---|---|---|---|---|
"""


def page(version: str, cases: list[Any], answers: Answers) -> str:
    text = HEAD.format(version=version)
    for case in cases:
        cells = [case.title] + [answers[engine][case.title] for engine in ENGINES]
        cells.append(as_innodb(case, answers))
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    text += "\n## The cases\n\nUnless a case says otherwise each begins with this:\n\n"
    text += code(semantics_cases.SETUP)
    for case in cases:
        text += f"\n### {case.title}\n\n{case.text}\n"
        if isinstance(case, semantics_cases.Script):
            if case.setup is not semantics_cases.SETUP:
                text += "\n" + code(case.setup)
            text += "\n" + code([describe(line) for line in case.lines])
            if case.after:
                text += "\nAfter a restart of the server:\n\n"
                text += code([describe(line) for line in case.after])
    return text


def describe(line: str) -> str:
    who, _, statement = line.partition(" ")
    if who[1:] == "x":
        return f"{who[0]}  (disconnects)"
    if who[1:] == ".":
        return f"{who[0]}  (is awaited)"
    return f"{who[0]}  {statement}"


def code(lines: list[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="concurrent SQL on three engines")
    parser.add_argument("--bless", action="store_true", help="write docs/semantics.md")
    parser.add_argument("words", nargs="*", help="only cases whose title has one of these")
    given = parser.parse_args()
    cases = semantics_cases.CASES + semantics_races.CASES
    if given.words:
        cases = [case for case in cases if any(word in case.title for word in given.words)]
    layout = servers.Layout()
    server = servers.Server(layout, "one", ["plugin-load-add=ha_rocksdb", "log-bin=bin",
                                            "binlog-format=ROW", "server-id=1"])
    try:
        server.start()
        version = server.run("select version()")[0][0].split("-")[0]
        plain = [case for case in cases if not getattr(case, "after", None)]
        answers: Answers = dict(
            zip(ENGINES, servers.all_of((run_engine, server, one, plain) for one in ENGINES))
        )
        for engine, more in run_restarts(
            server, [case for case in cases if getattr(case, "after", None)]
        ).items():
            answers[engine].update(more)
        server.stop()
    finally:
        server.kill()
    return finish(given, layout, page(version, cases, answers), cases, answers)


def finish(
    given: argparse.Namespace, layout: servers.Layout, text: str, cases: list[Any], answers: Answers
) -> int:
    unexplained = [case.title for case in cases if as_innodb(case, answers) == "no"]
    if given.words:
        print("\n".join(f"{case.title}\n  " + "\n  ".join(
            f"{engine:8} {answers[engine][case.title]}" for engine in ENGINES) for case in cases))
    elif given.bless:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        was = PAGE.read_text().splitlines() if PAGE.exists() else []
        lines = difflib.unified_diff(was, text.splitlines(), str(PAGE), "now", lineterm="")
        print("\n".join(lines))
        print("the answers are not those of docs/semantics.md; --bless writes them")
        return 1
    for title in unexplained:
        print(f"SHALE answers other than InnoDB, without a reason: {title}\n"
              f"  InnoDB: {answers['innodb'][title]}\n  SHALE:  {answers['shale'][title]}")
    same = sum(as_innodb(case, answers) == "yes" for case in cases)
    print(f"semantics: {len(cases)} cases on 3 engines; SHALE as InnoDB in {same},"
          f" with a reason in {len(cases) - same - len(unexplained)}")
    if not unexplained:
        layout.remove()
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
