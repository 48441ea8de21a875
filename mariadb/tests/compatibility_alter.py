"""Changes of tables: InnoDB's pages on online DDL, by each of their headings."""

from __future__ import annotations

from compatibility_feature import Change, Section

INSTANT, COPY, REBUILD = "alter_instant", "alter_copy", "alter_rebuild"

ALTER = Section(
    "Changes of tables",
    "Asked of each engine is the best `ALGORITHM` and the most open `LOCK` that it takes for the change, of a"
    " table with rows. `instant` reads no row. `nocopy` builds indexes, `inplace` may make the table anew,"
    " `copy` makes it anew row by row. After it is who goes on meanwhile: writers and readers (`LOCK=NONE`),"
    " readers (`SHARED`), nobody.",
    (
        Change("Add a column at the end", INSTANT, "instant", "add column d int default 5"),
        Change(
            "Add a column elsewhere", INSTANT, "copy", "add column d int not null default 5 first"
        ),
        Change("Drop a column", INSTANT, "?", "drop column b"),
        Change(
            "Reorder columns", INSTANT, "?", "modify column c int not null default 0 after id"
        ),
        Change("Rename a column", INSTANT, "instant", "rename column b to d"),
        Change("Longer `VARCHAR`", INSTANT, "copy", "modify column b varchar(20)"),
        Change("`VARCHAR` longer than 255 bytes", INSTANT, "copy", "modify column b varchar(2000)"),
        Change("`NULL` allowed", INSTANT, "copy", "modify column c int default 0"),
        Change("`NOT NULL`", REBUILD, "copy", "modify column a int not null"),
        Change("Another type", REBUILD, "copy", "modify column a bigint"),
        Change(
            "`ENUM` with more values",
            INSTANT,
            "copy",
            "modify column e enum('a', 'b', 'c')",
            "create table t (id int primary key, e enum('a', 'b'))",
        ),
        Change(
            "`SET` with more values",
            INSTANT,
            "copy",
            "modify column e set('a', 'b', 'c')",
            "create table t (id int primary key, e set('a', 'b'))",
        ),
        Change("Another default", INSTANT, "instant", "alter column c set default 7"),
        Change("No default", INSTANT, "instant", "alter column c drop default"),
        Change("A virtual column", INSTANT, "?", "add column v int as (a + 1) virtual"),
        Change(
            "Drop a virtual column",
            INSTANT,
            "?",
            "drop column v",
            "create table t (id int primary key, v int as (id + 1) virtual)",
        ),
        Change("A stored generated column", REBUILD, "?", "add column v int as (a + 1) persistent"),
        Change(
            "Add a primary key",
            REBUILD,
            "copy",
            "add primary key (id)",
            "create table t (id int not null, a int)",
        ),
        Change("Drop the primary key", COPY, "copy", "drop primary key"),
        Change("Add an index", "online_ddl.py", "inplace, writers go on", "add key kb (b)"),
        Change("Add a unique index", REBUILD, "inplace, writers go on", "add unique (b, id)"),
        Change(
            "Add an index of a virtual column",
            REBUILD,
            "?",
            "add key (v)",
            "create table t (id int primary key, v int as (id + 1) virtual)",
        ),
        Change(
            "Add a column to a system-versioned table",
            "alter_versioned",
            "?",
            "add c int, algorithm=nocopy",
            "create table t (id int primary key, a int) with system versioning",
            before=("set system_versioning_alter_history = keep",),
        ),
        Change("Drop an index", INSTANT, "inplace, writers go on", "drop key ka"),
        Change("Rename an index", INSTANT, "instant", "rename key ka to kb"),
        Change("Ignore an index", "compatibility.py", "?", "alter index ka ignored"),
        Change("Add `FULLTEXT`", "fulltext", "copy", "add fulltext (b)"),
        Change(
            "Add `SPATIAL`",
            "spatial.py",
            "copy",
            "add spatial (p)",
            "create table t (id int primary key, p point not null default point(1, 1))",
        ),
        Change(
            "Add a foreign key",
            "foreign_keys_ddl",
            "?",
            "add foreign key (a) references p (id)",
            before=(
                "create table p (id int primary key)",
                "insert into p select seq from seq_1_to_10",
            ),
        ),
        Change(
            "Add a foreign key, `foreign_key_checks=0`",
            "foreign_keys_ddl",
            "?",
            "add foreign key (a) references p (id)",
            before=("create table p (id int primary key)", "set foreign_key_checks = 0"),
        ),
        Change(
            "Drop a foreign key",
            "foreign_keys_ddl",
            "?",
            "drop foreign key f",
            "create table t (id int primary key, a int, constraint f foreign key (a) references p (id))",
            before=(
                "create table p (id int primary key)",
                "insert into p select seq from seq_1_to_10",
            ),
        ),
        Change("Add a `CHECK`", REBUILD, "?", "add constraint x check (id >= 0)"),
        Change(
            "Drop a `CHECK`",
            INSTANT,
            "?",
            "drop constraint x",
            "create table t (id int primary key, constraint x check (id >= 0))",
        ),
        Change(
            "`AUTO_INCREMENT=`",
            "compatibility.py",
            "?",
            "auto_increment=1000",
            "create table t (id int primary key auto_increment)",
        ),
        Change("A comment", INSTANT, "instant", "comment='x'"),
        Change("Default character set", "compatibility.py", "?", "default character set latin2"),
        Change(
            "All columns to another character set", REBUILD, "copy", "convert to character set utf8mb4"
        ),
        Change("`ROW_FORMAT=`", "compatibility.py", "?", "row_format=compact"),
        Change("`FORCE`, the same table made anew", REBUILD, "?", "force"),
        Change("`ENGINE=` of the same", REBUILD, "?", "engine=ENGINE"),
        Change("Begin to keep versions", "compatibility.py", "?", "add system versioning"),
        Change(
            "End to keep versions",
            "versions",
            "?",
            "drop system versioning",
            "create table t (id int primary key) with system versioning",
        ),
    ),
)

SECTIONS = (ALTER,)
