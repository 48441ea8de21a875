"""Two databases of one server, one of each engine; a statement goes to both and the answers are compared.

A script says SHALE and `fuzz`; for the other side these words are replaced. Comments in a statement
say how its answer is compared:

    /*ordered*/  the order of rows counts (ORDER BY is total); else rows are a multiset
    /*meta*/     rows name the engine or the database: replaced before they are compared
    /*loose*/    of errors and warnings the code counts, not the text, nor how often one came
    /*only*/     runs on SHALE only
    /*same*/     has to give the rows of SHALE's statement before it
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import re
import shutil
import sys
import tempfile
import time
from typing import Any, Collection, Iterable

import wire
from wire import Gone, Result

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import server as servers  # noqa: E402

ENGINE = re.compile(r"\bSHALE\b", re.IGNORECASE)
ENGINE_BYTES = re.compile(rb"\b(shale|innodb|myisam)\b", re.IGNORECASE)
TEMPORARY = re.compile(rb"#sql[-\w]*|\(temporary\)")
AT_ROW = re.compile(rb" at row \d+")
# Of an EXPLAIN's row: a table, how it is read, and by which key.
TABLE, HOW, BY = 2, 3, 5
# How a SPATIAL index is asked for, and the names of all of a table.
SHAPE_KEYS = re.compile(r"(?: force index \([^)]*\))? /\*(k\d+(?:,k\d+)*)\*/")
# What a session begins with; what is not said here is the server's default.
SESSION = [
    "set names utf8mb4",
    "set default_storage_engine=SHALE, default_tmp_storage_engine=SHALE",
    "set innodb_lock_wait_timeout=1, lock_wait_timeout=1, shale_lock_wait_timeout=1",
    "set timestamp=1700000000",
    # Values that are the same in what a sort compares of them have no order.
    "set max_sort_length=65536, sort_buffer_size=16777216",
]
OPTIONS = [
    "character-set-server=utf8mb4", "skip-log-bin", "innodb-flush-log-at-trx-commit=0",
    "innodb-doublewrite=0", "innodb-flush-method=nosync", "innodb-log-file-size=16M",
    "innodb-buffer-pool-size=64M", "loose-shale-durability=none", "sync-frm=0",
    "max-statement-time=30", "innodb-stats-persistent=1", "innodb-lock-wait-timeout=1",
    "loose-shale-lock-wait-timeout=1", "local-infile=0", "performance-schema=0",
    "max-connections=60", "thread-stack=1M", "innodb-status-output=0", "log-warnings=1",
    "innodb-stats-auto-recalc=0",
    "secure-file-priv=", "table-open-cache=400",
]
STATEMENT_TIMEOUT = 1969
CONNECTION = re.compile(r"Connection ID \(thread ID\): (\d+)")


@dataclasses.dataclass(frozen=True)
class Step:
    sql: str
    session: int = 0


@dataclasses.dataclass
class Difference:
    """What differed: `kind` is what the shrinker holds on to."""

    kind: str
    step: Step
    ours: str
    theirs: str
    index: int = -1
    # What a planted or listed difference is told by.
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.step.sql}\n  SHALE:  {self.ours}\n  InnoDB: {self.theirs}"


class Found(Exception):
    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Stopped(Exception):
    """The program cannot go on: a listed difference has left two states, or a time-out."""


def plain(text: bytes) -> bytes:
    text = text.replace(b"fuzz_s", b"fuzz").replace(b"fuzz_i", b"fuzz")
    return TEMPORARY.sub(b"#tmp", ENGINE_BYTES.sub(b"ENGINE", text))


def plain_row(row: bytes) -> tuple[Any, ...]:
    return tuple(None if value is None else plain(value) for value in wire.fields(row))


def shown_row(row: Any) -> str:
    values = wire.fields(row) if isinstance(row, bytes) else row
    return "(" + ", ".join("NULL" if v is None else repr(v)[1:] for v in values) + ")"


def shown(results: list[Result]) -> str:
    parts = []
    for one in results:
        if one.kind == "error":
            parts.append(f"error {one.code}: {one.text.decode(errors='replace')}")
        elif one.kind == "ok":
            parts.append(f"ok: {one.affected} affected, insert id {one.insert_id},"
                         f" {one.warnings} warnings {one.text.decode(errors='replace')}")
        else:
            rows = " ".join(shown_row(row) for row in one.rows[:5])
            parts.append(f"{len(one.rows)} rows, {one.warnings} warnings: {rows}")
    return "; ".join(parts)


def rows_apart(ours: Iterable[Any], theirs: Iterable[Any]) -> tuple[str, str]:
    """The rows that one side has and the other has not."""
    here, there = collections.Counter(ours), collections.Counter(theirs)

    def told(some: collections.Counter[Any], all_of: collections.Counter[Any]) -> str:
        few = " ".join(shown_row(row) for row in list(some.elements())[:4])
        return f"{all_of.total()} rows; only here {some.total()}: {few}"

    return told(here - there, here), told(there - here, there)


def counts_by_plan(sql: str) -> bool:
    """Whether messages count rows as a plan reads them: statistics may give the engines two plans."""
    return " select " in sql or re.match("(update|delete)", sql, re.IGNORECASE) is not None


def plan_of(results: list[Result]) -> list[tuple[bytes | None, ...]]:
    """Of what EXPLAIN answers: each table, how it is read, and by which key; nothing of an error."""
    rows = [wire.fields(row) for result in results for row in result.rows]
    return [(row[TABLE], row[HOW], row[BY]) for row in rows]


def compare(sql: str, ours: list[Result], theirs: list[Result]) -> tuple[str, str, str] | None:
    """Kind of the difference, and both answers."""
    if len(ours) != len(theirs) or any(a.kind != b.kind for a, b in zip(ours, theirs)):
        return "outcome", shown(ours), shown(theirs)
    loose = "/*loose*/" in sql
    for a, b in zip(ours, theirs):
        if a.kind == "error":
            if a.code != b.code:
                return "error code", shown(ours), shown(theirs)
            texts = [plain(one.text) for one in (a, b)]
            if counts_by_plan(sql):
                texts = [AT_ROW.sub(b"", one) for one in texts]
            if not loose and texts[0] != texts[1]:
                return "error text", shown(ours), shown(theirs)
        elif a.kind == "ok":
            for what in ("affected", "insert_id", "text"):
                if getattr(a, what) != getattr(b, what):
                    return what, shown(ours), shown(theirs)
        else:
            found = compare_rows(sql, a, b)
            if found is not None:
                return found
        if a.warnings != b.warnings and not loose:
            return "warnings", shown(ours), shown(theirs)
    return None


def compare_rows(sql: str, a: Result, b: Result) -> tuple[str, str, str] | None:
    # What names the engine or the database has another length.
    if a.columns != b.columns and "/*meta*/" not in sql:
        return "columns", str(a.columns), str(b.columns)
    if a.rows == b.rows:
        return None
    ours: list[Any] = a.rows
    theirs: list[Any] = b.rows
    if "/*meta*/" in sql:
        ours, theirs = [plain_row(row) for row in ours], [plain_row(row) for row in theirs]
    if "/*ordered*/" in sql and ours != theirs:
        if collections.Counter(ours) == collections.Counter(theirs):
            return ("order", *(" ".join(shown_row(row) for row in rows[:8])
                               for rows in (ours, theirs)))
        return ("rows", *rows_apart(ours, theirs))
    if len(ours) != len(theirs) or collections.Counter(ours) != collections.Counter(theirs):
        return ("rows", *rows_apart(ours, theirs))
    return None


class Side:
    """One engine's database and its sessions."""

    def __init__(self, name: str, database: str, engine: str) -> None:
        self.name, self.database, self.engine = name, database, engine
        self.sessions: list[wire.Wire] = []

    def text(self, sql: str, folder: str) -> bytes:
        if "fuzz" in sql:
            sql = sql.replace("/tmp/fuzz", f"{folder}/fuzz").replace("fuzz", self.database)
        if self.engine != "shale" and "hale" in sql.lower():
            sql = ENGINE.sub(self.engine, sql)
        return sql.encode("utf8", "surrogateescape")


