"""The cases of semantics.py: scripts for connections A, B and C.

A line is a connection, a mark, a statement. Without a mark the answer is told only if it is an
error. `?` tells the answer; `&` starts a statement that may wait (not if the connection still
does), `.` awaits it; `x` disconnects.
ENGINE stands for the engine's name.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

SETUP = [
    "create table t (id int primary key, k int, v int, key (k))",
    "insert into t values (10, 10, 1), (20, 20, 2), (30, 30, 3), (40, 40, 4)",
]
READ_UNCOMMITTED = "read uncommitted"
READ_COMMITTED = "read committed"
REPEATABLE_READ = "repeatable read"
SERIALIZABLE = "serializable"

# Why SHALE answers otherwise, where it does so in more than one case; semantics_why.py says why no
# application can depend on InnoDB's answer.
DIRTY = "READ UNCOMMITTED is READ COMMITTED: nothing that may be undone is shown"
MISSING = "the place of a missing row is locked as a row is: the second to look waits"
ASKED = "only what was asked for is locked, not the gap that it is in"
HOLDER = "nobody waits for a request that itself waits for him"


@dataclasses.dataclass
class Script:
    """One case; `reason` says why SHALE answers other than InnoDB, if it does."""

    title: str
    isolation: str
    text: str
    lines: list[str]
    setup: list[str] = dataclasses.field(default_factory=lambda: SETUP)
    after: list[str] = dataclasses.field(default_factory=list)
    reason: str = ""


CASES: list[Script] = []


def case(title: str, isolation: str, text: str, script: str, **more: object) -> None:
    lines = [line.strip() for line in script.strip().splitlines()]
    if "after" in more:
        more["after"] = [line.strip() for line in str(more["after"]).strip().splitlines()]
    told = f"Isolation level {isolation.upper()}. {text}".strip()
    CASES.append(Script(title, isolation, told, lines, **more))  # type: ignore[arg-type]


def waiting(
    title: str, isolation: str, text: str, first: str, second: str, *, meanwhile: str = "",
    end: str = "A commit", then: Sequence[str] = (), **more: object,
) -> None:
    """The commonest case: A does something in a transaction, B something that may have to wait for
    its end, and what comes of both."""
    lines = ["A begin", first, second, *([meanwhile] if meanwhile else []), end, "B.", *then]
    case(title, isolation, text, "\n".join(lines), **more)


case("Lost update, plain reads", REPEATABLE_READ,
     "Both read, then both write what they worked out from it. SQL's REPEATABLE READ in InnoDB"
     " does not see this: the second write wins.",
     """
     A begin
     B begin
     A? select v from t where id = 10
     B? select v from t where id = 10
     A update t set v = 101 where id = 10
     B& update t set v = 201 where id = 10
     A commit
     B.
     B commit
     A? select v from t where id = 10
     """)
case("Lost update, FOR UPDATE", REPEATABLE_READ,
     "The reads lock: the second waits, and sees what the first has written.",
     """
     A begin
     B begin
     A? select v from t where id = 10 for update
     B& select v from t where id = 10 for update
     A update t set v = v + 100 where id = 10
     A commit
     B.
     B update t set v = v + 100 where id = 10
     B commit
     A? select v from t where id = 10
     """)
case("UPDATE v = v + 1 after a snapshot", REPEATABLE_READ,
     "An UPDATE works on what is committed now, also if its transaction's snapshot is older.",
     """
     A begin
     A? select v from t where id = 10
     B update t set v = v + 100 where id = 10
     A? select v from t where id = 10
     A? update t set v = v + 1 where id = 10
     A? select v from t where id = 10
     A commit
     """)
case("Write skew, plain reads", REPEATABLE_READ,
     "Each reads the other's row and writes its own: both commit.",
     """
     A begin
     B begin
     A? select sum(v) from t where id in (10, 20)
     B? select sum(v) from t where id in (10, 20)
     A& update t set v = 0 where id = 10
     B& update t set v = 0 where id = 20
     A commit
     B commit
     A? select sum(v) from t where id in (10, 20)
     """)
case("Write skew at SERIALIZABLE", SERIALIZABLE,
     "Reads lock shared within a transaction: one of the two is the victim of a deadlock.",
     """
     A begin
     B begin
     A? select v from t where id = 20
     B? select v from t where id = 10
     A& update t set v = 0 where id = 10
     B& update t set v = 0 where id = 20
     A.
     B.
     A commit
     B commit
     A? select sum(v) from t where id in (10, 20)
     """)
case("Read skew", REPEATABLE_READ,
     "Two reads of one transaction see one moment.",
     """
     A begin
     A? select v from t where id = 10
     B update t set v = v + 100 where id in (10, 20)
     A? select v from t where id = 20
     A commit
     """)
case("Read skew at READ COMMITTED", READ_COMMITTED,
     "Each statement sees what was committed when it began.",
     """
     A begin
     A? select v from t where id = 10
     B update t set v = v + 100 where id in (10, 20)
     A? select v from t where id = 20
     A commit
     """)
case("Dirty read", READ_UNCOMMITTED,
     "InnoDB shows what is not committed. An engine may be stricter.",
     """
     A begin
     A update t set v = 100 where id = 10
     B? select v from t where id = 10
     A rollback
     """,
     reason=DIRTY)
case("Dirty read at READ COMMITTED", READ_COMMITTED,
     "What is not committed is not seen, and does not wait.",
     """
     A begin
     A update t set v = 100 where id = 10
     B? select v from t where id = 10
     A rollback
     """)
case("Phantom, plain reads", REPEATABLE_READ,
     "A row inserted meanwhile is not in the snapshot.",
     """
     A begin
     A? select count(*) from t where id > 15
     B insert into t values (25, 25, 0)
     A? select count(*) from t where id > 15
     A commit
     A? select count(*) from t where id > 15
     """)
case("Phantom, own update of it", REPEATABLE_READ,
     "An UPDATE sees the row that a snapshot does not; once changed it is seen as one's own.",
     """
     A begin
     A? select count(*) from t where id > 15
     B insert into t values (25, 25, 0)
     A? update t set v = 9 where id = 25
     A? select count(*) from t where id > 15
     A commit
     """)
waiting("Phantom, locking range", REPEATABLE_READ,
        "A range that was read FOR UPDATE takes no insert until the reader ends.",
        "A? select count(*) from t where id between 15 and 35 for update",
        "B& insert into t values (25, 25, 0)",
        meanwhile="A? select count(*) from t where id between 15 and 35 for update")
waiting("Phantom, locking range of a secondary index", REPEATABLE_READ,
        "As before, through key (k).",
        "A? select id from t force index (k) where k between 15 and 35 for update",
        "B& insert into t values (5, 25, 0)",
        meanwhile="A? select id from t force index (k) where k between 15 and 35 for update")
waiting("Phantom, locking range at READ COMMITTED", READ_COMMITTED,
        "No gaps are locked.",
        "A? select count(*) from t where id between 15 and 35 for update",
        "B& insert into t values (25, 25, 0)",
        meanwhile="A? select count(*) from t where id between 15 and 35 for update")
case("Insert where a locking read found nothing", REPEATABLE_READ,
     "The place of a missing row is locked too. Both may look; the first to insert waits for the"
     " other, the second to insert makes the circle.",
     """
     A begin
     B begin
     A? select v from t where id = 25 for update
     B& select v from t where id = 25 for update
     A& insert into t values (25, 25, 1)
     B& insert into t values (25, 25, 2)
     A.
     A commit
     B.
     B commit
     A? select v from t where id = 25
     """,
     reason=MISSING)
waiting("Insert beside a range that was read", REPEATABLE_READ,
        "InnoDB locks the gap up to the next row of the index, more than was asked for.",
        "A? select id from t where id between 15 and 25 for update",
        "B& insert into t values (27, 27, 0)",
        reason=ASKED)
waiting("Equal keys of a secondary index", REPEATABLE_READ,
        "Locking all rows with k = 20 keeps others from adding one.",
        "A? select id from t where k = 20 for update",
        "B& insert into t values (21, 20, 0)")
waiting("Insert next to equal keys", REPEATABLE_READ,
        "InnoDB locks the gaps on both sides of the equal keys.",
        "A? select id from t where k = 20 for update",
        "B& insert into t values (22, 22, 0)",
        reason=ASKED)
case("LOCK IN SHARE MODE, two readers", REPEATABLE_READ,
     "Shared locks do not stop each other.",
     """
     A begin
     B begin
     A? select v from t where id = 10 lock in share mode
     B& select v from t where id = 10 lock in share mode
     B.
     C& update t set v = 0 where id = 10
     A commit
     B commit
     C.
     """)
case("LOCK IN SHARE MODE, both upgrade", REPEATABLE_READ,
     "Both hold it shared and want it for themselves: a deadlock, one goes on.",
     """
     A begin
     B begin
     A? select v from t where id = 10 lock in share mode
     B? select v from t where id = 10 lock in share mode
     A& update t set v = v + 10 where id = 10
     B& update t set v = v + 100 where id = 10
     A.
     B.
     A commit
     B commit
     A? select v from t where id = 10
     """)
case("LOCK IN SHARE MODE sees what is committed", REPEATABLE_READ,
     "A locking read is not of the snapshot.",
     """
     A begin
     A? select v from t where id = 10
     B update t set v = 7 where id = 10
     A? select v from t where id = 10 lock in share mode
     A? select v from t where id = 10
     A commit
     """)
case("Statement that fails at its last row", REPEATABLE_READ,
     "An UPDATE of 5000 rows whose last one is a duplicate: nothing of it stays, the transaction"
     " goes on.",
     """
     A begin
     A insert into u values (100000, 100000)
     A? update u set x = if(id = 5000, 6000, x + 10000) where id <= 5000 order by id
     A? select count(*) from u where x > 10000
     A? select count(*), sum(x) from u where id <= 5000
     A commit
     B? select count(*) from u
     """,
     setup=[*SETUP, "create table u (id int primary key, x int, unique (x))",
            "insert into u select seq, seq from seq_1_to_6000"])
case("Autocommit statement that fails at its last row", REPEATABLE_READ,
     "The same without BEGIN.",
     """
     A? insert into u select 7000 + seq, if(seq = 5000, 1, 7000 + seq) from seq_1_to_5000
     A? select count(*), sum(x) from u
     """,
     setup=["create table u (id int primary key, x int, unique (x))",
            "insert into u select seq, seq from seq_1_to_6000"])
case("INSERT of several rows, one of them a duplicate", REPEATABLE_READ,
     "None of them is in.",
     """
     A begin
     A insert into t values (1, 1, 1)
     A? insert into t values (2, 2, 2), (10, 3, 3), (4, 4, 4)
     A commit
     A? select id from t where id <= 10
     """)
case("After error 1205", REPEATABLE_READ,
     "A lock wait that timed out undoes its statement, not its transaction.",
     """
     B begin
     B update t set v = 100 where id = 30
     A set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     A begin
     A update t set v = 50 where id = 10
     A? update t set v = 60 where id >= 20
     A? select id, v from t where v >= 50
     A? update t set v = 70 where id = 40
     A commit
     B rollback
     B? select id, v from t where v >= 50
     """)
case("After error 1213", REPEATABLE_READ,
     "The victim of a deadlock is undone as a whole, and its locks are free.",
     """
     A begin
     B begin
     A insert into t values (1, 1, 1), (2, 2, 2), (3, 3, 3)
     A update t set v = 50 where id = 10
     B update t set v = 60 where id = 20
     A& update t set v = 51 where id = 20
     B& update t set v = 61 where id = 10
     A.
     B.
     B? select @@in_transaction
     B& select v from t where id = 20 lock in share mode
     A commit
     B.
     B commit
     A? select id, v from t where id <= 20
     """)
case("Deadlock of three", REPEATABLE_READ,
     "A waits for B, B for C, C for A.",
     """
     A begin
     B begin
     C begin
     A update t set v = 100 where id = 10
     B update t set v = 200 where id = 20
     C update t set v = 300 where id = 30
     A& update t set v = 101 where id = 20
     B& update t set v = 201 where id = 30
     C& update t set v = 301 where id = 10
     C.
     C rollback
     B.
     B commit
     A.
     A commit
     C? select v from t where id <= 30
     """)
case("Two insert the same key, the first commits", REPEATABLE_READ,
     "The second waits to know.",
     """
     A begin
     B begin
     A insert into t values (25, 25, 1)
     B& insert into t values (25, 25, 2)
     A commit
     B.
     B? select v from t where id = 25
     B commit
     """)
waiting("Two insert the same key, the first goes back", REPEATABLE_READ,
        "The second then has it.",
        "A insert into t values (25, 25, 1)",
        "B& insert into t values (25, 25, 2)",
        end="A rollback",
        then=["B? select v from t where id = 25"])
waiting("Two insert the same value of a unique index", REPEATABLE_READ,
        "As before, of a secondary unique index.",
        "A insert into u values (1, 7)",
        "B& insert into u values (2, 7)",
        then=["B? insert into u values (3, null), (4, null)",
              "B? select id, x from u order by id"],
        setup=["create table u (id int primary key, x int, unique (x))"])
waiting("Unique value deleted and inserted anew", REPEATABLE_READ,
        "Who inserts what another has deleted and not committed waits.",
        "A delete from u where id = 1",
        "B& insert into u values (2, 7)",
        then=["A? select id, x from u"],
        setup=["create table u (id int primary key, x int, unique (x))",
               "insert into u values (1, 7)"])
waiting("Insert of a duplicate takes a shared lock", REPEATABLE_READ,
        "Who was told 1062 may rely on the row being there until its end.",
        "A? insert into t values (10, 0, 0)",
        "B& delete from t where id = 10")
waiting("INSERT IGNORE against an insert not yet committed", REPEATABLE_READ,
        "It waits, then leaves the row out.",
        "A insert into t values (25, 25, 1)",
        "B& insert ignore into t values (25, 25, 2), (26, 26, 2)",
        then=["B? select id, v from t where id in (25, 26)"])
waiting("REPLACE against an insert not yet committed", REPEATABLE_READ,
        "It waits, then replaces the row.",
        "A insert into t values (25, 25, 1)",
        "B& replace into t values (25, 26, 2)",
        then=["B? select id, k, v from t where id = 25"])
waiting("ON DUPLICATE KEY UPDATE against an insert not yet committed", REPEATABLE_READ,
        "It waits, then updates the row.",
        "A insert into t values (25, 25, 1)",
        "B& insert into t values (25, 25, 2) on duplicate key update v = v + 100",
        then=["B? select id, v from t where id = 25"])
case("REPLACE that meets two rows", REPEATABLE_READ,
     "One by the primary key, another by the unique index: both go.",
     """
     A? replace into u values (1, 8)
     A? select id, x from u
     """,
     setup=["create table u (id int primary key, x int, unique (x))",
            "insert into u values (1, 7), (2, 8), (3, 9)"])
case("Savepoints", REPEATABLE_READ,
     "Going back undoes what came after, later savepoints with it.",
     """
     A begin
     A update t set v = 100 where id = 10
     A savepoint one
     A update t set v = 200 where id = 20
     A savepoint two
     A delete from t where id = 30
     A rollback to one
     A? rollback to two
     A? select id, v from t where id <= 30
     A release savepoint one
     A commit
     B? select id, v from t where id <= 30
     """)
case("Locks after ROLLBACK TO SAVEPOINT", REPEATABLE_READ,
     "InnoDB keeps the locks of what was undone, but those of rows it inserted.",
     """
     A begin
     A savepoint one
     A update t set v = 100 where id = 10
     A rollback to one
     B& update t set v = 200 where id = 10
     A commit
     B.
     """)
case("Consistent snapshot", REPEATABLE_READ,
     "START TRANSACTION WITH CONSISTENT SNAPSHOT sees what was there when it ran.",
     """
     A start transaction with consistent snapshot
     B update t set v = 100 where id = 10
     A? select v from t where id = 10
     A commit
     """)
case("BEGIN without a snapshot", REPEATABLE_READ,
     "The snapshot is that of the first read.",
     """
     A begin
     B update t set v = 100 where id = 10
     A? select v from t where id = 10
     A commit
     """)
case("Own writes and the snapshot", REPEATABLE_READ,
     "A transaction sees its own writes, on top of its snapshot.",
     """
     A begin
     A? select sum(v) from t
     B insert into t values (50, 50, 1000)
     A insert into t values (60, 60, 5)
     A delete from t where id = 10
     A? select sum(v) from t
     A rollback
     A? select sum(v) from t
     """)
