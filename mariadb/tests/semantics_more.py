"""More cases of semantics.py: isolation levels, waits, DDL, XA, what survives a restart."""

from semantics_cases import READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, SETUP, case, waiting

waiting("SERIALIZABLE, plain read", SERIALIZABLE,
        "A read in a transaction keeps writers waiting.",
        "A? select v from t where id = 10",
        "B& update t set v = 5 where id = 10")
case("SERIALIZABLE, count and insert", SERIALIZABLE,
     "Both count, both insert: one of them has to give up.",
     """
     A begin
     B begin
     A? select count(*) from t
     B? select count(*) from t
     A& insert into t values (25, 25, 0)
     B& insert into t values (26, 26, 0)
     A.
     B.
     A commit
     B commit
     A? select count(*) from t
     """)
waiting("SERIALIZABLE, autocommit read", SERIALIZABLE,
        "A read that is its own transaction needs no locks.",
        "A update t set v = 5 where id = 10",
        "B& select v from t where id = 10")
case("READ COMMITTED lets go of rows that do not match", READ_COMMITTED,
     "An UPDATE without an index looks at every row, and keeps those it changes.",
     """
     A begin
     A update t set k = k + 1 where v = 3
     B& update t set k = k + 1 where id = 10
     B& update t set k = k + 1 where id = 30
     A commit
     B.
     """)
waiting("REPEATABLE READ keeps rows that do not match", REPEATABLE_READ,
        "The same UPDATE keeps all it has looked at.",
        "A update t set k = k + 1 where v = 3",
        "B& update t set k = k + 1 where id = 10")
waiting("READ COMMITTED, update of a row that another changes", READ_COMMITTED,
        "The row is looked at again once the other has committed.",
        "A update t set v = 30 where id = 30",
        "B& update t set k = 99 where v = 3",
        then=["B? select id, k, v from t where id = 30"])
case("SELECT ... NOWAIT", REPEATABLE_READ,
     "An error at once in place of a wait.",
     """
     A begin
     A update t set v = 5 where id = 10
     B begin
     B& select v from t where id = 10 for update nowait
     B.
     B? select v from t where id = 20 for update nowait
     B commit
     A commit
     """)
case("SELECT ... SKIP LOCKED", REPEATABLE_READ,
     "Rows that others hold are left out.",
     """
     A begin
     A update t set v = 5 where id in (10, 30)
     B begin
     B& select id from t where id <= 30 for update skip locked
     B.
     B commit
     A commit
     """)
case("SKIP LOCKED through a secondary index", REPEATABLE_READ,
     "The same by key (k), as a queue does it.",
     """
     A begin
     A? select id from t where k >= 10 order by k limit 1 for update skip locked
     B begin
     B& select id from t where k >= 10 order by k limit 1 for update skip locked
     B.
     B commit
     A commit
     """)
case("WAIT n", REPEATABLE_READ,
     "SELECT ... FOR UPDATE WAIT 1 gives up after a second.",
     """
     A begin
     A update t set v = 5 where id = 10
     B begin
     B? select v from t where id = 10 for update wait 1
     B commit
     A commit
     """)
case("AUTO_INCREMENT after a rollback", REPEATABLE_READ,
     "A number that was given out is not given again.",
     """
     A begin
     A insert into a (v) values (1), (2)
     A rollback
     A insert into a (v) values (3)
     A? select id, v from a
     """,
     setup=["create table a (id int primary key auto_increment, v int)"])
case("AUTO_INCREMENT of two at once", REPEATABLE_READ,
     "No one waits for numbers.",
     """
     A begin
     A insert into a (v) values (1)
     B& insert into a (v) values (2)
     B? select last_insert_id()
     A rollback
     B? select id, v from a
     """,
     setup=["create table a (id int primary key auto_increment, v int)"])
case("DDL commits the transaction", REPEATABLE_READ,
     "CREATE TABLE ends it first.",
     """
     A begin
     A update t set v = 100 where id = 10
     A create table other (id int primary key)
     A rollback
     B? select v from t where id = 10
     """)
waiting("DDL waits for readers", REPEATABLE_READ,
        "ALTER TABLE waits until a transaction that has read the table is over.",
        "A? select v from t where id = 10",
        "B& alter table t add column w int default 5, algorithm=copy",
        then=["A? select v, w from t where id = 10"])
case("Snapshot older than the table", REPEATABLE_READ,
     "A table made anew after the snapshot was taken is not what the snapshot saw.",
     """
     A start transaction with consistent snapshot
     B alter table t add column w int, algorithm=copy
     A? select count(*) from t
     A commit
     A? select count(*) from t
     """)
waiting("TRUNCATE waits for readers", REPEATABLE_READ,
        "And cannot be undone.",
        "A? select count(*) from t",
        "B& truncate table t",
        then=["A? select count(*) from t"])
case("FOREIGN KEY", REPEATABLE_READ,
     "Enforced, or refused with an error; never ignored.",
     """
     A? create table c (id int primary key, p int, foreign key (p) references t (id))
     A? insert into c values (1, 999)
     """)
case("FOREIGN KEY by ALTER TABLE", REPEATABLE_READ,
     "As before.",
     """
     A create table c (id int primary key, p int)
     A? alter table c add foreign key (p) references t (id)
     """)
case("XA, one connection", REPEATABLE_READ,
     "Prepared, then committed.",
     """
     A xa start 'ENGINE-1'
     A update t set v = 100 where id = 10
     A xa end 'ENGINE-1'
     A? xa prepare 'ENGINE-1'
     B? select v from t where id = 10
     A? xa commit 'ENGINE-1'
     B? select v from t where id = 10
     """)
