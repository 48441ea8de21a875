"""More cases of semantics.py: who waits for whom, who gives way, which rows are passed over."""

from semantics_cases import (
    HOLDER, READ_COMMITTED, READ_UNCOMMITTED, REPEATABLE_READ, SERIALIZABLE, SETUP, case, waiting
)

QUEUE = [
    "create table q (id int primary key, k int, v int, key (k))",
    "insert into q select seq * 10, 1, seq from seq_1_to_40",
    "analyze table q",
]

# A reads and locks, B asks for the same and waits, A changes what it has: nobody gives way.
for title, isolation, query, changes in (
    ("first of an index", REPEATABLE_READ, "where k = 1 order by id limit 1 for update",
     ["update q set v = 0, k = 2 where id = 10"]),
    ("first of the table", REPEATABLE_READ, "order by id limit 1 for update",
     ["update q set v = 0 where id = 10"]),
    ("last of the table", REPEATABLE_READ, "order by id desc limit 1 for update",
     ["update q set v = 0 where id = 400"]),
    ("BETWEEN", REPEATABLE_READ, "where id between 15 and 45 for update",
     ["update q set v = 0 where id = 30", "delete from q where id = 20"]),
    ("BETWEEN of an index", REPEATABLE_READ, "where k between 1 and 1 for update",
     ["update q set k = 2 where id = 30", "delete from q where id = 10"]),
    ("a full scan", REPEATABLE_READ, "for update",
     ["update q set v = 0 where id = 10", "delete from q where id = 400"]),
    ("WHERE without an index", REPEATABLE_READ, "where v = 3 for update",
     ["update q set v = 0 where v = 3", "update q set v = 1 where id = 10"]),
    ("a full scan", SERIALIZABLE, "for update", ["update q set v = 0 where id = 10"]),
    ("BETWEEN", SERIALIZABLE, "where id between 15 and 45 for update",
     ["update q set v = 0 where id = 20"]),
    ("first of an index", READ_COMMITTED, "where k = 1 order by id limit 1 for update",
     ["update q set k = 2 where id = 10"]),
):
    waiting(f"The holder writes while another waits: {title}, {isolation.upper()}", isolation,
            "B asks for what A has locked; A then changes it and commits.",
            f"A? select count(*), min(id) from (select id from q {query}) s",
            f"B& select count(*), min(id) from (select id from q {query}) s",
            meanwhile="\n".join(f"A {change}" for change in changes), then=["B commit"],
            setup=QUEUE)
waiting("The holder adds rows while another waits", REPEATABLE_READ,
        "B waits for the first row that A has locked; A adds one before it.",
        "A? select id from q where id > 5 order by id limit 1 for update",
        "B& select id from q where id > 5 order by id limit 1 for update",
        meanwhile="A& insert into q values (7, 1, 0)", then=["A.", "B commit"], setup=QUEUE,
        reason=HOLDER)
FIRST = "select id from q where id > 5 order by id limit 1 for update"
waiting("The holder adds rows before another asks", REPEATABLE_READ,
        "The same statements, of which A's INSERT comes a moment earlier: in InnoDB too B waits,"
        " and gets the row that A has added.",
        f"A? {FIRST}", "A insert into q values (7, 1, 0)", meanwhile=f"B& {FIRST}",
        then=["B commit"], setup=QUEUE)
case("The holder adds rows while one who has changed more waits", REPEATABLE_READ,
     "The same statements, but B has changed two rows before: in InnoDB the victim is A, and B gets"
     " the row that A had locked.",
     f"""
     A begin
     B begin
     B update q set v = 0 where id in (300, 400)
     A? {FIRST}
     B& {FIRST}
     A& insert into q values (7, 1, 0)
     A.
     A commit
     B.
     B commit
     A? {FIRST}
     """, setup=QUEUE, reason=HOLDER)
case("The holder adds rows while another waits, who then asks again", REPEATABLE_READ,
     "B does what one does after error 1213. What it gets then is what SHALE has given it.",
     f"""
     A begin
     B begin
     A? {FIRST}
     B& {FIRST}
     A& insert into q values (7, 1, 0)
     A.
     A commit
     B.
     B rollback
     B begin
     B? {FIRST}
     B commit
     """, setup=QUEUE, reason=HOLDER)
case("The holder of a row adds others while a scan is on its way to it", REPEATABLE_READ,
     "B has passed many rows when it comes to one that A has; A adds a row beyond that.",
     """
     A begin
     A? select v from q where id = 300 for update
     B begin
     B& update q set v = v + 100 where id between 5 and 500
     A& insert into q values (305, 1, 0)
     A.
     A commit
     B.
     B commit
     A? select count(*), sum(v > 100) from q
     """, setup=QUEUE)