def frames_of(log: str) -> list[str]:
    """The frames of the trace in a server's log."""
    trace = log.rpartition("Attempting backtrace")[2].partition("Connection ID")[0]
    return [line for line in trace.splitlines() if "[0x" in line]


def is_shales_end(log: str) -> bool:
    """Whether SHALE is in it."""
    return "panicked" in log or any("ha_shale" in line for line in frames_of(log))


def is_end_in(log: str, threads: Collection[int]) -> bool:
    """Whether the server has ended in a session of these, with SHALE nowhere in the trace."""
    ended = CONNECTION.findall(log.rpartition("Attempting backtrace")[2])
    known = bool(frames_of(log)) and bool(ended) and int(ended[0]) in threads
    return known and not is_shales_end(log)


def is_innodbs_end(log: str) -> bool:
    """Whether InnoDB has ended the server by itself: it says so, or the handler's call went into
    the server's own program, of whose engines only InnoDB is compared, and SHALE is nowhere in the
    trace. (ON UPDATE of a versioned child with a long unique key: 10.11.18 ends without SHALE.) Or
    its purge had the server open a table, which it does for a function of columns: that of a table
    with partitions by a list of texts ends in `convert_charset_partition_constant`."""
    if "Assertion failure in file ./storage/innobase" in log or "[FATAL] InnoDB" in log:
        return True
    frames = frames_of(log)
    if is_shales_end(log):
        return False
    if any("(_Z16open_purge_table" in line for line in frames):
        return True
    inside = next((at for at, line in enumerate(frames) if "(_ZN7handler" in line), 0)
    return inside > 0 and "mariadbd(+0x" in frames[inside - 1]


