"""Features of foreign keys, by the manual's page on them."""

from __future__ import annotations

from compatibility_feature import Feature, Section

PARENT = (
    "create table p (a int primary key, b int, c int, key (b, c))",
    "insert into p values (1, 1, 1), (2, 2, 2)",
)


def child(more: str = "", key: str = "a int, foreign key (a) references p (a)") -> str:
    return f"create table t (id int primary key, {key} {more})"


FOREIGN_KEYS = Section(
    "Foreign keys",
    "",
    (
        Feature(
            "A child needs its parent",
            "foreign_keys",
            "yes",
            (*PARENT, child(), "insert into t values (1, 3)"),
            "error 1452",
        ),
        Feature(
            "A parent with children stays (`RESTRICT`, `NO ACTION`)",
            "foreign_keys",
            "yes",
            (*PARENT, child(), "insert into t values (1, 1)", "delete from p where a = 1"),
            "error 1451",
        ),
        Feature(
            "`ON DELETE CASCADE`",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child("on delete cascade"),
                "insert into t values (1, 1), (2, 2)",
                "delete from p where a = 1",
                "select a from t",
            ),
            "(2)",
        ),
        Feature(
            "`ON DELETE SET NULL`",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child("on delete set null"),
                "insert into t values (1, 1)",
                "delete from p where a = 1",
                "select a from t",
            ),
            "(NULL)",
        ),
        Feature(
            "`ON UPDATE CASCADE`",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child("on update cascade"),
                "insert into t values (1, 1)",
                "update p set a = 8 where a = 1",
                "select a from t",
            ),
            "(8)",
        ),
        Feature(
            "`ON UPDATE SET NULL`",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child("on update set null"),
                "insert into t values (1, 1)",
                "update p set a = 8 where a = 1",
                "select a from t",
            ),
            "(NULL)",
        ),
        Feature(
            "Parents by an index that is not unique, by its first columns",
            "foreign_keys",
            "no",
            (
                *PARENT,
                child(key="a int, foreign key (a) references p (b)"),
                "insert into t values (1, 7)",
            ),
            "error 1452",
        ),
        Feature(
            "Several columns",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child(key="a int, b int, foreign key (a, b) references p (b, c)"),
                "insert into t values (1, 1, 2)",
            ),
            "error 1452",
        ),
        Feature(
            "A table to itself",
            "foreign_keys",
            "yes",
            (
                "create table t (id int primary key, a int, foreign key (a) references t (id) on delete cascade)",
                "insert into t values (1, null), (2, 1), (3, 2)",
                "delete from t where id = 1",
                "select count(*) from t",
            ),
            "(0)",
        ),
        Feature(
            "`foreign_key_checks=0`",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child(),
                "set foreign_key_checks = 0",
                "insert into t values (1, 3)",
                "select count(*) from t",
            ),
            "(1)",
        ),
        Feature(
            "`ALTER TABLE ... ADD` and `DROP FOREIGN KEY`",
            "foreign_keys_ddl",
            "yes",
            (
                *PARENT,
                "create table t (id int primary key, a int)",
                "insert into t values (1, 1)",
                "alter table t add constraint f foreign key (a) references p (a)",
                "alter table t drop foreign key f",
                "insert into t values (2, 3)",
                "select count(*) from t",
            ),
            "(2)",
        ),
        Feature(
            "What is there is checked when a key is added",
            "foreign_keys_ddl",
            "?",
            (
                *PARENT,
                "create table t (id int primary key, a int)",
                "insert into t values (1, 7)",
                "alter table t add constraint f foreign key (a) references p (a)",
            ),
            "error 1452",
        ),
        Feature(
            "A parent is not dropped",
            "foreign_keys_ddl",
            "?",
            (*PARENT, child(), "drop table p"),
            "error 1451",
        ),
        Feature(
            "Columns of a key are not dropped",
            "foreign_keys_ddl",
            "?",
            (
                *PARENT,
                child(key="a int, constraint f foreign key (a) references p (a)"),
                "alter table t drop column a",
            ),
            "error 1553",
        ),
        Feature(
            "`SHOW CREATE TABLE`, `information_schema` tell of keys",
            "foreign_keys",
            "yes",
            (
                *PARENT,
                child("on delete cascade"),
                "select delete_rule, referenced_table_name from information_schema.referential_constraints"
                " where constraint_schema = database()",
            ),
            "(CASCADE,p)",
        ),
        Feature(
            "Names follow `RENAME TABLE`",
            "foreign_keys_ddl",
            "?",
            (*PARENT, child(), "rename table p to q", "insert into t values (1, 3)"),
            "error 1452",
        ),
        Feature(
            "Keys of system-versioned tables",
            "foreign_keys_versioned",
            "?",
            (*PARENT, child() + " with system versioning", "insert into t (id, a) values (1, 3)"),
            "error 1452",
        ),
        Feature(
            "Stored generated columns of children",
            "foreign_keys",
            "?",
            (
                *PARENT,
                child(key="b int, a int as (b + 1) stored, foreign key (a) references p (a)"),
                "insert into t (id, b) values (1, 7)",
            ),
            "error 1452",
        ),
        Feature(
            "Parents in another schema",
            "foreign_keys",
            "?",
            (
                *PARENT,
                "create or replace database ENGINE_2",
                "create table ENGINE_2.t (id int primary key, a int, foreign key (a) references ENGINE.p (a))",
                "insert into ENGINE_2.t values (1, 3)",
            ),
            "error 1452",
        ),
        Feature(
            "Cascades run no triggers",
            "foreign_keys",
            "?",
            (
                *PARENT,
                child("on delete cascade"),
                "create table u (a int)",
                "insert into t values (1, 1)",
                "create trigger r after delete on t for each row insert into u values (1)",
                "delete from p where a = 1",
                "select count(*) from u",
            ),
            "(0)",
            note="one of InnoDB's limits",
        ),
        Feature(
            "Keys of partitioned tables",
            "foreign_keys",
            "?",
            (
                *PARENT,
                "create table t (a int, foreign key (a) references p (a)) partition by hash (a)",
            ),
            "error 1506",
            note="refused by the server, with any engine",
        ),
    ),
)


SECTIONS = (FOREIGN_KEYS,)
