# What ON UPDATE CASCADE writes: the columns that the parent's update has changed, as the parent has them.
set names utf8mb4;
create table p (a int, b varchar(10), primary key (a, b));
create table c (id int primary key, a int, b varchar(10), foreign key (a, b) references p (a, b) on update cascade);
insert into p values (1, 'x');
insert into c values (1, 1, 'X');
update p set a = 2;
select a, hex(b) from c;
update p set b = 'Y';
select a, hex(b) from c;
update p set b = 'y';
select a, hex(b) from c;
drop table c, p;

# A column that does not change need not fit.
create table p (a int, b varchar(10) collate utf8mb4_unicode_ci, primary key (a, b)) charset utf8mb4;
create table c (id int primary key, a int, b varchar(1) collate utf8mb4_unicode_ci,
  foreign key (a, b) references p (a, b) on update cascade) charset utf8mb4;
insert into p values (1, 'ss');
insert into c values (1, 1, 'ß');
update p set a = 2;
select a, hex(b) from c;
update p set b = 'SS';
select a, hex(b) from c;
drop table c, p;

# Nor does it make a row of history.
create table p (a int, b int, primary key (a, b));
create table c (id int primary key, a int without system versioning, b int,
  foreign key (a, b) references p (a, b) on update cascade) with system versioning;
insert into p values (1, 1);
insert into c (id, a, b) values (1, 1, 1);
update p set a = 2;
select id, a, b from c for system_time all;
update p set b = 2;
select id, a, b from c for system_time all order by b;
drop table c, p;

# Of several columns NULL in one, and SET NULL, which sets all.
create table p (a int, b int, key (a, b));
create table c (a int, b int, foreign key (a, b) references p (a, b) on update cascade);
create table s (a int, b int, foreign key (a, b) references p (a, b) on update set null);
insert into p values (1, 1), (2, 2);
insert into c values (1, 1), (2, 2);
insert into s values (1, 1), (2, 2);
update p set b = null where a = 1;
update p set b = 3 where a = 2;
select * from c order by a;
select * from s;
drop table c, s, p;

# Numbers by their bytes, whatever they are called.
create table p (e enum('a', 'b', 'c'), key (e));
create table c (e enum('b', 'a', 'c'), key (e), foreign key (e) references p (e) on update cascade);
insert into p values ('a');
insert into c values ('b');
update p set e = 'b';
select e, e + 0 from c;
delete from p;
drop table c, p;
create table p (e enum('a', 'b', 'c'), key (e));
create table c (e enum('x', 'y'), key (e), foreign key (e) references p (e) on update cascade);
insert into p values ('a');
insert into c values ('x');
update p set e = 'b';
select e, e + 0 from c;
drop table c, p;
create table p (e set('a', 'b', 'c'), key (e));
create table c (e set('b', 'a', 'c'), key (e), foreign key (e) references p (e) on update cascade);
insert into p values ('a');
insert into c values ('b');
update p set e = 'b,c';
select e, e + 0 from c;
drop table c, p;
create table p (x double, key (x));
create table c (x double(10, 2), key (x), foreign key (x) references p (x) on update cascade);
insert into p values (1.5);
insert into c values (1.5);
update p set x = 1.555;
select p.x = c.x from p, c;
delete from p;
drop table c, p;
create table p (x decimal(5, 2), key (x));
create table c (x decimal(5, 2) unsigned, key (x), foreign key (x) references p (x) on update cascade);
insert into p values (1.5);
insert into c values (1.5);
update p set x = 2.75;
select x from c;
drop table c, p;
create table p (x binary(4), d date, t datetime(3), y year, b bit(9), key (x), key (d), key (t), key (y), key (b));
create table c (x binary(4), d date, t datetime(3), y year, b bit(9), foreign key (x) references p (x) on update cascade,
  foreign key (d) references p (d) on update cascade, foreign key (t) references p (t) on update cascade,
  foreign key (y) references p (y) on update cascade, foreign key (b) references p (b) on update cascade);
insert into p values ('abcd', '2024-01-01', '2024-01-01 10:00:00.123', 2024, b'101');
insert into c select * from p;
update p set x = 'ab', d = '2025-02-03', t = '1999-12-31 23:59:59.999', y = 1999, b = b'111111111';
select hex(x), d, t, y, hex(b) from c;
drop table c, p;

# A virtual column beneath an indexed one changes.
create table t (a int primary key, v1 int as (a + 1) virtual, v2 int as (a * 2) virtual, key v2 (v2));
insert into t (a) values (1), (2);
alter table t modify v1 int as (a + 100) virtual;
select a, v2 from t force index (v2) where v2 >= 2 order by v2;
delete from t where a = 1;
select a, v2 from t force index (v2) where v2 < 1000 order by v2;
check table t;
drop table t;
