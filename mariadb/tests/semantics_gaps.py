"""More cases of semantics.py: READ UNCOMMITTED, and locks of places where no row is.

SHALE shows nothing that is not committed, and locks the range that was asked for. InnoDB shows what
it finds, and locks up to rows that happen to be there. The cases ask for the same twice, with and
without something that the application did not ask for: where InnoDB's own answer changes with that,
no application can depend on it.
"""

from semantics_cases import (
    ASKED, DIRTY, MISSING, READ_COMMITTED, READ_UNCOMMITTED, REPEATABLE_READ, SETUP, case, waiting
)

# What READ UNCOMMITTED is used for: looking without waiting, and seeing what is new.
case("READ UNCOMMITTED waits for nobody and stops nobody", READ_UNCOMMITTED,
     "B looks at rows that A has changed, and A changes rows that B has looked at.",
     """
     A begin
     A update t set v = 100 where id = 10
     B begin
     B& select count(*) > 0, max(id) from t where id <= 30
     A& update t set v = 100 where id in (20, 30)
     A.
     C& insert into t values (25, 25, 0)
     C.
     B& select max(id) from t where id between 5 and 25
     A rollback
     B commit
     """)
case("READ UNCOMMITTED sees each commit at once", READ_UNCOMMITTED,
     "Each statement of a transaction sees what was committed before it.",
     """
     B begin
     B? select id, v from t where id > 15
     A update t set v = v + 1 where id = 20
     B? select id, v from t where id > 15
     A begin
     A delete from t where id = 30
     A insert into t values (50, 50, 5)
     A commit
     B? select id, v from t where id > 15
     B commit
     """)
case("READ UNCOMMITTED sees one's own writes", READ_UNCOMMITTED,
     "Also those of an index, and not after they are undone.",
     """
     B begin
     B update t set k = 15, v = 100 where id = 10
     B insert into t values (25, 25, 0)
     B delete from t where id = 40
     B? select id, v from t
     B? select id from t force index (k) where k between 11 and 26
     B rollback
     B? select id, v from t
     """)
case("READ UNCOMMITTED, what is written follows what is committed", READ_UNCOMMITTED,
     "An UPDATE waits, and works on what was committed: a dirty read is never written back.",
     """
     A begin
     A update t set v = 100 where id = 10
     B& update t set v = v + 1 where id = 10
     A rollback
     B.
     B? select v from t where id = 10
     """)
case("Dirty read a moment earlier", READ_UNCOMMITTED,
     "The same statements as in Dirty read, of which B's comes first. B cannot tell this from a"
     " read that does not show what A has not committed.",
     """
     A begin
     B? select v from t where id = 10
     A update t set v = 100 where id = 10
     A rollback
     """)
case("Dirty read of a row that never was", READ_UNCOMMITTED,
     "InnoDB shows a row that is undone, and half of a change.",
     """
     A begin
     A insert into t values (50, 50, 5)
     A update t set v = v - 1 where id = 10
     B? select count(*), sum(v) from t
     A rollback
     B? select count(*), sum(v) from t
     """,
     reason=DIRTY)

# A row that is not there. Both engines keep that nobody else adds it.
LOOK = "select v from t where id = 25 for update"
BOTH_LOOK = f"""A begin
     B begin
     A? {LOOK}
     B& {LOOK}
     A& insert into t values (25, 25, 1)
     B& insert into t values (25, 25, 2)
     A.
     A commit
     B."""
case("Insert where a locking read found a row deleted before", REPEATABLE_READ,
     "The same statements as where nothing was found. C's older snapshot still needs a row that"
     " was there, so InnoDB locks that one, and B waits at its look.",
     f"""
     C begin
     C? select count(*) from t
     A delete from t where id = 25
     {BOTH_LOOK}
     C commit
     B commit
     A? {LOOK}
     """, setup=[*SETUP, "insert into t values (25, 25, 9)"])
case("Insert where a locking read found nothing, then again", REPEATABLE_READ,
     "B does what one does after error 1213: all of it again. The end is the same.",
     f"""
     {BOTH_LOOK}
     B rollback
     B begin
     B? {LOOK}
     B update t set v = v + 10 where id = 25
     B commit
     A? select v from t where id = 25
     """,
     reason=MISSING)
waiting("Insert of a row that another has looked for", REPEATABLE_READ,
        "Who has looked for a missing row may rely on its absence.",
        f"A? {LOOK}", "B& insert into t values (25, 25, 2)", meanwhile=f"A? {LOOK}")
waiting("Insert of a row that another has looked for and inserts", REPEATABLE_READ,
        "The one who has looked is the first.",
        f"A? {LOOK}", "B& insert into t values (25, 25, 2)",
        meanwhile="A? insert into t values (25, 25, 1)",
        then=["A? select v from t where id = 25"])
