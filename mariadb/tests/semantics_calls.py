"""More cases of semantics.py: timeouts within functions and triggers, HANDLER."""

from semantics_cases import READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, SETUP, case

ORDERS = [*SETUP, "create table orders (id int primary key, n int)"]

case("A timeout within a trigger that handles errors", REPEATABLE_READ,
     "No handler keeps the statement from failing: half of it would stay.",
     """
     A begin
     A update t set v = 5 where id = 30
     B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     B& insert into orders values (1, 1)
     B.
     A rollback
     B? select * from orders
     B? select id, v from t
     """,
     setup=[*ORDERS,
            "create trigger follow after insert on orders for each row begin"
            " declare continue handler for sqlexception begin end;"
            " update t set v = v + 100; end"])
case("A timeout within a function that handles errors", REPEATABLE_READ,
     "As within a trigger.",
     """
     A begin
     A update t set v = 5 where id = 30
     B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     B& select add_all()
     B.
     A rollback
     B? select id, v from t
     """,
     setup=[*ORDERS,
            "create function add_all() returns int deterministic modifies sql data begin"
            " declare continue handler for sqlexception begin end;"
            " update t set v = v + 100; return 1; end"])
case("A timeout within a procedure that handles errors", REPEATABLE_READ,
     "The statement within it is undone, and the procedure goes on.",
     """
     A begin
     A update t set v = 5 where id = 30
     B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     B& call add_all()
     B.
     A rollback
     B? select * from orders
     B? select id, v from t
     """,
     setup=[*ORDERS,
            "create procedure add_all() begin"
            " declare continue handler for sqlexception insert into orders values (7, 7);"
            " update t set v = v + 100; end"])
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