case("XA, one phase", REPEATABLE_READ,
     "Committed without preparing.",
     """
     A xa start 'ENGINE-2'
     A update t set v = 100 where id = 10
     A xa end 'ENGINE-2'
     A? xa commit 'ENGINE-2' one phase
     B? select v from t where id = 10
     """)
case("XA, rolled back after preparing", REPEATABLE_READ,
     "Nothing stays, its locks are free.",
     """
     A xa start 'ENGINE-3'
     A update t set v = 100 where id = 10
     A xa end 'ENGINE-3'
     A xa prepare 'ENGINE-3'
     B& update t set v = v + 1 where id = 10
     A xa rollback 'ENGINE-3'
     B.
     B? select v from t where id = 10
     """)
case("XA, decided by another connection", REPEATABLE_READ,
     "The connection that prepared is gone; its locks are not.",
     """
     A xa start 'ENGINE-4'
     A update t set v = 100 where id = 10
     A xa end 'ENGINE-4'
     A xa prepare 'ENGINE-4'
     Ax
     B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     B? update t set v = 5 where id = 10
     B? xa commit 'ENGINE-4'
     B? select v from t where id = 10
     """)
case("FLUSH TABLES WITH READ LOCK", REPEATABLE_READ,
     "Writers wait, readers do not.",
     """
     A flush tables t with read lock
     B? select v from t where id = 10
     B& update t set v = 5 where id = 10
     A unlock tables
     B.
     """)
case("LOCK TABLES ... WRITE", REPEATABLE_READ,
     "Others wait for the whole table.",
     """
     A lock tables t write
     B& select v from t where id = 10
     A update t set v = 5 where id = 10
     A unlock tables
     B.
     """)
waiting("INSERT ... SELECT locks what it reads", REPEATABLE_READ,
        "So that a log of statements gives the same again.",
        "A insert into t2 select * from t where id = 10",
        "B& update t set v = 5 where id = 10",
        setup=[*SETUP, "create table t2 like t"])
waiting("UPDATE of a range, then an insert into it", REPEATABLE_READ,
        "The range stays as the UPDATE saw it.",
        "A update t set v = 0 where id > 25",
        "B& insert into t values (45, 45, 1)",
        meanwhile="A? select id, v from t where id > 25")
waiting("DELETE of a row that is not there", REPEATABLE_READ,
        "InnoDB locks the gap.",
        "A? delete from t where id = 25",
        "B& insert into t values (25, 25, 0)")
case("KILL QUERY of one that waits", REPEATABLE_READ,
     "It ends with error 1317, its transaction goes on.",
     """
     A begin
     A update t set v = 5 where id = 10
     B begin
     B update t set v = 6 where id = 20
     B set @me = connection_id()
     B& update t set v = 7 where id = 10
     C use information_schema
     C select max(id) from processlist where info like 'update t%' and db = 'ENGINE' into @id
     C execute immediate concat('kill query ', @id)
     C use ENGINE
     B.
     B? select id, v from t where id <= 20
     B commit
     A rollback
     C? select id, v from t where id <= 20
     """)
case("A connection that ends undoes its transaction", REPEATABLE_READ,
     "And lets go of its locks.",
     """
     A begin
     A update t set v = 5 where id = 10
     B& update t set v = v + 1 where id = 10
     Ax
     B.
     B? select v from t where id = 10
     """)
case("AUTO_INCREMENT after a restart", REPEATABLE_READ,
     "Numbers given out before, then deleted or rolled back, are not given again.",
     """
     A insert into a (v) values (1), (2), (3)
     A delete from a where id = 3
     A begin
     A insert into a (v) values (4)
     A rollback
     """,
     setup=["create table a (id int primary key auto_increment, v int)"],
     after="""
     A insert into a (v) values (5)
     A? select id, v from a
     """)
case("XA, what is locked when it is prepared", REPEATABLE_READ,
     "Its writes, and no more: who decides it, a replica's applier say, may come after those who"
     " would wait for what it has read. Before it is prepared they wait.",
     """
     A xa start 'ENGINE-6'
     A? select id from t where id between 12 and 18 lock in share mode
     A? select id from t where id = 30 lock in share mode
     A update t set v = 100 where id = 10
     B? insert into t values (15, 15, 1)
     B? update t set v = 5 where id = 30
     A xa end 'ENGINE-6'
     A xa prepare 'ENGINE-6'
     B? insert into t values (15, 15, 1)
     B? update t set v = 5 where id = 30
     B? update t set v = 5 where id = 10
     A xa commit 'ENGINE-6'
     B? select id, v from t
     """)
case("XA, what is locked when it is prepared, SERIALIZABLE", SERIALIZABLE,
     "There it keeps all.",
     """
     A xa start 'ENGINE-7'
     A? select id from t where id between 12 and 18 lock in share mode
     A? select id from t where id = 30
     A update t set v = 100 where id = 10
     A xa end 'ENGINE-7'
     A xa prepare 'ENGINE-7'
     B? insert into t values (15, 15, 1)
     B? update t set v = 5 where id = 30
     B? update t set v = 5 where id = 10
     A xa commit 'ENGINE-7'
     B? select id, v from t
     """)
case("XA, prepared before a restart", REPEATABLE_READ,
     "It is still there, with its locks, and can be committed.",
     """
     A xa start 'ENGINE-5'
     A update t set v = 100 where id = 10
     A insert into t values (50, 50, 5)
     A xa end 'ENGINE-5'
     A xa prepare 'ENGINE-5'
     """,
     after="""
     B set innodb_lock_wait_timeout=1, rocksdb_lock_wait_timeout=1, shale_lock_wait_timeout=1
     B? select v from t where id = 10
     B? update t set v = 5 where id = 10
     B? xa commit 'ENGINE-5'
     B? select id, v from t where id in (10, 50)
     B? update t set v = 5 where id = 10
     """)
