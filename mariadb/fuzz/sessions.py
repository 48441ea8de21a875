"""Part (c): transactions of two or three sessions, their statements one after the other.

The next statement is sent when the one before it has been answered, or is known to wait for a lock. So the
order is the same each time, and on both engines. Compared are the answers, who waits, and what the
tables have at the end.
"""

from __future__ import annotations

import random
import re
import time
from typing import Any

import wire
from pair import Difference, Found, Pair, Side, Step, Stopped, compare, plan_of, shown, shown_row
from wire import Result

BLOCK = re.compile(rb"---TRANSACTION .*?(?=---TRANSACTION|--------\n|$)", re.DOTALL)
THREAD = re.compile(rb"thread id (\d+)")
LOCKS = re.compile(r" (for update|lock in share mode)( nowait| skip locked)?$")
TIMEOUT = 50
TIMED_OUT = 1205
DEADLOCK = 1213
REFUSED = (1062, 1451, 1452, 1761)


class Interleaved:
    """Sessions on both sides, and which of them wait."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.waiting: dict[int, Step] = {}
        # Those in a transaction.
        self.open: set[int] = set()
        # Of these, those in which a statement has waited in vain, so that what it had done was undone; in
        # part (e) those too in which one was refused after it had written.
        self.undone: set[int] = set()
        # What EXPLAIN said of each session's last statement before it was sent: by what it does itself
        # the statistics change.
        self.planned: dict[int, list[list[tuple[bytes | None, ...]]]] = {}
        self.watchers: dict[str, wire.Wire] = {}
        for side in pair.sides:
            self.watchers[side.name] = wire.Wire(pair.server.connect(charset="utf8mb4"))

    def close(self) -> None:
        self.end_sessions()
        for one in self.watchers.values():
            one.close()

    def end_sessions(self) -> None:
        """One of them may wait, or have an answer that nobody has read."""
        for side in self.pair.sides:
            for one in side.sessions:
                try:
                    self.watchers[side.name].ask(f"kill {one.thread}")
                except wire.Gone:
                    pass
                one.close()
            side.sessions = []

    def waits(self, side: Side, session: int) -> bool:
        """Whether the engine says that this session waits for a lock."""
        thread = side.sessions[session].thread
        watcher = self.watchers[side.name]
        if side.engine == "shale":
            rows = watcher.must("select count(*) from information_schema.shale_transactions where"
                                f" state = 'waiting' and thread_id = {thread}")
            return rows[0][0] != b"0"
        # information_schema.innodb_trx is refreshed ten times a second only.
        text = watcher.must("show engine innodb status")[0][2] or b""
        for block in BLOCK.findall(text):
            found = THREAD.search(block)
            if found is not None and int(found.group(1)) == thread:
                return b"LOCK WAIT" in block
        return False

    def settled(self, side: Side, session: int) -> list[Result] | None:
        """The answer of a statement, or None when it waits; that is asked twice."""
        one = side.sessions[session]
        seen = 0
        until = time.monotonic() + 60
        while not one.ready(0.002):
            seen = seen + 1 if self.waits(side, session) else 0
            if seen == 2 and not one.ready(0.002):
                return None
            if time.monotonic() > until:
                raise Stopped
        return one.receive()

    def do(self, sql: str, session: int) -> list[Result] | None:
        """Sends a statement; its answer, or None if it waits on both sides."""
        step = Step(sql, session)
        self.pair.steps.append(step)
        self.pair.counts["statements"] += 1
        try:
            self.planned[session] = self.plans_of(sql) if self.open - {session} else []
            for side in self.pair.sides:
                self.pair.send(side, step)
            answer = self.taken(step)
            if answer is None:
                self.waiting[session] = step
                self.pair.counts["waits"] += 1
            # What was done may have let others go on, one after the other.
            for other, waited in list(self.waiting.items()):
                if other != session or answer is not None:
                    if self.taken(waited) is not None:
                        del self.waiting[other]
            return answer
        except wire.Gone as gone:
            raise Found(self.pair._lost(step, gone)) from gone

    def taken(self, step: Step) -> list[Result] | None:
        """The answers of a session, compared, if both sides have one."""
        answers = [self.settled(side, step.session) for side in self.pair.sides]
        if answers[0] is None and answers[1] is None:
            return None
        told = ["waits" if one is None else shown(one) for one in answers]
        if self.other_victim(step.session, answers):
            self.parted(Difference("victim", step, told[0], told[1]))
        if answers[0] is None or answers[1] is None:
            self.parted(Difference("waits", step, told[0], told[1]))
        assert answers[0] is not None and answers[1] is not None
        ours, theirs = answers[0], answers[1]
        if theirs[-1].kind == "error":
            self.pair.counts[f"error {theirs[-1].code}"] += 1
        found = compare(step.sql, ours, theirs)
        if found is not None:
            self.parted(Difference(found[0], step, found[1], found[2]))
        self.note(step, theirs)
        return theirs

    def other_victim(self, session: int, answers: list[list[Result] | None]) -> bool:
        """Whether both sides have a deadlock, and have not given up the same sessions, SHALE no more than InnoDB."""
        dead = [one is not None and one[-1].code == DEADLOCK for one in answers]
        waits = [one is None for one in answers]
        if dead[0] == dead[1] and waits[0] == waits[1]:
            return False
        given_up: list[set[int]] = []
        for side, is_dead in zip(self.pair.sides, dead):
            given_up.append({session} if is_dead else set())
            for other in self.waiting:
                answer = self.settled(side, other) if other != session else None
                if answer is not None and answer[-1].code == DEADLOCK:
                    given_up[-1].add(other)
        return all(given_up) and given_up[0] != given_up[1] and len(given_up[0]) <= len(given_up[1])

    def note(self, step: Step, answer: list[Result]) -> None:
        if answer[-1].kind == "error":
            if answer[-1].code == DEADLOCK:
                self.open.discard(step.session)
            elif answer[-1].code == TIMED_OUT or (answer[-1].code in REFUSED and self.has_parents()):
                self.undone.add(step.session)
        elif step.sql.startswith(("begin", "start transaction")):
            self.open.add(step.session)
        elif step.sql in ("commit", "rollback"):
            self.open.discard(step.session)
        self.undone &= self.open

    def plans_of(self, sql: str) -> list[list[tuple[bytes | None, ...]]]:
        """How the server reads for a statement, on each side."""
        if not sql.startswith(("select", "update", "delete")):
            return []
        plans = []
        for side in self.pair.sides:
            watcher = self.watchers[side.name]
            watcher.must(f"use {side.database}")
            # Without locks, as the EXPLAIN of a SELECT reads rows that are found by a whole key.
            # A program that is made smaller may have no table.
            plans.append(plan_of(watcher.ask(f"explain {LOCKS.sub('', sql)}")))
        return plans

    def plans_differ(self, step: Step) -> bool:
        """Whether the server reads for a statement, or for one that waits, by another key on the one
        side than on the other: then rows are locked in another order."""
        some = [self.planned.get(session, []) for session in {step.session, *self.waiting}]
        some += [self.plans_of(sql)
                 for sql in {step.sql, *(other.sql for other in self.waiting.values())}]
        return any(plans and plans[0] != plans[1] for plans in some)

    def parted(self, difference: Difference) -> None:
        """After a difference that is on the list: what has been committed has to be the same."""
        if difference.kind in ("waits", "outcome", "error code") and self.plans_differ(difference.step):
            difference.kind = f"{difference.kind} of two plans"
        elif (self.undone - {difference.step.session}
              and (difference.kind in ("waits", "outcome")
                   or (difference.kind == "error code" and self.has_parents())
                   or (difference.kind == "rows" and difference.step.sql.endswith("skip locked")))
              and self.pair.allowed(difference, self.pair.steps) is None):
            difference.kind = f"{difference.kind} after an undone statement"
        self.pair.differs_or_stops(difference)
        # One that commits by itself may have done so on one side.
        if self.open.issuperset({difference.step.session, *self.waiting}):
            self.pair.counts["parted, then compared"] += 1
            self.end_sessions()
            self.waiting = {}
            if any("u blob" in step.sql for step in self.pair.steps):
                self.no_duplicates()
                raise Stopped
            for table in self.tables():
                self.do(f"select * from {table}", 0)
                self.do(f"check table {table} extended /*meta*/", 0)
        raise Stopped

    def has_parents(self) -> bool:
        """Whether the program is one of part (e)."""
        return any("foreign key" in step.sql for step in self.pair.steps[:4])

    def tables(self) -> list[str]:
        return ["t", "p"] if any("table p " in step.sql for step in self.pair.steps[:4]) else ["t"]

    def no_duplicates(self) -> None:
        """Of a unique key in which InnoDB may have let some in."""
        step = Step("select u, count(*) from t group by u having count(u) > 1 /*only*/")
        rows = self.pair.ask(step)[0][0].rows
        if rows:
            told = " ".join(shown_row(row) for row in rows[:5])
            raise Found(Difference("duplicates", step, told, "", len(self.pair.steps)))


TABLES = [
    "create table t (id int primary key, k int, u int, v int, key (k), unique key u (u))",
    "create table t (id varchar(10) primary key, k int, u int, v int, key (k), unique key u (u))",
    "create table t (id int, k int, u int, v int, primary key (id desc), key (k, v), key (u))",
    "create table t (id int not null, k int not null, u int, v int, primary key (k, id))",
    "create table t (id int, k int, u int, v int, key (k), unique key u (u))",
    "create table t (id int primary key, k int, u int, v int, key (k)) partition by hash (id) partitions 3",
    "create table t (id int primary key, k int, u blob, v int, unique key u (u))",
]
LEVELS = ["read committed", "read committed", "repeatable read", "repeatable read", "serializable"]


class Transactions:
    def __init__(self, pair: Pair, chance: random.Random) -> None:
        self.pair, self.chance = pair, chance
        self.sessions = Interleaved(pair)
        self.count = chance.choice([2, 2, 3])
        self.open: set[int] = set()
        self.writers = chance.random() < 0.25

    def key(self) -> str:
        chance = self.chance
        name = chance.choice(["id", "id", "id", "k", "u", "v"])
        kind = chance.random()
        if kind < 0.65:
            return f"{name} = {chance.randrange(12)}"
        low = chance.randrange(12)
        if kind < 0.85:
            return f"{name} between {low} and {low + chance.randrange(5)}"
        if kind < 0.93:
            return f"{name} in ({low}, {chance.randrange(12)})"
        return f"{name} > {low}"

    def row(self) -> str:
        chance = self.chance
        unique = chance.choice([str(chance.randrange(14)), "null"])
        return f"({chance.randrange(14)}, {chance.randrange(6)}, {unique}, {chance.randrange(6)})"

    def statement(self, session: int) -> str:
        chance = self.chance
        if session in self.open and chance.random() < 0.22:
            self.open.discard(session)
            return chance.choice(["commit", "commit", "rollback"])
        if session not in self.open and chance.random() < 0.7:
            self.open.add(session)
            return chance.choice(["begin", "begin", "start transaction with consistent snapshot"])
        # Some programs hardly read: writers that meet in unique keys.
        kind = chance.choice([14, 14, 15, 12, 17]) if self.writers else chance.randrange(20)
        if kind < 3:
            return f"select * from t where {self.key()}"
        if kind < 7:
            lock = chance.choice(["for update", "for update", "lock in share mode", "for update nowait",
                                  "for update skip locked"])
            order = chance.choice(["", "", "", " order by id limit 1"])
            return f"select * from t where {self.key()}{order} {lock}"
        if kind < 11:
            what = chance.choice(["v = v + 1", "v = 5", "k = k + 1", "u = null", "u = u + 20", "v = v + 1"])
            return f"update t set {what} where {self.key()}"
        if kind == 11:
            return f"update t set id = id + 20 where id = {chance.randrange(12)}"
        if kind < 14:
            return f"delete from t where {self.key()}"
        if kind < 17:
            word = chance.choice(["insert", "insert", "insert ignore", "replace"])
            return f"{word} into t values {self.row()}"
        if kind == 17:
            return f"insert into t values {self.row()} on duplicate key update v = v + 100"
        if kind == 18 and session in self.open:
            return chance.choice(["savepoint a", "rollback to savepoint a"])
        return "select count(*), sum(k) from t"

    def program(self, length: int) -> None:
        chance, sessions = self.chance, self.sessions
        self.create()
        timeout = 0 if self.writers else chance.choice([0, TIMEOUT, TIMEOUT])
        self.settings(timeout)
        for _ in range(length):
            free = [one for one in range(self.count) if one not in sessions.waiting]
            session = chance.choice(free)
            self.one(session)
        self.finish()

    def create(self) -> None:
        chance, sessions = self.chance, self.sessions
        sessions.do(chance.choice(TABLES), 0)
        rows = ", ".join(f"({n}, {chance.randrange(6)}, {chance.choice([n + 1, 'null'])},"
                         f" {chance.randrange(6)})" for n in range(0, 13, chance.choice([1, 2, 3])))
        sessions.do(f"insert into t values {rows}", 0)

    def settings(self, timeout: int) -> None:
        """Of each session, how it waits and at which level."""
        chance, sessions = self.chance, self.sessions
        committed = chance.random() < 0.5
        for session in range(self.count):
            level = "read committed" if committed else chance.choice(LEVELS)
            sessions.do(f"set session transaction isolation level {level}", session)
            sessions.do(f"set innodb_lock_wait_timeout={timeout},"
                        f" shale_lock_wait_timeout={timeout}", session)

    def one(self, session: int) -> None:
        answer = self.sessions.do(self.statement(session), session)
        if answer is not None and answer[-1].kind == "error" and answer[-1].code == DEADLOCK:
            self.open.discard(session)

    def finish(self) -> None:
        sessions = self.sessions
        for _ in range(2 * self.count):
            for session in range(self.count):
                if session not in sessions.waiting:
                    sessions.do(self.chance.choice(["commit", "rollback"]), session)
        for session in range(self.count):
            sessions.do("commit", session)
        for table in sessions.tables():
            sessions.do(f"select * from {table}", 0)
            sessions.do(f"check table {table} extended /*meta*/", 0)


def program(pair: Pair, chance: random.Random, length: int) -> None:
    one = Transactions(pair, chance)
    try:
        one.program(length)
    finally:
        one.sessions.close()


def replay(pair: Pair, steps: list[Step]) -> Difference | None:
    """The same steps again; those of a session that waits are left out."""
    sessions: Any = None
    try:
        pair.begin()
        sessions = Interleaved(pair)
        for step in steps:
            if step.session not in sessions.waiting:
                sessions.do(step.sql, step.session)
    except Found as found:
        return found.difference
    except Stopped:
        pass
    except wire.Gone as gone:
        return pair._lost(Step("-- the beginning of the program"), gone)
    finally:
        if sessions is not None:
            sessions.close()
    return None