# Of two that weigh the same the one that closes the circle gives way.
for first, second in ("AB", "BA"):
    case(f"Deadlock of two that weigh the same, {second} closes it", REPEATABLE_READ,
         f"Both have changed one row; {second} is the last to ask.",
         f"""
         A begin
         B begin
         A update t set v = v + 1 where id = 10
         B update t set v = v + 1 where id = 20
         {first}& update t set v = v + 1 where id = {20 if first == "A" else 10}
         {second}& update t set v = v + 1 where id = {10 if first == "A" else 20}
         A.
         B.
         A commit
         B commit
         A? select id, v from t where id <= 20
         """)
case("Deadlock of one who has changed more, who closes it", REPEATABLE_READ,
     "A has changed four rows, B one: B gives way though A is the last to ask.",
     """
     A begin
     B begin
     A update t set v = v + 1 where id = 10
     A insert into t values (1, 1, 1), (2, 2, 2), (3, 3, 3)
     B update t set v = v + 1 where id = 20
     B& update t set v = v + 1 where id = 10
     A& update t set v = v + 1 where id = 20
     A.
     B.
     A commit
     B commit
     A? select id, v from t where id <= 20
     """)
case("Deadlock of readers for update, who closes it", READ_COMMITTED,
     "Neither has changed anything; A has locked three rows, B one, and A is the last to ask.",
     """
     A begin
     B begin
     A? select sum(v) from t where id in (10, 20, 30) for update
     B? select v from t where id = 40 for update
     B& select v from t where id = 10 for update
     A& select v from t where id = 40 for update
     A.
     B.
     A commit
     B commit
     """)

HELD = "A update t set v = 5 where id = 20"
# UPDATE looks at rows that others have locked as they were committed, and waits only for matches.
for title, isolation, statement, setup in (
    ("UPDATE without an index", READ_COMMITTED, "update t set k = 9 where v = 3", SETUP),
    ("UPDATE without an index", READ_UNCOMMITTED, "update t set k = 9 where v = 3", SETUP),
    ("UPDATE without an index", REPEATABLE_READ, "update t set k = 9 where v = 3", SETUP),
    ("UPDATE of a range of the primary key", READ_COMMITTED,
     "update t set k = 9 where id between 5 and 35 and v = 3", SETUP),
    ("UPDATE in the order of the primary key", READ_COMMITTED,
     "update t set k = 9 where v >= 3 order by id desc limit 2", SETUP),
    ("UPDATE of a list of the primary key", READ_COMMITTED,
     "update t set k = 9 where id in (10, 20, 30) and v = 3", SETUP),
    ("UPDATE by another index", READ_COMMITTED,
     "update t force index (k) set v = 9 where k between 15 and 35 and v = 3", SETUP),
    ("UPDATE of the primary key", READ_COMMITTED, "update t set id = id + 1 where v = 3", SETUP),
    ("DELETE without an index", READ_COMMITTED, "delete from t where v = 3", SETUP),
    ("SELECT FOR UPDATE without an index", READ_COMMITTED,
     "select id from t where v = 3 for update", SETUP),
    ("UPDATE of a partitioned table", READ_COMMITTED, "update t set k = 9 where v = 3",
     ["create table t (id int primary key, k int, v int, key (k))"
      " partition by hash (id) partitions 3", SETUP[1]]),
    ("UPDATE of a partitioned table in order", READ_COMMITTED,
     "update t set k = 9 where v >= 3 order by id limit 2",
     ["create table t (id int primary key, k int, v int, key (k))"
      " partition by hash (id) partitions 3", SETUP[1]]),
):
    waiting(f"{title} passes a row that does not match, {isolation.upper()}", isolation,
            "A has changed a row that B's statement looks at and has no use for.",
            HELD, f"B& {statement}", then=["A? select id, k, v from t order by id"], setup=setup)
waiting("UPDATE waits for a row that matched", READ_COMMITTED,
        "As committed the row matches; when A has committed it does not any more.",
        HELD, "B& update t set k = 9 where v = 2", then=["A? select id, k, v from t order by id"])
waiting("UPDATE waits for a row that is gone then", READ_COMMITTED,
        "As committed the row matches; A deletes it.",
        "A delete from t where id = 20", "B& update t set k = 9 where v <= 3",
        then=["A? select id, k, v from t order by id"])
waiting("UPDATE passes a row that is not committed", READ_COMMITTED,
        "A has added a row that would match.",
        "A insert into t values (25, 25, 3)", "B& update t set k = 9 where v = 3",
        then=["A? select id, k, v from t order by id"])
waiting("UPDATE passes a row that will match", READ_COMMITTED,
        "Only A's change, which is not committed, makes the row match.",
        "A update t set v = 3 where id = 20", "B& update t set k = 9 where v = 3",
        then=["A? select id, k, v from t order by id"])

