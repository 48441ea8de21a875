"""More cases of semantics.py: FULLTEXT and SPATIAL indexes, partitions. MyRocks has none of these
indexes, so its answers are errors."""

from semantics_cases import READ_COMMITTED, REPEATABLE_READ, SETUP, case


def made(title: str, isolation: str, text: str, script: str, setup: list[str]) -> None:
    """A case whose tables are made by its own statements, which an engine may refuse."""
    begin = "\n".join(f"C {statement}" for statement in setup)
    case(title, isolation, text, f"{begin}\n{script.strip()}", setup=SETUP)


JOBS = ["create table jobs (id int primary key, txt text, n int, fulltext (txt))",
        "insert into jobs values (1, 'apple one', 0), (2, 'apple two', 0), (3, 'apple pie', 0),"
        " (4, 'plum pie', 0)"]
FIRST = "select id from jobs where match (txt) against ('apple') limit 1 for update skip locked"
PIE = "match (txt) against ('+apple +pie' in boolean mode)"
TWO = "match (txt) against ('+apple +two' in boolean mode)"

for level in (READ_COMMITTED, REPEATABLE_READ):
    made(f"A queue by MATCH, {level}", level,
         "Each takes what others have not locked, and removes it: rows are locked, words are not.",
         f"""
         A begin
         A? {FIRST}
         B begin
         B? {FIRST}
         A& delete from jobs where id = 1
         A.
         B& delete from jobs where id = 2
         B.
         A commit
         B commit
         A? select id from jobs
         """,
         setup=JOBS)
    made(f"Searches that have a word in common, {level}", level,
         "They find different rows, so neither waits; nor does who changes a row that is not found.",
         f"""
         A begin
         A? select id from jobs where {PIE} for update
         B& select id from jobs where {TWO} for update
         B.
         B& update jobs set txt = 'the apple one' where id = 1
         B.
         B& update jobs set txt = 'apple plum' where id = 4
         B.
         B& update jobs set n = 1 where id = 3
         A commit
         B.
         """,
         setup=JOBS)
    made(f"Two who delete by MATCH, {level}", level,
         "The second waits for the first, and there is no deadlock.",
         """
         A begin
         A delete from jobs where match (txt) against ('apple')
         B& delete from jobs where match (txt) against ('apple')
         A commit
         B.
         B? select id from jobs
         """,
         setup=JOBS)
    made(f"A row that loses its word while a search waits, {level}", level,
         "It is looked at again when it is locked.",
         """
         A begin
         A update jobs set n = 5 where id = 3
         A update jobs set txt = 'pear' where id = 1
         B& update jobs set n = n + 1 where match (txt) against ('apple')
         A commit
         B.
         B? select id, n from jobs
         """,
         setup=JOBS)
    made(f"A locking search by MATCH takes no snapshot, {level}", level,
         "What the transaction reads later is as of then.",
         f"""
         A begin
         A? select id from jobs where {PIE} for update
         A? select id from jobs where match (txt) against ('"plum pie"' in boolean mode) for update
         B insert into t values (99, 9, 9)
         A? select id from t where id = 99
         A commit
         """,
         setup=JOBS)
    made(f"SPATIAL, a row that is read to be updated, {level}", level,
         "It stays locked though the index has others beside it that do not match.",
         """
         A begin
         A? select id from g force index (p) where mbrcontains(st_geomfromtext('polygon((0 0,0 2,2 2,2 0,0 0))'), p) for update
         B& update g set n = n + 1 where id = 1
         A commit
         B.
         """,
         setup=["create table g (id int primary key, p point not null, n int, spatial (p))",
                "insert into g values (1, point(1, 1), 0), (2, point(2.5, 2.5), 0),"
                " (3, point(3, 3), 0), (4, point(2.1, 1), 0), (5, point(1.9, 2.2), 0)"])
PARTS = ["create table t (a int primary key, b int) partition by hash (a) partitions 4",
         "insert into t select seq, seq from seq_1_to_20"]
case("HANDLER and partitions", REPEATABLE_READ, "It goes on from one partition to the next.",
     """
     A handler t open
     A? handler t read first
     A? handler t read next limit 100
     A begin
     A? handler t read first
     A? handler t read next limit 2
     A commit
     A? handler t read next limit 100
     A handler t close
     """, setup=PARTS)
case("HANDLER, partitions, and what its transaction writes", REPEATABLE_READ,
     "It shows the transaction's own rows.",
     """
     A handler t open
     A begin
     A? handler t read first
     A delete from t where a in (8, 1)
     A? handler t read next limit 3
     A insert into t values (21, 21)
     A? handler t read next limit 100
     A rollback
     A handler t close
     """, setup=PARTS)
