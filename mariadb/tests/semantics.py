"""What concurrent SQL answers on SHALE, InnoDB and MyRocks, side by side: docs/semantics.md.

    semantics.py            runs the cases; fails if the page would be another one
    semantics.py --bless    writes the page
    semantics.py NAME...    runs the cases whose title has one of these words, and prints

Each case is a script for connections A, B and C (semantics_calls.py, semantics_cases.py,
semantics_gaps.py, semantics_locks.py, semantics_more.py); the page has its statements with what
each engine answered beside them. What must hold beside the page: SHALE answers as InnoDB does,
unless the case says why not. semantics_why.py says why nobody depends on the other answer.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import time
from typing import Any

import pymysql

import semantics_calls  # noqa: F401 (they add their cases)
import semantics_cases
import semantics_gaps  # noqa: F401
import semantics_indexes  # noqa: F401
import semantics_locks  # noqa: F401
import semantics_more  # noqa: F401
import semantics_races
import semantics_why
import server as servers

# A statement that is in one state for so many looks, 40 milliseconds apart, waits for somebody.
LOOKS = 24
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
            "set shale_lock_wait_timeout=20",
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
        while self.running.is_alive() and times < LOOKS:
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

    def session(self, who: str) -> Session:
        if who not in self.sessions:
            self.sessions[who] = Session(self.server, self.engine, self.case.isolation)
        return self.sessions[who]

    def run(self, lines: list[str]) -> list[str]:
        """What each line was answered; nothing for those of which only errors are told."""
        watcher = self.server.connect()
        told: list[str] = []
        try:
            for line in lines:
                told.append(self.step(line, watcher))
            left = [who for who, session in self.sessions.items() if session.running]
            assert not left, f"{self.case.title} ({self.engine}): {left} still wait: {told}"
        finally:
            watcher.close()
            for session in self.sessions.values():
                session.connection.close()
        return told

    def step(self, line: str, watcher: pymysql.connections.Connection) -> str:
        who, _, statement = line.partition(" ")
        name, mark = who[0], who[1:]
        statement = statement.strip().replace("ENGINE", self.engine)
        if mark == "x":  # the connection goes away
            gone = self.sessions.pop(name)
            gone.connection.close()
            return ""
        session = self.session(name)
        if mark == ".":
            return session.end() if session.running is not None else ""
        if mark == "&":
            return session.begin(statement, watcher) if session.running is None else ""
        answer = session.ask(statement)
        return answer if mark == "?" or answer.startswith("error") else ""


def prepare(server: servers.Server, engine: str, setup: list[str]) -> None:
    server.run(f"drop database if exists {engine}", f"create database {engine}")
    server.run(f"set default_storage_engine={engine}", *setup, database=engine)


Answers = dict[str, dict[str, list[str]]]


def run_engine(server: servers.Server, engine: str, wanted: list[Any]) -> dict[str, list[str]]:
    answers = {}
    for case in wanted:
        servers.say(f"{engine}: {case.title}")
        if isinstance(case, semantics_cases.Script):
            prepare(server, engine, case.setup)
            answers[case.title] = Case(server, engine, case).run(case.lines)
        else:
            prepare(server, engine, semantics_cases.SETUP)
            answers[case.title] = [case.run(server, engine)]
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
        answers[engine][case.title] = first[database] + second
    return answers


def in_database(run: Case, database: str, lines: list[str]) -> list[str]:
    names = sorted({line[0] for line in lines})
    return run.run([f"{name} use {database}" for name in names] + lines)[len(names):]


def as_innodb(case: Any, answers: Answers) -> str:
    if answers["shale"][case.title] == answers["innodb"][case.title]:
        return "yes"
    return "no: " + case.reason if case.reason else "no"


HEAD = """# What concurrent SQL answers

Made by `mariadb/tests/semantics.py --bless`; `mariadb/test` runs the cases and compares. Each case
ran on Shale, InnoDB and MyRocks of one server, MariaDB {version}, with each engine's defaults and a
binary log of rows. `A`, `B` and `C` are connections; beside a statement is what it answered: rows
in parentheses, `waits` if it stood still, and in the line `(is awaited)` what it answered when it
went on. Of statements without an answer only errors would be told: 1020 is a row changed since it
was read, 1062 a duplicate key, 1205 a lock wait that timed out, 1213 a deadlock.