PARTS = ["create table t (id int primary key, k int, v int, key (k))"
         " partition by hash (id) partitions 3", SETUP[1]]
# At READ COMMITTED nothing is kept free of new rows: who comes upon one that is not committed waits.
for title, statement, setup in (
    ("SELECT FOR UPDATE without an index", "select id from t where v > 3 for update", SETUP),
    ("SELECT FOR UPDATE of a range", "select id from t where id between 22 and 28 for update", SETUP),
    ("SELECT FOR UPDATE of a partitioned table", "select id from t where v > 3 for update", PARTS),
    ("SELECT FOR UPDATE in falling order",
     "select id from t where id < 28 order by id desc limit 1 for update", SETUP),
    ("SELECT FOR UPDATE of another index",
     "select id from t force index (k) where k between 22 and 28 for update", SETUP),
    ("LOCK IN SHARE MODE", "select id from t where id between 22 and 28 lock in share mode", SETUP),
    ("SELECT FOR UPDATE that ends before",
     "select id from t where id > 5 order by id limit 2 for update", SETUP),
    ("NOWAIT", "select id from t where v > 3 for update nowait", SETUP),
    ("SKIP LOCKED", "select id from t where v > 3 for update skip locked", SETUP),
    ("DELETE of rows that are not there", "delete from t where v > 90", SETUP),
    ("UPDATE of another index",
     "update t force index (k) set v = 7 where k between 22 and 28", SETUP),
):
    waiting(f"{title}, and another's new row, READ COMMITTED", READ_COMMITTED,
            "A has added a row in the way of B's statement.",
            "A insert into t values (25, 25, 9)", f"B& {statement}",
            then=["A? select id, k, v from t order by id"], setup=setup)
waiting("SELECT FOR UPDATE, and another's new row that is undone, READ COMMITTED", READ_COMMITTED,
        "A has added a row in the way of B's statement, and goes back.",
        "A insert into t values (25, 25, 9)", "B& select id from t where id > 15 for update",
        end="A rollback")
waiting("SELECT FOR UPDATE of an index, and an entry that another has moved, READ COMMITTED",
        READ_COMMITTED, "A gives a row another key.",
        "A update t set k = 25 where id = 10",
        "B& select id from t force index (k) where k between 22 and 28 for update")
for title, setup in (("a table", SETUP), ("a partitioned table", PARTS)):
    case(f"DELETE of {title}, and rows that come while it waits, READ COMMITTED", READ_COMMITTED,
         "B waits for A's row; C moves one and adds others ahead of it, and one behind.",
         """
         A begin
         A update t set v = 5 where id = 20
         B& delete from t where id > 5
         C update t set id = 47 where id = 40
         C insert into t values (15, 15, 1), (35, 35, 1), (44, 44, 1)
         A commit
         B.
         A? select id, k, v from t order by id
         """, setup=setup)

UNIQUE = ["create table t (id int primary key, x int, v int, unique key (x))",
          "insert into t values (10, 10, 1), (20, 20, 2), (30, 30, 3)"]
# A duplicate that stays as it is others may find too.
for statement in ("insert ignore into t values ({}, {}, 9)", "insert into t values ({}, {}, 9)",
                  "replace into t values ({}, {}, 9)",
                  "insert into t values ({}, {}, 9) on duplicate key update v = v + 1"):
    name = statement.split(" into")[0].upper() + (
        " ... ON DUPLICATE KEY UPDATE" if "update" in statement else "")
    for key, values in (("the primary key", (10, 15)), ("a unique index", ("{}", 10))):
        for isolation in (READ_COMMITTED, REPEATABLE_READ):
            mine, other = (statement.format(*values).format(new) for new in (15, 16))
            waiting(f"Two find the same duplicate of {key}: {name}, {isolation.upper()}", isolation,
                    "Both insert what is there.", f"A& {mine}", f"B& {other}",
                    then=["A? select * from t order by id"], setup=UNIQUE)
case("Two who have found the same duplicate change it", READ_COMMITTED,
     "Each has it shared: the second to ask gives way.",
     """
     A begin
     B begin
     A& insert ignore into t values (10, 15, 9)
     B& insert ignore into t values (10, 16, 9)
     A& update t set v = v + 1 where id = 10
     B& update t set v = v + 1 where id = 10
     A.
     B.
     A commit
     B commit
     A? select * from t order by id
     """, setup=UNIQUE)
case("A row that a duplicate has kept out", READ_COMMITTED,
     "INSERT IGNORE leaves a row out because of a unique index; its primary key is free.",
     """
     A begin
     A& insert ignore into t values (15, 10, 9)
     B& insert into t values (15, 16, 9)
     C& select v from t where id between 12 and 25 for update
     A commit
     B.
     C.
     """, setup=UNIQUE)
