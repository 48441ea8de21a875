# Columns get other collations, and character sets in which their bytes are the same texts.
set names utf8mb4;
create table t (id int primary key, a varchar(50) character set utf8mb3, b text character set utf8mb3,
  c varchar(20) character set ascii default 'none', d char(10) character set latin1,
  e varchar(10) character set latin1);
insert into t values (1, 'one', repeat('b', 300), 'x', 'pad', 'e'), (2, 'Größe', 'ß', 'X', 'PAD', 'E');
insert into t values (3, null, null, default, null, null);
alter table t modify a varchar(50) character set utf8mb4, modify b text character set utf8mb4,
  algorithm=instant;
alter table t modify c varchar(20) character set ascii collate ascii_bin default 'none', algorithm=instant;
alter table t modify c varchar(30) character set ascii collate ascii_bin default 'none', algorithm=instant;
alter table t modify d char(10) character set latin1 collate latin1_bin, algorithm=instant;
insert into t values (4, 'four \U0001F600', '\U0001F600', 'é', 'é', 'é');
insert into t set id = 5;
select id, a, left(b, 3), c, d, e from t order by id;
select id from t where a = 'GROSSE' or a = 'grösse' or c = 'x' or d = 'pad';
alter table t modify e varchar(10) character set utf8mb4;
alter table t convert to character set utf8mb4;
select id, hex(a), length(b), hex(c), hex(d), hex(e) from t order by id;
check table t;
drop table t;

# In indexes: they are of the new collation.
create table t (id int primary key, a varchar(20) character set utf8mb3, b varchar(20) character set utf8mb3,
  c int, unique key a (a), key b (b(2)), key cb (c, b)) collate utf8mb3_bin;
insert into t values (1, 'a', 'bb1', 1), (2, 'A', 'BB2', 1), (3, 'ä', 'bb', 1), (4, null, 'Bb', 1);
alter table t modify b varchar(20) character set utf8mb3 collate utf8mb3_general_ci, algorithm=nocopy;
select id from t force index (b) where b like 'bb%' order by id;
select id, b from t force index (cb) where c = 1 and b >= 'bb' order by b, id;
select b from t force index (cb) where c = 1 order by b, id;
alter table t modify a varchar(20) character set utf8mb3 collate utf8mb3_general_ci, algorithm=nocopy;
select id from t where a = 'a';
alter table t modify a varchar(20) character set utf8mb4 collate utf8mb4_bin, algorithm=nocopy;
alter table t modify b varchar(20) character set utf8mb4 collate utf8mb4_unicode_ci;
select id, a from t force index (a) where a in ('a', 'A') order by a;
select id from t force index (b) where b = 'BB' order by id;
update t set b = 'c' where b = 'bb';
select id, b from t force index (cb) where c = 1 order by b, id;
check table t;
insert into t values (5, 'a', 'x', 2);
insert into t values (6, '\U0001F600', '\U0001F600', 2);
drop table t;

# The primary key.
create table t (a varchar(20) character set utf8mb3 collate utf8mb3_bin primary key, b int, key (b));
insert into t values ('a', 1), ('A', 2), ('b', 3);
alter table t modify a varchar(20) character set utf8mb4 collate utf8mb4_bin;
select a, b from t force index (b) order by b;
select * from t where a = 'a';
delete from t where a = 'A';
alter table t modify a varchar(20) character set utf8mb4 collate utf8mb4_general_ci;
select * from t where a in ('A', 'b');
check table t;
drop table t;

# Words, generated columns, partitions.
create table t (id int primary key, a varchar(50) character set utf8mb3 collate utf8mb3_bin,
  v varchar(50) character set utf8mb3 collate utf8mb3_bin as (concat(a, 'x')) virtual, key v (v), fulltext key f (a));
insert into t (id, a) values (1, 'Apple tree'), (2, 'apple'), (3, 'pear');
alter table t modify a varchar(50) character set utf8mb4 collate utf8mb4_general_ci;
select id from t where match (a) against ('APPLE') order by id;
select id, v from t force index (v) where v >= 'a' order by v;
check table t;
drop table t;
create table t (a varchar(10) collate latin1_swedish_ci, b int) charset latin1 partition by key (a) partitions 5;
insert into t values ('a', 1), ('A', 2), ('b', 3), ('B', 4), ('c', 5), ('C', 6);
alter table t modify a varchar(10) collate latin1_bin;
select b from t where a = 'a';
select b from t where a = 'b';
select b from t where a = 'c';
check table t;
select b from t where a = 'A';
select b from t where a = 'B';
select b from t where a = 'C';
alter table t modify a varchar(10) collate latin1_swedish_ci;
select b from t where a = 'a' order by b;
select b from t where a = 'c' order by b;
check table t;
drop table t;
create table t (a varchar(10) collate latin1_swedish_ci, b varchar(10)) charset latin1
  partition by range columns (a) (partition p0 values less than ('M'), partition p1 values less than (maxvalue));
insert into t values ('a', 'x'), ('Z', 'y'), ('n', 'z');
alter table t modify b varchar(10) collate latin1_bin;
select * from t order by a;
select * from t where b = 'X';
drop table t;

# Foreign keys.
create table p (a varchar(10) character set utf8mb3 primary key, b varchar(10) character set utf8mb3);
create table c (id int primary key, a varchar(10) character set utf8mb3, foreign key (a) references p (a));
insert into p values ('x', 'y');
insert into c values (1, 'x');
alter table p modify b varchar(10) character set utf8mb4, algorithm=inplace;
select * from p;
drop table c, p;