SHALE answers as InnoDB in {same} of {all} cases, MyRocks in {theirs}. Where SHALE does not, the
case says why; [the reasons](#where-shale-answers-otherwise) are together below.

| case | SHALE as InnoDB? | MyRocks? |
|---|---|---|
"""


OTHERWISE = """Some cases ask for the same twice, with and without something that an application neither
asks for nor knows. Where InnoDB's own answer changes with that, no application can depend on it.
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def link(title: str) -> str:
    """As pages of markdown name their headings."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return f"[{title}](#{kept.replace(' ', '-')})"


def page(version: str, cases: list[Any], answers: Answers) -> str:
    ours = sum(as_innodb(case, answers) == "yes" for case in cases)
    theirs = {case.title: answers["rocksdb"][case.title] == answers["innodb"][case.title]
              for case in cases}
    text = HEAD.format(version=version, same=ours, all=len(cases), theirs=sum(theirs.values()))
    for case in cases:
        rocks = "yes" if theirs[case.title] else "no"
        text += f"| {link(case.title)} | {cell(as_innodb(case, answers))} | {rocks} |\n"
    text += reasons(cases, answers)
    text += "\n## The cases\n\nUnless a case says otherwise each begins with this:\n\n"
    text += code(semantics_cases.SETUP)
    return text + "".join(section(case, answers) for case in cases)


def reasons(cases: list[Any], answers: Answers) -> str:
    """Each reason for another answer than InnoDB's: its cases, and why nobody depends on it."""
    text = "\n## Where SHALE answers otherwise\n\n" + OTHERWISE
    of_reason: dict[str, list[str]] = {}
    for case in cases:
        if as_innodb(case, answers) != "yes":
            of_reason.setdefault(case.reason, []).append(link(case.title))
    for reason, titles in of_reason.items():
        text += f"\n**{reason[:1].upper()}{reason[1:]}.** {', '.join(titles)}.\n\n"
        for line in semantics_why.WHY.get(reason, []):
            text += "- " + re.sub(r"\[(.*?)\]", lambda found: link(found[1]), line) + "\n"
    return text


def section(case: Any, answers: Answers) -> str:
    """A case: its statements, and what each engine answered beside them."""
    text = f"\n### {case.title}\n\n{case.text}\n"
    if case.reason and as_innodb(case, answers) != "yes":
        text += f"\nSHALE: {case.reason}.\n"
    lines = ["all connections together"]
    if isinstance(case, semantics_cases.Script):
        if case.setup is not semantics_cases.SETUP:
            text += "\n" + code(case.setup)
        lines = [describe(line) for line in case.lines]
        lines += [f"(after a restart) {describe(line)}" for line in case.after]
    text += "\n| | " + " | ".join(ENGINES.values()) + " |\n|---|" + "---|" * len(ENGINES) + "\n"
    for number, line in enumerate(lines):
        told = [cell(answers[engine][case.title][number]) for engine in ENGINES]
        text += f"| {cell(line)} | " + " | ".join(told) + " |\n"
    return text


def describe(line: str) -> str:
    who, _, statement = line.partition(" ")
    if who[1:] == "x":
        return f"{who[0]} (disconnects)"
    if who[1:] == ".":
        return f"{who[0]} (is awaited)"
    return f"{who[0]} `{statement}`"


def code(lines: list[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="concurrent SQL on three engines")
    parser.add_argument("--bless", action="store_true", help="write docs/semantics.md")
    parser.add_argument("words", nargs="*", help="only cases whose title has one of these")
    given = parser.parse_args()
    cases = semantics_cases.CASES + semantics_races.CASES
    unknown = set(semantics_why.named()) - {case.title for case in cases}
    assert not unknown, f"semantics_why.py names cases that there are not: {unknown}"
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
        print("".join(section(case, answers) for case in cases))
    elif given.bless:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        was = PAGE.read_text().splitlines() if PAGE.exists() else []
        lines = difflib.unified_diff(was, text.splitlines(), str(PAGE), "now", lineterm="")
        print("\n".join(lines))
        print("the answers are not those of docs/semantics.md; --bless writes them")
        return 1
    for title in unexplained:
        case = next(case for case in cases if case.title == title)
        print(f"SHALE answers other than InnoDB, without a reason:\n{section(case, answers)}")
    same = sum(as_innodb(case, answers) == "yes" for case in cases)
    print(f"semantics: {len(cases)} cases on 3 engines; SHALE as InnoDB in {same},"
          f" with a reason in {len(cases) - same - len(unexplained)}")
    if not unexplained:
        layout.remove()
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