class Pair:
    """A server of its own, and both sides of it."""

    def __init__(self, layout: servers.Layout, name: str, allowed: Any,
                 engines: tuple[str, str] = ("shale", "innodb"), rewrite: Any = None) -> None:
        self.layout, self.name, self.allowed, self.rewrite = layout, name, allowed, rewrite
        self.sides = [Side("SHALE", "fuzz_s", engines[0]), Side("InnoDB", "fuzz_i", engines[1])]
        self.server: Any = None
        self.counts: collections.Counter[str] = collections.Counter()
        self.listed: collections.Counter[str] = collections.Counter()
        self.steps: list[Step] = []
        self.only: str | None = None
        self.lost_steps: list[Step] = []
        self.last: list[Result] = []
        self.answers: list[list[Result]] = []
        # Where the log of a server that has ended is kept.
        self.output: pathlib.Path | None = None
        self.folder = tempfile.mkdtemp(prefix="files-", dir=layout.folder)
        self.begun = 0
        self.start()

    def start(self) -> None:
        """A new server, on a new data folder."""
        self.begun += 1
        if self.server is not None:
            self.server.kill()
            shutil.rmtree(self.server.data, ignore_errors=True)
        self.server = servers.Server(self.layout, f"{self.name}-{self.begun}", OPTIONS)
        self.server.start()
        for side in self.sides:
            side.sessions = []

    def stop(self) -> str:
        """Ends the server; what went wrong with that, if anything did."""
        try:
            self.server.stop()
        except SystemExit as error:
            text = self.server.log.read_text(errors="replace")
            return f"{error}\n{text[-6000:]}"
        return ""

    def session(self, side: Side, number: int) -> wire.Wire:
        while len(side.sessions) <= number:
            # With none the server's own sessions are told apart from ours by nothing.
            one = wire.Wire(self.server.connect(charset="utf8mb4", client_flag=0))
            side.sessions.append(one)
            self._prepare(side, one)
        return side.sessions[number]

    def _prepare(self, side: Side, one: wire.Wire) -> None:
        one.must(f"use {side.database}",
                 *(side.text(text, self.folder).decode() for text in SESSION))

    def begin(self) -> None:
        """New databases, and sessions as new."""
        if any(step.sql.startswith("xa ") for step in self.steps):
            self._end_branches()
        self.steps = []
        for file in pathlib.Path(self.folder).iterdir():
            file.unlink()
        for side in self.sides:
            # A session that waits answers nothing; its end is its statement's.
            while len(side.sessions) > 1:
                side.sessions.pop().close()
            if not side.sessions:
                side.sessions.append(wire.Wire(self.server.connect(charset="utf8mb4")))
            side.sessions[0].reset()
        for side in self.sides:
            one = side.sessions[0]
            one.must("set lock_wait_timeout=20, foreign_key_checks=0",
                     f"drop database if exists {side.database}",
                     f"create database {side.database}",
                     "set lock_wait_timeout=default, foreign_key_checks=1")
            self._prepare(side, one)

    def _end_branches(self) -> None:
        """Transactions that are prepared outlive their sessions, and keep their tables."""
        for side in self.sides:
            while side.sessions:
                side.sessions.pop().close()
            side.sessions.append(wire.Wire(self.server.connect(charset="utf8mb4")))
        one = self.sides[0].sessions[0]
        # The server lets go of a session's branch some time after the session's end.
        for _ in range(200):
            names = [(row[3] or b"").decode(errors="replace") for row in one.must("xa recover")]
            if not names:
                return
            for name in names:
                one.ask(f"xa rollback '{name}'")
            time.sleep(0.005)

    def ask(self, step: Step) -> list[list[Result]]:
        """The answers of both sides, both at work at once."""
        sides = self.sides
        if self.only is not None or "/*only*/" in step.sql:
            sides = [side for side in sides if side.name == (self.only or "SHALE")]
        for side in sides:
            self.send(side, step)
        return [side.sessions[step.session].receive() for side in sides]

    def send(self, side: Side, step: Step) -> None:
        text = side.text(step.sql, self.folder)
        if self.rewrite is not None and side.name == "SHALE":
            text = self.rewrite(text)
        self.session(side, step.session).send(text)

    def peek(self, sql: str) -> list[Result]:
        """Asks SHALE alone, not as a step of the program."""
        side = self.sides[0]
        one = self.session(side, 0)
        try:
            one.send(side.text(sql, self.folder))
            return one.receive()
        except Gone as gone:
            step = Step(sql)
            self.steps.append(step)
            raise Found(self._lost(step, gone)) from gone

    def do(self, sql: str, session: int = 0) -> list[Result]:
        """Runs one statement of a program; raises what differs. Gives InnoDB's answer."""
        step = Step(sql, session)
        self.steps.append(step)
        try:
            return self._do(step)
        except Gone as gone:
            raise Found(self._lost(step, gone)) from gone

    def _lost(self, step: Step, gone: Gone) -> Difference:
        text = self.server.log.read_text(errors="replace")
        if self.output is not None:
            self.output.mkdir(parents=True, exist_ok=True)
            (self.output / f"{self.server.name}.log").write_text(text)
        lines = [line for line in text.splitlines() if "ha_shale" in line or "ssertion" in line
                 or "panicked" in line or "signal" in line]
        self.lost_steps = list(self.steps)
        theirs = self.sides[1]
        threads = {one.thread for one in theirs.sessions if theirs.engine == "innodb"}
        self.start()
        if is_innodbs_end(text) or (is_end_in(text, threads) and self._ends_alone()):
            self.counts["InnoDB ended the server"] += 1
            raise Stopped
        return Difference("crash", step, f"the server ended ({gone}): " + " | ".join(lines[:6]), "",
                          len(self.steps) - 1)

    def _ends_alone(self) -> bool:
        """Whether the statements that have ended the server do so on InnoDB's side alone. Those of
        several sessions wait for each other, so of them the trace has to tell."""
        if any(step.session for step in self.lost_steps):
            return True
        steps, only = self.steps, self.only
        self.begin()
        self.only = "InnoDB"
        try:
            for step in self.lost_steps:
                if "/*only*/" not in step.sql:
                    self.ask(step)
        except Gone:
            text = self.server.log.read_text(errors="replace")
            threads = {one.thread for one in self.sides[1].sessions}
            self.start()
            return is_end_in(text, threads) or is_innodbs_end(text)
        finally:
            self.steps, self.only = steps, only
        return False

    def _do(self, step: Step) -> list[Result]:
        answers = self.ask(step)
        self.counts["statements"] += 1
        if "/*same*/" in step.sql:
            found = compare("/*loose*/" + step.sql, answers[0], self.last)
            # No answer of InnoDB's excuses one that only SHALE was asked for.
            if found is not None and (len(self.answers) == 1 or not self.server_is_wrong(step)):
                self.differs(Difference(f"{found[0]} of two plans", step, *found[1:]))
            return self.last
        self.last = answers[0]
        self.answers = answers
        if any(one.code == STATEMENT_TIMEOUT for results in answers for one in results):
            self.counts["timed out"] += 1
            raise Stopped
        if len(answers) == 1:
            return answers[0]
        ours, theirs = answers
        if ours[-1].kind == "error":
            self.counts[f"error {ours[-1].code}"] += 1
        found = compare(step.sql, ours, theirs)
        if found is None and (ours[-1].warnings or ours[-1].kind == "error"):
            found = self._warnings(step, "/*loose*/" in step.sql)
        if found is not None:
            how = ""
            if self.equal_by_table(step, ours):
                how = " by a SPATIAL index"
            elif self.scans_words(step):
                how = " in the order of a FULLTEXT index"
            elif self.equal_by_plainer_plan(step, ours):
                how = ", but not by a plainer plan"
            elif self.plans_differ(step):
                how = " by two plans"
            self.differs(Difference(found[0] + how, step, found[1], found[2]))
        return theirs

    def duplicates(self) -> bool:
        """Whether the last statement has left out rows that are duplicates."""
        return any(re.search(rb"Duplicates: [1-9]", one[-1].text) is not None for one in self.answers)

    def equal_by_plainer_plan(self, step: Step, ours: list[Result]) -> bool:
        """Whether InnoDB has the other answer only where it merges indexes, orders row references or filters by them."""
        if not step.sql.startswith("select"):
            return False
        side = self.sides[1]
        one = side.sessions[step.session]
        one.must("set @switch = @@optimizer_switch, optimizer_switch = 'mrr=off,index_merge=off,rowid_filter=off'")
        self.send(side, step)
        theirs = one.receive()
        one.must("set optimizer_switch = @switch")
        return compare(step.sql, ours, theirs) is None

    def equal_by_table(self, step: Step, ours: list[Result]) -> bool:
        """Whether InnoDB has the other answer only by its SPATIAL indexes, which a comment names."""
        named = SHAPE_KEYS.search(step.sql)
        if named is None or not step.sql.startswith("select"):
            return False
        text = SHAPE_KEYS.sub(f" ignore index ({named[1]})", step.sql)
        self.send(self.sides[1], Step(text, step.session))
        return compare(step.sql, ours, self.sides[1].sessions[step.session].receive()) is None

    def scans_words(self, step: Step) -> bool:
        """Whether InnoDB is asked for a whole FULLTEXT index, in the order of its column, and has no rows then."""
        if "match" in step.sql or not step.sql.startswith(("select", "update", "delete")):
            return False
        side = self.sides[1]
        one = side.sessions[step.session]
        one.send(side.text(f"explain {step.sql}", self.folder))
        scanned = {by for _, how, by in plan_of(one.receive()) if how == b"index"}
        one.send(b"select distinct index_name from information_schema.statistics"
                 b" where table_schema = database() and index_type = 'FULLTEXT'")
        words = {wire.fields(row)[0] for result in one.receive() for row in result.rows}
        return bool(scanned & words)

    def plans_differ(self, step: Step) -> bool:
        """Whether the server reads by another key on the one side than on the other, by statistics."""
        if not step.sql.startswith(("select", "update", "delete")):
            return False
        plans = []
        for side in self.sides:
            one = side.sessions[step.session]
            one.send(side.text(f"explain {step.sql}", self.folder))
            plans.append(plan_of(one.receive()))
        return plans[0] != plans[1]

    def server_is_wrong(self, step: Step) -> bool:
        """Whether InnoDB gives by this other plan what SHALE gives by it: then the two plans of the
        server differ, as by a join of columns with two collations, whatever the engine is."""
        ours, theirs = self.ask(Step(step.sql.replace("/*only*/", ""), step.session))
        wrong = compare("/*loose*/" + step.sql, ours, theirs) is None
        self.counts["two plans of the server differ"] += wrong
        return wrong

    def _warnings(self, step: Step, loose: bool) -> tuple[str, str, str] | None:
        lists = [[plain_row(row) for row in results[0].rows]
                 for results in self.ask(Step("show warnings", step.session))]
        if counts_by_plan(step.sql):
            lists = [[(*row[:2], AT_ROW.sub(b"", row[2])) for row in rows] for rows in lists]
        if len(lists) == 1:
            return None
        if loose:
            ours, theirs = ({row[1] for row in rows} for rows in lists)
            if ours == theirs:
                return None
        elif collections.Counter(lists[0]) == collections.Counter(lists[1]):
            return None
        # The last one may be the error.
        ours, theirs = (" ".join(shown_row(row) for row in rows[:5] + rows[5:][-1:]) for rows in lists)
        return "warning texts", ours, theirs

    def differs(self, difference: Difference) -> None:
        """A difference that is on the list is counted; any other ends the program."""
        difference.index = len(self.steps) - 1
        listed = self.allowed(difference, self.steps)
        if listed is None:
            raise Found(difference)
        self.listed[listed.name] += 1
        if listed.parts:
            raise Stopped

    def differs_or_stops(self, difference: Difference) -> None:
        """Raises what is not on the list, and nothing else."""
        try:
            self.differs(difference)
        except Stopped:
            pass

    def run(self, steps: list[Step]) -> Difference | None:
        """A program that is known; the first difference of it that is not on the list."""
        try:
            self.begin()
            for step in steps:
                self.do(step.sql, step.session)
        except Found as found:
            return found.difference
        except Stopped:
            pass
        except Gone as gone:
            return self._lost(Step("-- the beginning of the program"), gone)
        return None