case("Look for a row that is there, then change it", REPEATABLE_READ,
     "The same look where the row is there: the second waits, so every application has to be"
     " ready for that.",
     """
     A begin
     B begin
     A? select v from t where id = 20 for update
     B& select v from t where id = 20 for update
     A update t set v = v + 1 where id = 20
     A commit
     B.
     B commit
     """)
for title, other, text, reason in (
    ("of one gap", 26, "InnoDB locks the same gap for both, and each INSERT waits for the other.",
     ASKED),
    ("of two gaps", 35, "The same with a row between the two.", ""),
):
    case(f"Insert of two missing rows {title} after a look at each", REPEATABLE_READ, text,
         f"""
         A begin
         B begin
         A? {LOOK}
         B& select v from t where id = {other} for update
         A& insert into t values (25, 25, 1)
         B& insert into t values ({other}, {other}, 2)
         A.
         A commit
         B.
         B commit
         A? select id from t
         """, reason=reason)

case("Insert where a shared read found nothing", REPEATABLE_READ,
     "Who looks by LOCK IN SHARE MODE lets others look. Of two who then insert one gives way.",
     """
     A begin
     B begin
     A? select v from t where id = 25 lock in share mode
     B& select v from t where id = 25 lock in share mode
     A& insert into t values (25, 25, 1)
     B& insert into t values (25, 25, 2)
     A.
     A commit
     B.
     B commit
     A? select v from t where id = 25
     """)
case("Insert where a locking read found nothing, READ COMMITTED", READ_COMMITTED,
     "No place of a missing row stays locked.",
     f"""
     {BOTH_LOOK}
     B commit
     A? select v from t where id = 25
     """)

# The ends of ranges. What was asked for is kept free of new rows; InnoDB locks up to the next row.
RANGE = "A? select id from t where id between 15 and 25 for update"
case("Insert at the very ends of a range that was read", REPEATABLE_READ,
     "The range as it was asked for takes no row until the reader ends.",
     f"""
     A begin
     {RANGE}
     B& insert into t values (15, 15, 0)
     C& insert into t values (25, 25, 0)
     {RANGE}
     A commit
     B.
     C.
     {RANGE}
     """)
for title, condition, row in (("below", "id < 5", -7), ("above", "id > 45", 1000)):
    waiting(f"Insert into a range without rows, {title} all others", REPEATABLE_READ,
            "The range has one end only, and no row.",
            f"A? select id from t where {condition} for update",
            f"B& insert into t values ({row}, 0, 0)",
            meanwhile=f"A? select id from t where {condition} for update")
waiting("Insert beside a range that was read, behind a neighbour", REPEATABLE_READ,
        "The same statements as without the neighbour, row 26: InnoDB's lock ends there.",
        RANGE, "B& insert into t values (27, 27, 0)",
        setup=[*SETUP, "insert into t values (26, 26, 0)"])
waiting("Update of the row after a range that was read", REPEATABLE_READ,
        "InnoDB locks the next row too, which was not asked for.",
        RANGE, "B& update t set v = 0 where id = 30",
        reason=ASKED)
waiting("Update of the row after a range that was read, with a neighbour", REPEATABLE_READ,
        "The same statements with row 26 between: InnoDB has locked that one instead.",
        RANGE, "B& update t set v = 0 where id = 30",
        setup=[*SETUP, "insert into t values (26, 26, 0)"])

# Equal keys of an index. InnoDB's gaps are between entries, which have the primary key in them.
EQUAL = "A? select id from t force index (k) where k = 20 for update"
waiting("Insert next to equal keys, behind a neighbour", REPEATABLE_READ,
        "The same statements as without the neighbour, k = 21: InnoDB's gap ends there.",
        EQUAL, "B& insert into t values (22, 22, 0)",
        setup=[*SETUP, "insert into t values (21, 21, 0)"])
for title, row, reason in (
    ("a smaller primary key", 25, ASKED),
    ("a greater primary key", 35, ""),
):
    waiting(f"Insert of the next key, with {title}", REPEATABLE_READ,
            "B adds k = 30, which there is with id = 30. In InnoDB it depends on B's id whether"
            " that is in the gap after k = 20.",
            EQUAL, f"B& insert into t values ({row}, 30, 0)", reason=reason)
for side, row in (("below", 5), ("above", 90)):
    waiting(f"Insert among equal keys, {side} all of them", REPEATABLE_READ,
            "All rows with k = 20 were asked for, and no other comes.",
            EQUAL, f"B& insert into t values ({row}, 20, 0)", meanwhile=EQUAL)
waiting("Insert far from equal keys that were read without their index", REPEATABLE_READ,
        "The same rows are asked for. The optimizer's choice of an index, not the question,"
        " decides what is locked.",
        "A? select id from t ignore index (k) where k = 20 for update",
        "B& insert into t values (90, 90, 0)")
