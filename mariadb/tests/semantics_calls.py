"""More cases of semantics.py: timeouts within functions and triggers, HANDLER."""

from semantics_cases import READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, SETUP, case

ORDERS = [*SETUP, "create table orders (id int primary key, n int)"]


def timeout(within: str, text: str, routine: str, call: str, then: str) -> None:
    """B calls a routine that handles errors, in which an UPDATE meets A's row."""
    case(f"A timeout within a {within} that handles errors", REPEATABLE_READ, text,
         f"""
         A begin
         A update t set v = 5 where id = 30
         B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
         B& {call}
         B.
         A rollback
         {then}
         """,
         setup=[*ORDERS, routine])


LOOK = "B? select id, v from t"
timeout("trigger", "No handler keeps the statement from failing: half of it would stay.",
        "create trigger follow after insert on orders for each row begin"
        " declare continue handler for sqlexception begin end;"
        " update t set v = v + 100; end",
        "insert into orders values (1, 1)", f"B? select * from orders\n{LOOK}")
timeout("function", "As within a trigger.",
        "create function add_all() returns int deterministic modifies sql data begin"
        " declare continue handler for sqlexception begin end;"
        " update t set v = v + 100; return 1; end",
        "select add_all()", LOOK)
timeout("procedure", "The statement within it is undone, and the procedure goes on.",
        "create procedure add_all() begin"
        " declare continue handler for sqlexception insert into orders values (7, 7);"
        " update t set v = v + 100; end",
        "call add_all()", f"B? select * from orders\n{LOOK}")
case("lock_wait_timeout is for tables", REPEATABLE_READ,
     "What a session sets for DDL ends no wait for a row.",
     """
     A begin
     A update t set v = 5 where id = 10
     B set lock_wait_timeout=1
     B& update t set v = 6 where id = 10
     C select sleep(2)
     A commit
     B.
     B? select id, v from t where id = 10
     """)
case("A deadlock that a write meets, and its warnings", REPEATABLE_READ,
     "There is one error.",
     """
     A begin
     A update t set v = 1 where id > 0
     B begin
     B update orders set n = 1 where id = 2
     A insert into orders values (1, 1)
     B& insert into orders values (1, 2)
     A? update orders set n = 2 where id = 2
     B.
     B? select @@warning_count
     A commit
     """,
     setup=[*ORDERS, "insert into orders values (2, 0)"])
for level in (READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE):
    case(f"HANDLER beside a writer, {level}", level,
         "It reads what is committed, and waits for nobody.",
         """
         A begin
         A update t set v = 99 where id = 10
         B handler t open
         B& handler t read `PRIMARY` = (10)
         B.
         B& handler t read `PRIMARY` next
         B.
         A commit
         B? handler t read `PRIMARY` = (10)
         B? handler t close
         """)
    case(f"HANDLER within a transaction, {level}", level,
         "It locks nothing, and shows the snapshot of a SELECT.",
         """
         B begin
         B? select v from t where id = 40
         A& update t set v = 2 where id = 10
         A.
         B handler t open
         B? handler t read first
         A& update t set v = 3 where id = 10
         A.
         B? handler t read first
         B? handler t read next
         A& insert into t values (35, 35, 0)
         A.
         B? handler t read next limit 5
         B? select id, v from t
         B commit
         B? handler t read next
         B? handler t read first
         """)
    case(f"HANDLER and what its transaction writes, {level}", level,
         "It shows the transaction's own rows, also those of a moment ago.",
         """
         A begin
         A handler t open
         A? handler t read `PRIMARY` first
         A insert into t values (15, 15, 9)
         A? handler t read `PRIMARY` next
         A delete from t where id = 20
         A update t set v = 77 where id = 30
         A? handler t read `PRIMARY` next
         A? handler t read `PRIMARY` next limit 3
         A? handler t read `PRIMARY` prev
         A? handler t read k first
         A update t set k = 1000 where id = 30
         A? handler t read k next limit 9
         A rollback
         A? handler t read k first
         A? handler t read k next limit 9
         """,
         setup=["create table t (id int primary key, k int, v int, key k (k))",
                "insert into t values (10, 10, 1), (20, 20, 2), (30, 30, 3), (40, 40, 4)"])
SUMS = [
    "create table acct (id int primary key, total int)",
    "create table items (id int primary key, acct int, amount int, key (acct))",
    "insert into acct values (1, 0)",
]
case("READ COMMITTED, a sum that is read after a wait", READ_COMMITTED,
     "What a statement reads plainly is of its first such read, which comes after the lock.",
     """
     A begin
     A insert into items values (1, 1, 5)
     A update acct set total = (select sum(amount) from items where acct = acct.id) where id = 1
     B begin
     B insert into items values (2, 1, 7)
     B& update acct set total = (select sum(amount) from items where acct = acct.id) where id = 1
     A commit
     B.
     B commit
     A? select total, (select sum(amount) from items) from acct
     """,
     setup=SUMS)
case("READ COMMITTED, FOR UPDATE beside a plain read", READ_COMMITTED,
     "So does a SELECT.",
     """
     A begin
     A insert into items values (1, 1, 5)
     A update acct set total = 5 where id = 1
     B& select total, (select sum(amount) from items) from acct where id = 1 for update
     A commit
     B.
     """,
     setup=SUMS)


def reads_after_wait(title: str, text: str, body: str) -> None:
    """B calls a function that comes to A's row, and then reads by the index that A has changed."""
    case(title, READ_COMMITTED, text,
         """
         A begin
         A update t set k = 5 where id = 10
         B& select f()
         A commit
         B.
         """,
         setup=[*SETUP,
                f"create function f() returns int deterministic modifies sql data begin {body} end"])


CHANGE = "update t set k = k + 100 where id = 10;"
COUNT = "select count(*) into {} from t force index (k) where k >= 0;"
reads_after_wait("READ COMMITTED, a function that waits and then reads by an index",
                 "Each row is there once, as the function has written it.",
                 f"declare n int; {CHANGE} {COUNT.format('n')} return n;")
reads_after_wait("READ COMMITTED, a function that reads, waits, and reads by an index",
                 "Also where it had read before the wait.",
                 f"declare n, m int; {COUNT.format('m')} {CHANGE} {COUNT.format('n')}"
                 " return 10 * m + n;")
