-- Foreign keys: what each statement answers. Run by foreign_keys.inc.

-- 1. Forms of a constraint, and their names

create table p (a int primary key, b int, c int, d varchar(10), key bc (b, c), unique key d (d));
create table c1 (x int, foreign key (x) references p (a));
show create table c1\G
create table c2 (x int references p (a));
show create table c2\G
create table c3 (x int, foreign key fx (x) references p (a), y int, constraint foreign key (y) references p (a));
show create table c3\G
create table c4 (x int, constraint named foreign key (x) references p (a) on delete cascade on update set null);
show create table c4\G
create table c5 (x int, constraint named foreign key (x) references p (a));
create table c5 (x int, constraint Named foreign key (x) references p (a));
create table c5 (x int, constraint one foreign key (x) references p (a), constraint one foreign key (x) references p (b));
create table c5 (x int, constraint one foreign key (x) references p (a), constraint ONE foreign key (x) references p (b));
create table c5 (x int, constraint c1_ibfk_1 foreign key (x) references p (a));
create table c5 (x int, constraint c5_ibfk_1 foreign key (x) references p (a), foreign key (x) references p (b));
create table c5 (x int, constraint c5_ibfk_7 foreign key (x) references p (a), foreign key (x) references p (b));
show create table c5\G
alter table c5 add foreign key (x) references p (a);
show create table c5\G
alter table c5 drop foreign key c5_ibfk_8;
alter table c5 add foreign key (x) references p (a);
show create table c5\G
create table c6 (x int, constraint `` foreign key (x) references p (a));
create table c6 (x int, constraint `a/b` foreign key (x) references p (a));
show create table c6\G
create table c7 (x int, constraint `sixty_four_sixty_four_sixty_four_sixty_four_sixty_four_sixty_f64` foreign key (x) references p (a));
show create table c7\G
create table `sixty_four_sixty_four_sixty_four_sixty_four_sixty_four_sixty_f64` (x int, foreign key (x) references p (a));
create table `c-ö` (`x ü` int, constraint `ö-name` foreign key (`x ü`) references p (a));
show create table `c-ö`\G
create table `c-ö2` (x int, foreign key (x) references p (a));
show create table `c-ö2`\G
drop table c2, c3, c4, c5, c6, c7, `c-ö`, `c-ö2`;
create table a1 (x int, foreign key (x) references p (a) on delete restrict on update restrict);
create table a2 (x int, foreign key (x) references p (a) on delete no action on update no action);
create table a3 (x int, foreign key (x) references p (a) on delete cascade on update cascade);
create table a4 (x int, foreign key (x) references p (a) on delete set null on update set null);
create table a5 (x int default 1, foreign key (x) references p (a) on delete set default on update set default);
create table a6 (x int default 1, foreign key (x) references p (a) on delete cascade on update set default);
create table a7 (x int, foreign key (x) references p (a) match full, y int, foreign key (y) references p (a) match partial, z int, foreign key (z) references p (a) match simple);
show create table a1\G
show create table a2\G
show create table a3\G
show create table a4\G
show create table a5\G
show create table a6\G
show create table a7\G
create table a8 (x int not null, foreign key (x) references p (a) on delete set null);
create table a8 (x int not null, foreign key (x) references p (a) on update set null);
create table a8 (x int not null, y int, foreign key (x, y) references p (b, c) on update cascade);
set sql_mode='';
create table a8 (x int not null, y int, foreign key (x, y) references p (b, c) on update cascade);
drop table if exists a8;
set sql_mode=default;

-- 2. information_schema

create database fk2;
create table fk2.far (x int, y int, foreign key (x) references fk.p (a), constraint two foreign key (x, y) references fk.p (b, c) on delete cascade);
show create table fk2.far\G
create table fk2.near (x int, foreign key (x) references p (a));
select * from information_schema.referential_constraints where constraint_schema like 'fk%' order by 2, 3;
select * from information_schema.key_column_usage where table_schema like 'fk%' and referenced_table_name is not null order by 2, 3, 8;
select * from information_schema.table_constraints where table_schema like 'fk%' order by 2, 3, 5;
drop table a1, a2, a3, a4, a7, c1, fk2.far;
drop table if exists a5, a6, fk2.near;

-- 3. Indexes of both sides

create table i1 (x int, y int, key (x, y), foreign key (x) references p (a));
show create table i1\G
create table i2 (x int, y int, key (y, x), foreign key (x) references p (a));
show create table i2\G
create table i3 (x int, y int, unique key u (x), constraint k foreign key (x) references p (a));
show create table i3\G
create table i4 (x int, y int, foreign key (y, x) references p (b, c));
show create table i4\G
create table i5 (x int, y int, key (x, y), foreign key (y, x) references p (c, b));
create table i6 (x int, foreign key (x) references p (c));
show warnings;
create table i6 (x int, y int, foreign key (x, y) references p (c, b));
create table i6 (x int, y int, foreign key (x) references p (b));
show create table i6\G
create table i7 (x varchar(10), key (x(5)), foreign key (x) references p (d));
show create table i7\G
create table i8 (x int, key (x desc), foreign key (x) references p (a));
show create table i8\G
create table pdesc (a int, b varchar(10), c text, key (a desc), key (b(5)), key (c(5)));
create table i9 (x int, foreign key (x) references pdesc (a));
show create table i9\G
create table i10 (x varchar(10), foreign key (x) references pdesc (b));
create table i10 (x text, key (x(5)), foreign key (x) references pdesc (c));
create table i10 (x text, foreign key (x) references pdesc (c));
create table i11 (a int, b int, key (b), foreign key (b) references i11 (a));
create table i11 (a int, b int, key (b), foreign key (b) references i11 (b));
show create table i11\G
create table i12 (id int primary key, x int, foreign key (x) references p (a), foreign key (x) references p (a), constraint third foreign key (x) references p (a));
show create table i12\G
create table ihash (a int, b text, unique (b), key (a) using hash);
create table i13 (b text, foreign key (b) references ihash (b));
create table i13 (x int, key k (x) ignored, foreign key (x) references p (a));
show create table i13\G
alter table i1 drop key x;
alter table i1 add key z (x), drop key x;
show create table i1\G
alter table p drop primary key;
alter table p drop key bc;
alter table p add unique key (b, c), drop key bc;
show create table p\G
alter table i4 drop key y;
set foreign_key_checks=0;
alter table i4 drop key y;
set foreign_key_checks=1;
insert into i4 values (1, 1);
drop table i4;
drop table if exists i5, i7, i8, i9, i10, i11, i12, i13, ihash;
drop table if exists i1, i2, i3, i6, pdesc;

-- 4. What is refused at the creation

create table r1 (x int, foreign key (x) references nowhere (a));
show warnings;
create table r1 (x int, foreign key (x) references p (nothing));
create table r1 (x int, foreign key (nothing) references p (a));
create table r1 (x int, foreign key (x) references p (a, b));
create table r1 (x int, foreign key (x) references p);
create table r1 (x int, y int, foreign key (x, x) references p (b, c));
create table r1 (x int unsigned, foreign key (x) references p (a));
create table r1 (x bigint, foreign key (x) references p (a));
create table r1 (x varchar(300), foreign key (x) references p (d));
show create table r1\G
create table r2 (x char(10), foreign key (x) references p (d));
create table r3 (x varchar(10) character set latin1, foreign key (x) references p (d));
drop table r3;
create table r3 (x varchar(10) character set utf8mb4, foreign key (x) references p (d));
create table r3 (x varchar(10) collate latin1_bin, foreign key (x) references p (d));
create table pt (e enum('a', 'b'), key (e), dt datetime, key (dt), ts timestamp(3) null, key (ts), dc decimal(10, 2), key (dc), f float, key (f), bi bit(5), key (bi), vb varbinary(10), key (vb), y year, key (y), s set('x'), key (s), u uuid, key (u), g point not null);
alter table pt add spatial key (g);
create table t1 (e enum('c', 'd', 'e'), foreign key (e) references pt (e));
create table t2 (e datetime(6), foreign key (e) references pt (dt));
create table t3 (e timestamp(6) null, foreign key (e) references pt (ts));
create table t4 (e decimal(5, 0), foreign key (e) references pt (dc));
create table t5 (e double, foreign key (e) references pt (f));
create table t6 (e bit(8), foreign key (e) references pt (bi));
create table t7 (e binary(10), foreign key (e) references pt (vb));
create table t8 (e tinyint unsigned, foreign key (e) references pt (y));
create table t9 (e enum('a'), foreign key (e) references pt (s));
create table t10 (e inet6, foreign key (e) references pt (u));
create table t11 (e point not null, foreign key (e) references pt (g));
create table t12 (e bigint, foreign key (e) references pt (dt));
drop table if exists t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12;
drop table pt;
create table other_engine (a int primary key) engine=myisam;
create table r4 (x int, foreign key (x) references other_engine (a));
create table r4 (x int, foreign key (x) references p (a)) engine=myisam;
show create table r4\G
create temporary table r5 (x int, foreign key (x) references p (a));
create temporary table tp (a int primary key);
create table r6 (x int, foreign key (x) references tp (a));
create temporary table r7 (a int primary key, x int, foreign key (x) references r7 (a));
drop temporary table tp;
create table part (a int primary key) partition by hash (a) partitions 2;
create table r8 (x int, foreign key (x) references part (a));
create table r8 (x int, foreign key (x) references p (a)) partition by hash (x) partitions 2;
create view v as select a from p;
create table r9 (x int, foreign key (x) references v (a));
create table r9 (x int) select a as x from p;
drop table r9;
create table r9 (x int, foreign key (x) references p (a)) select 5 as x;
show create table r9\G
create table r10 (x int, y int as (x + 1) virtual, foreign key (y) references p (a));
show create table r10\G
create table r11 (x int, y int as (x + 1) stored, foreign key (y) references p (a));
create table r12 (x int, y int as (x + 1) stored, foreign key (y) references p (a) on update cascade);
create table r12 (x int, y int as (x + 1) stored, foreign key (y) references p (a) on delete set null);
create table r12 (x int, y int as (x + 1) virtual, foreign key (y) references p (a) on delete cascade);
create table r13 (x int, y int as (x + 1) stored, foreign key (x) references p (a) on update cascade);
create table r13 (x int, y int as (x + 1) stored, foreign key (x) references p (a) on delete set null);
create table r14 (x int, y int as (x + 1) virtual, foreign key (x) references p (a) on update cascade);
create table r19 (x int, y int as (x + 1) virtual, key (y), foreign key (x) references p (a) on update cascade);
create table pv (a int, v int as (a) virtual, key (v), s int as (a) stored, key (s));
create table r15 (x int, foreign key (x) references pv (v));
create table r16 (x int, foreign key (x) references pv (s));
create table r17 (x int, check (x > 0), foreign key (x) references p (a) on update cascade);
create table r17 (x int, check (x > 0), foreign key (x) references p (a));
create table r18 like r17;
show create table r18\G
drop table if exists r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, r19, pv, part, other_engine;
drop view v;
drop table if exists p;

-- 5. The checks of rows

create table p (a int primary key, b int, name varchar(20), unique key (b));
create table c (id int primary key, x int, y int, constraint fx foreign key (x) references p (a), constraint fy foreign key (y) references p (b));
insert into p values (1, 10, 'one'), (2, 20, 'two'), (3, null, 'three');
insert into c values (1, 1, 10), (2, null, 20), (3, 3, null);
insert into c values (4, 9, 10);
show warnings;
insert into c values (4, 1, 10), (5, 1, 99);
insert into c values (4, 9, 99);
insert into c values (1, 9, 99);
insert into c values (4, 1, 10), (1, 9, 99);
update c set x = 7 where id = 1;
update c set x = 7, y = 7;
update c set x = x;
update c set id = 9 where id = 3;
delete from p where a = 1;
delete from p where a = 2;
show warnings;
delete from p;
update p set a = 5 where a = 1;
update p set b = 11 where a = 1;
update p set name = 'eins' where a = 1;
update p set a = a, b = b;
update p set b = 30 where a = 3;
select * from p;
select * from c;
create table pair (a int, b int, key (a, b));
create table cpair (x int, y int, foreign key (x, y) references pair (a, b));
insert into pair values (1, 1), (1, null), (2, 2), (2, 2);
insert into cpair values (1, 1), (null, 7), (7, null), (null, null), (2, 2);
insert into cpair values (1, 2);
delete from pair where a = 2 limit 1;
delete from pair where a = 2 limit 1;
delete from pair where a = 1 and b is null;
update pair set b = null where a = 1;
create table ptext (a varchar(10) collate latin1_swedish_ci primary key);
create table ctext (x varchar(10) collate latin1_swedish_ci, foreign key (x) references ptext (a) on update cascade);
insert into ptext values ('abc');
insert into ctext values ('ABC'), ('abc  ');
insert into ctext values ('abd');
update ptext set a = 'ABC';
select concat(x, '.') from ctext;
update ptext set a = 'abc ';
select concat(x, '.') from ctext;
update ptext set a = 'x';
select concat(x, '.') from ctext;
create table pcase (a varchar(10) collate latin1_swedish_ci primary key, b varchar(10), key (b));
create table ccase (x varchar(10) collate latin1_swedish_ci, foreign key (x) references pcase (a), y varchar(10), foreign key (y) references pcase (b) on update set null);
insert into pcase values ('abc', 'abc'), ('def', 'def');
insert into ccase values ('abc', 'def');
update pcase set a = 'ABC' where a = 'abc';
update pcase set b = 'DEF' where b = 'def';
select * from ccase;
drop table ccase, pcase;
create table pnopad (a char(10) collate latin1_swedish_nopad_ci primary key, b binary(3), key (b));
create table cnopad (x varchar(10) collate latin1_swedish_nopad_ci, foreign key (x) references pnopad (a), y varbinary(3), foreign key (y) references pnopad (b));
insert into pnopad values ('a', 'b');
insert into cnopad values ('a', null);
insert into cnopad values ('a ', null);
insert into cnopad values (null, 'b');
insert into cnopad values (null, 'b\0\0');
drop table cnopad, pnopad;
create table pdigits (a decimal(10, 2) primary key, t datetime, key (t));
create table cdigits (x decimal(5, 0), foreign key (x) references pdigits (a), t datetime(3), foreign key (t) references pdigits (t));
insert into pdigits values (7, '2020-01-01');
insert into cdigits values (7, null);
insert into cdigits values (null, '2020-01-01');
drop table cdigits, pdigits;
create table pdec (a decimal(10, 2) primary key, t timestamp(3) null, key (t));
create table cdec (x decimal(10, 2), foreign key (x) references pdec (a), t timestamp(3) null, foreign key (t) references pdec (t));
insert into pdec values (1.5, '2020-01-01 00:00:00.5');
insert into cdec values (1.50, '2020-01-01 00:00:00.500');
insert into cdec values (1.51, null);
create table psize (a varchar(5) primary key);
create table csize (x varchar(300), foreign key (x) references psize (a) on update cascade);
insert into psize values ('a');
insert into csize values ('a');
update psize set a = 'abcde';
create table psize2 (a varchar(300) primary key);
create table csize2 (x varchar(5), foreign key (x) references psize2 (a) on update cascade);
insert into psize2 values ('a');
insert into csize2 values ('a');
update psize2 set a = 'abcdef';
show warnings;
select * from csize2;
create table penum (e enum('a', 'b', 'c') primary key);
create table cenum (e enum('x', 'y'), foreign key (e) references penum (e) on update cascade);
insert into penum values ('a'), ('c');
insert into cenum values ('x');
insert into cenum values ('y');
select * from cenum;
drop table cpair, pair, ctext, ptext, cdec, pdec, csize, psize, csize2, psize2, cenum, penum;
drop table c;

-- 6. Actions

create table c (id int primary key, x int, y int default 2, n varchar(10) not null default '', key (n), foreign key (x) references p (a) on delete cascade on update cascade, foreign key (y) references p (a) on delete set null on update set null);
insert into c values (1, 1, 2, 'a'), (2, 2, 1, 'b'), (3, 3, 3, 'c'), (4, null, null, 'd');
update p set a = 11 where a = 1;
select * from c;
delete from p where a = 2;
select * from c;
delete from p where a = 3;
select * from c;
select row_count();
drop table c;
delete from p;
insert into p values (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three');
create table c (id int primary key, x int default 2, foreign key (x) references p (a) on delete set default);
insert into c values (1, 1), (2, 2);
delete from p where a = 1;
select * from c;
drop table if exists c;
create table c (id int primary key, x int not null, u int unique, foreign key (x) references p (a) on update cascade, foreign key (u) references p (b) on update cascade);
insert into c values (1, 1, 10), (2, 2, 20);
update p set b = 40 where a = 1;
update p set a = a + 100;
select * from c;
update p set a = a - 99 order by a;
select * from p;
select * from c;
drop table c;
delete from p;
create table mid (a int primary key, x int, foreign key (x) references p (a) on delete cascade on update cascade);
create table low (a int primary key, y int, foreign key (y) references mid (a) on delete cascade on update cascade);
create table block (z int, foreign key (z) references low (a));
insert into p values (1, 10, 'one'), (2, 20, 'two');
insert into mid values (1, 1), (2, 2);
insert into low values (1, 1), (2, 2);
insert into block values (2);
delete from p where a = 1;
delete from p where a = 2;
select (select count(*) from p), (select count(*) from mid), (select count(*) from low);
delete from p where a in (1, 2);
drop table block, low, mid;
create table ck (id int, x int, check (x < 100), foreign key (x) references p (a) on update cascade);
insert into ck values (1, 2);
update p set a = 200;
select * from ck;
drop table ck;
create table cu (id int, x int unique, foreign key (x) references p (b) on update cascade);
insert into p values (3, 30, 'three');
insert into cu values (1, 20), (2, 30);
update p set b = b + 10 order by b;
update p set b = b + 10 order by b desc;
select * from cu;
drop table cu;
create table pnn (a int, key (a));
create table cnn (x int not null, foreign key (x) references pnn (a) on update cascade);
set sql_mode='';
create table cnn (x int not null, foreign key (x) references pnn (a) on update cascade);
insert into pnn values (1), (5), (5);
insert into cnn values (1);
update pnn set a = null where a = 1;
select * from cnn;
set sql_mode=default;
create table cdup (x int, foreign key (x) references pnn (a) on delete cascade on update cascade);
insert into cdup values (5), (5);
update pnn set a = 6 where a = 5 limit 1;
select * from cdup;
delete from pnn where a = 5 limit 1;
select * from cdup;
delete from pnn where a = 6;
select * from cdup;
drop table if exists cnn, cdup, pnn;
create table ptwo (a int primary key);
create table ctwo (x int, y int, foreign key (x) references ptwo (a) on delete cascade, foreign key (y) references ptwo (a) on delete restrict);
insert into ptwo values (1), (2);
insert into ctwo values (1, 1), (2, 1);
delete from ptwo where a = 1;
delete from ptwo where a = 2;
select * from ctwo;
drop table ctwo;
create table ctwo (x int, foreign key (x) references ptwo (a) on delete cascade, constraint other foreign key (x) references ptwo (a) on delete set null);
insert into ctwo values (1);
delete from ptwo where a = 1;
select * from ctwo;
drop table ctwo, ptwo;

-- 7. To itself, in a circle, and how deep

create table tree (id int primary key, up int, foreign key (up) references tree (id) on delete cascade on update cascade);
insert into tree values (1, 1), (2, 1), (3, 2), (4, 3);
insert into tree values (6, 5), (5, null);
insert into tree values (7, 8), (8, 7);
update tree set id = 10 where id = 4;
update tree set id = 20 where id = 2;
delete from tree where id = 2;
select * from tree;
update tree set id = 100 where id = 1;
update tree set up = 3 where id = 3;
delete from tree where id = 3;
delete from tree;
drop table tree;
create table tree (id int primary key, up int, foreign key (up) references tree (id));
insert into tree values (1, null), (2, 1), (3, 2), (4, 4);
delete from tree where id = 4;
delete from tree where id in (1, 2, 3);
delete from tree order by id desc;
insert into tree values (1, null), (2, 1), (3, 2);
update tree set id = id + 1 order by id desc;
update tree set up = null;
drop table tree;
create table tree (id int primary key, up int, foreign key (up) references tree (id) on delete set null on update set null);
insert into tree values (1, null), (2, 1), (3, 2), (4, 4);
delete from tree where id in (1, 2);
update tree set id = 40 where id = 4;
select * from tree;
drop table tree;
create table one (id int primary key, x int, key (x));
create table two (id int primary key, y int, foreign key (y) references one (id) on delete cascade on update cascade);
alter table one add foreign key (x) references two (id) on delete cascade on update cascade;
insert into one values (1, null);
insert into two values (1, 1);
update one set x = 1;
update one set id = 2;
select * from one, two;
delete from one;
select count(*) from two;
drop table one;
drop table two;
drop table one, two;
set foreign_key_checks=0;
drop table one;
drop table two;
set foreign_key_checks=1;
create table deep (id int primary key, up int, foreign key (up) references deep (id) on delete cascade);
insert into deep select seq, if(seq = 1, null, seq - 1) from seq_1_to_15;
delete from deep where id = 1;
select count(*) from deep;
delete from deep;
insert into deep select seq, if(seq = 1, null, seq - 1) from seq_1_to_16;
delete from deep where id = 1;
show warnings;
select count(*) from deep;
delete from deep where id = 2;
delete from deep;
drop table deep;
create table deep (id int primary key, up int, foreign key (up) references deep (id) on delete set null on update cascade);
insert into deep select seq, if(seq = 1, null, seq - 1) from seq_1_to_20;
delete from deep where id = 1;
select count(*) from deep where up is null;
drop table deep;

-- 8. Statements that go on after an error, or find rows themselves

delete from p;
insert into p values (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three');
create table c (id int primary key, x int, foreign key (x) references p (a));
insert ignore into c values (1, 1), (2, 9), (3, 3), (1, 9);
show warnings;
select * from c;
update ignore c set x = 9 where id in (1, 3);
update ignore c set id = id + 1, x = if(id = 1, 2, 9);
select * from c;
delete ignore from p;
select * from p;
update ignore p set a = a + 10;
select * from p;
insert into p values (2, 20, 'two');
replace into p values (2, 21, 'zwei');
replace into p values (13, 31, 'new');
replace into c values (1, 9), (9, 12);
replace into c values (1, 13);
select * from c;
replace into p values (3, 33, 'drei');
select * from c;
insert into c values (1, 9) on duplicate key update x = 13;
insert into c values (1, 9) on duplicate key update x = 9;
insert into c values (1, 13) on duplicate key update x = 9;
insert into c values (8, 9) on duplicate key update x = 12;
insert into c values (8, 9) on duplicate key update x = 12, id = 7;
select * from p;
select * from c;
insert ignore into c values (1, 13) on duplicate key update x = 9;
insert into c values (1, 1), (4, 9), (1, 5);
insert into c values (4, 1), (1, 5), (5, 9);
create table order_of (a int primary key, u int, x int, unique (u), key (x), foreign key (a) references p (a), foreign key (u) references p (a), foreign key (x) references p (a));
insert into order_of values (1, 1, 1);
insert into order_of values (1, 1, 9);
insert into order_of values (9, 1, 1);
insert into order_of values (3, 1, 9);
insert into order_of values (3, 9, 9);
insert into order_of values (99, 99, 99);
create table order_dup (a int primary key, u int, x int, unique (u), key (x), foreign key (x) references p (a));
insert into order_dup values (1, 1, 1);
insert into order_dup values (2, 1, 9);
drop table order_of, order_dup;
create table order_dup (a int primary key, u int, x int, key (x), unique (u), foreign key (x) references p (a));
show create table order_dup\G
insert into order_dup values (1, 1, 1);
insert into order_dup values (2, 1, 9);
update order_dup set x = 9, a = 5;
drop table order_dup;
insert into p values (11, 50, 'x') on duplicate key update a = 60;
delete from c;
insert into c select a, a from p;
insert into c select a + 20, a + 20 from p;
delete p, c from c straight_join p on c.x = p.a;
select count(*) from p, c;
delete c, p from c join p on c.x = p.a;
update p join c on c.x = p.a set p.a = p.a + 1, c.x = c.x + 1;
delete from c;
delete from p;
drop table c;
create table c (id int primary key, x int, foreign key (x) references p (a) on delete cascade on update cascade);
insert into p values (1, 10, 'one'), (2, 20, 'two');
insert into c values (1, 1), (2, 2);
replace into p values (1, 11, 'eins');
select * from c;
insert into p values (2, 5, 'x') on duplicate key update a = 3;
select * from c;
insert into p values (2, 25, 'y');
update p left join c on c.x = p.a set p.a = p.a + 10, c.id = c.id + 10;
select * from p, c;
delete p, c from p left join c on c.x = p.a;
select count(*) from c;
insert into p values (1, 10, 'one'), (2, 20, 'two');
insert into c values (1, 1), (2, 2);
create trigger t1 before delete on c for each row set @fired = concat(ifnull(@fired, ''), 'd');
create trigger t2 after update on c for each row set @fired = concat(ifnull(@fired, ''), 'u');
update p set a = 5 where a = 1;
delete from p where a = 5;
select @fired;
drop table c;

create table c (id int, x int, foreign key (x) references p (a));
select 2, 2 union all select 3, 9 into outfile 'fk_load.txt';
load data infile 'fk_load.txt' into table c;
load data infile 'fk_load.txt' ignore into table c;
select * from c;
create trigger t1 before insert on c for each row set new.x = 2;
load data infile 'fk_load.txt' into table c;
select * from c;
create trigger t2 after insert on c for each row delete from p where a = 2;
insert into c values (4, 4);
drop table c;
prepare s from 'delete from p where a = 2';
create table c (id int, x int, foreign key (x) references p (a) on delete cascade);
insert into c values (2, 2);
execute s;
select * from c;
insert into p values (2, 20, 'two');
execute s;
drop table c;
delete from p;

-- 9. Statements and transactions undone

create table c (id int primary key, x int, foreign key (x) references p (a) on delete cascade);
create table c_stop (id int primary key, x int, foreign key (x) references p (a));
delete from p;
insert into p values (1, 10, 'one'), (2, 20, 'two');
insert into c values (1, 1), (2, 2);
insert into c_stop values (2, 2);
begin;
insert into c values (3, 1);
delete from p;
select * from c;
savepoint s;
delete from p where a = 1;
select * from c;
rollback to s;
select * from c;
commit;
select * from c;
drop table c, c_stop;

-- 10. Generated columns, long values, periods

create table c (id int primary key, x int, v int as (x * 2) virtual, key (v), t longtext, foreign key (x) references p (a) on delete set null on update cascade);
insert into c (id, x, t) values (1, 1, repeat('t', 100000)), (2, 2, 'short');
update p set a = 7 where a = 1;
select id, x, v, length(t) from c force index (v) where v = 14;
delete from p where a = 7;
select id, x, v, length(t) from c;
select count(*) from c force index (v) where v is null;
drop table c;
create table c (id int primary key, x int, foreign key (x) references p (a) on delete cascade on update cascade) with system versioning;
insert into c values (1, 2);
update p set a = 8 where a = 2;
select id, x from c for system_time all order by x;
delete from p;
select count(*) from c;
select id, x, row_end < now(6) from c for system_time all order by x;
drop table c;
create table pver (a int primary key) with system versioning;
create table cver (x int, foreign key (x) references pver (a));
insert into pver values (1);
insert into cver values (1);
delete from pver;
delete from cver;
delete from pver;
insert into cver values (1);
drop table cver, pver;
create table c (id int, x int, s date, e date, period for q (s, e), foreign key (x) references p (a));
insert into p values (1, 10, 'one');
insert into c values (1, 1, '2000-01-01', '2010-01-01');
delete from c for portion of q from '2005-01-01' to '2006-01-01';
select * from c;
drop table c;
create table c (x int, v int as (x) virtual, foreign key (v) references p (a));
insert into c (x) values (1), (null);
insert into c (x) values (9);
update c set x = 9 where x = 1;
delete from p;
drop table if exists c;

-- 11. Changes of tables

delete from p;
create table c (id int primary key, x int, constraint fx foreign key (x) references p (a));
drop table p;
show warnings;
truncate table p;
drop table p, c;
drop table c;
drop table p;
create table p (a int primary key, b int, key (b));
create table c (id int primary key, x int, constraint fx foreign key (x) references p (a) on delete cascade);
drop database fk2;
create database fk2;
create table fk2.d (x int, foreign key (x) references fk.p (a));
drop table p;
create table fk2.p2 (a int primary key);
create table c2 (x int, foreign key (x) references fk2.p2 (a));
drop database fk2;
show warnings;
drop table c2;
drop database fk2;
rename table p to p2;
show create table c\G
rename table c to c2;
show create table c2\G
alter table c2 rename to c, add z int;
rename table p2 to p;
create database fk2;
rename table p to fk2.p;
show create table c\G
rename table fk2.p to p;
rename table c to fk2.c;
show create table fk2.c\G
rename table fk2.c to c;
create table auto (x int, foreign key (x) references p (a));
rename table auto to auto2;
show create table auto2\G
alter table auto2 rename key x to y;
show create table auto2\G
drop table auto2;
alter table p drop column a;
alter table p change a aa int;
show create table c\G
alter table p change aa a int, algorithm=copy;
alter table p change aa a int;
alter table p modify a bigint;
alter table p modify a int unsigned;
alter table p modify a int comment 'same';
alter table c drop column x;
alter table c change x xx int;
show create table c\G
alter table c change xx x int not null;
alter table c change xx x int;
alter table c modify x bigint;
alter table c modify x int not null;
alter table c modify x int null;
alter table c drop foreign key nothing;
alter table c drop foreign key if exists nothing;
alter table c drop constraint fx;
show create table c\G
alter table c add constraint fx foreign key if not exists (x) references p (a);
alter table c add constraint fx foreign key if not exists (x) references p (a);
alter table c add constraint fx foreign key (x) references p (a);
alter table c drop foreign key fx, drop column x;
alter table c add x int, add constraint fx foreign key (x) references p (a), algorithm=inplace;
alter table c add x int, add constraint fx foreign key (x) references p (a);
show create table c\G
alter table c drop foreign key fx, add constraint fx foreign key (x) references p (b) on delete set null;
show create table c\G
alter table c drop foreign key fx, drop key fx, algorithm=inplace;
show create table c\G
insert into p values (1, 1), (2, 2);
insert into c (id, x) values (1, 1), (2, 9);
update c set x = 9 where id = 2;
alter table c add constraint fx foreign key (x) references p (a), algorithm=inplace;
alter table c add constraint fx foreign key (x) references p (a), algorithm=copy;
alter table c add constraint fx foreign key (x) references p (a);
show warnings;
set foreign_key_checks=0;
alter table c add constraint fx foreign key (x) references p (a), algorithm=instant;
alter table c add constraint fx foreign key (x) references p (a), algorithm=nocopy;
alter table c add constraint fy foreign key (x) references p (a), algorithm=inplace, lock=none;
set foreign_key_checks=1;
show create table c\G
update c set id = 3 where id = 2;
update c set x = 8 where id = 3;
alter table c force;
alter table c force, algorithm=copy;
alter table c engine=myisam;
alter table p engine=myisam;
alter table p partition by hash (a) partitions 2;
alter table c partition by hash (id) partitions 2;
alter table c drop foreign key fx, drop foreign key fy;
alter table c add constraint c_ibfk_9 foreign key (x) references p (b);
delete from c where x = 9;
delete from c;
alter table c add constraint c_ibfk_9 foreign key (x) references p (b);
alter table c add foreign key (x) references p (b);
show create table c\G
alter table c rename to d;
show create table d\G
rename table d to c;
alter table c drop foreign key c_ibfk_9, drop foreign key d_ibfk_10, drop foreign key c_ibfk_10;
alter table c drop foreign key c_ibfk_9, drop foreign key c_ibfk_10;
delete from p;
insert into p values (1, 1), (2, 2);
delete from c;
alter table c add constraint fx foreign key (x) references p (a) on delete cascade on update cascade;
lock tables c write;
insert into c (id, x) values (5, 2);
insert into c (id, x) values (6, 9);
update p set b = 5;
select count(*) from p;
unlock tables;
lock tables p write;
update p set a = 5 where a = 2;
delete from p where a = 5;
select count(*) from c;
unlock tables;
lock tables p read;
unlock tables;
create table ex (a int primary key, b int, key (b)) partition by hash (a) partitions 2;
alter table ex exchange partition p0 with table p;
create table ce (id int primary key, x int, foreign key (x) references p (a));
alter table ex exchange partition p0 with table ce;
drop table ex, ce;
alter table p rename key b to bb;
alter table p drop key bb;
check table c;
drop table c, p;

-- 12. Without checks

set foreign_key_checks=0;
create table c (id int primary key, x int, constraint fx foreign key (x) references p (a) on delete cascade);
show create table c\G
insert into c values (1, 1), (2, 2);
select * from information_schema.referential_constraints where constraint_schema = 'fk';
set foreign_key_checks=1;
insert into c values (3, 3);
show warnings;
insert into c values (3, null);
create table p (a bigint primary key);
show warnings;
set foreign_key_checks=0;
create table p (a bigint primary key);
show warnings;
create table p (b int primary key);
create table p (a int primary key) engine=myisam;
create table if not exists p (a int primary key);
drop table p;
create table p (a int primary key);
set foreign_key_checks=1;
insert into c values (4, 4);
insert into p values (1), (2);
delete from p where a = 1;
select * from c;
set foreign_key_checks=0;
delete from p;
select * from c;
update c set x = 77 where id = 2;
truncate table p;
drop table p;
set foreign_key_checks=1;
update c set id = 22 where id = 2;
update c set x = 1 where id = 22;
delete from c where id = 22;
alter table c add y int;
alter table c force, algorithm=copy;
create table p (a int);
create table p (a int primary key);
alter table p drop primary key;
set foreign_key_checks=0;
alter table p drop primary key;
alter table p modify a bigint;
alter table p change a z bigint;
set foreign_key_checks=1;
show create table c\G
insert into p values (1);
insert into c (id, x) values (5, 1);
delete from p;
drop table c;
drop table if exists p;
set foreign_key_checks=0;
create table child2 (x int, foreign key (x) references parent2 (a));
rename table child2 to child3;
create table other (a int primary key);
rename table other to parent2;
set foreign_key_checks=1;
insert into child3 values (1);
insert into parent2 values (1);
insert into child3 values (1);
rename table parent2 to parent3;
show create table child3\G
drop table child3, parent3;
create table c (x int, foreign key (x) references p (a));
set foreign_key_checks=0;
create table c (x int, foreign key (x) references p (nothing, nothing2));
create table c (x int not null, foreign key (x) references p (a) on delete set null);
create table c (x int, constraint twice foreign key (x) references p (a), constraint twice foreign key (x) references p (a));
create table p (a int primary key) partition by hash (a) partitions 2;
create table c (x int, foreign key (x) references p (a));
drop table if exists c, p;
create table p (a int primary key) engine=myisam;
create table c (x int, foreign key (x) references p (a));
show create table c\G
set foreign_key_checks=1;
insert into c values (1);
drop table c, p;

-- 13. And more

create table p (a int primary key, b int, key (b));
create table c (X int, foreign key (x) references p (A));
show create table c\G
create table c2 (x int, foreign key (x) references P (a));
create or replace table p (a int primary key);
create or replace table c (x int, constraint fx foreign key (x) references p (a) on delete set null);
show create table c\G
set sql_mode='ansi_quotes';
show create table c\G
set sql_mode='no_key_options,no_table_options';
show create table c\G
set sql_mode=default;
create table swap (a int primary key);
rename table p to tmp, swap to p, tmp to swap;
show create table c\G
rename table p to tmp, swap to p, tmp to swap;
drop table swap;
alter table c add foreign key (x) references nowhere (a);
alter table c add foreign key (x) references p (nothing);
set foreign_key_checks=0;
alter table c add foreign key (x) references nowhere (a), algorithm=inplace;
alter table c add foreign key (x) references p (nothing), algorithm=inplace;
alter table c add constraint fx foreign key (x) references p (a), algorithm=inplace;
alter table c add constraint fz foreign key (x) references p (a), add constraint fz foreign key (x) references p (a), algorithm=inplace;
alter table c modify x int not null, add constraint fz foreign key (x) references p (a) on delete set null, algorithm=inplace;
alter table c modify x int not null;
alter table c drop column x;
alter table c drop key fx;
show create table c\G
drop table c;
set foreign_key_checks=1;
create table c (a int primary key, x int, foreign key (x) references p (a) on delete set null);
create table g (x int, foreign key (x) references c (x) on update cascade, y int, foreign key (y) references c (x) on update set null);
insert into p values (1, 1), (2, 2);
insert into c values (1, 1), (2, 2);
insert into g values (1, null), (null, 1), (2, 2);
delete from p where a = 1;
select * from g order by x, y;
drop table g;
create table g (x int, foreign key (x) references c (x));
insert into g values (2);
delete from p where a = 2;
drop table g, c;
create table self (a int primary key, x int, foreign key (x) references self (a) on delete cascade);
insert into self values (1, null), (2, 1), (3, 3);
replace into self values (1, 3);
select * from self;
truncate table self;
insert into self values (1, 1);
drop table self;
create table c (x int, constraint f1 foreign key (x) references p (a), constraint f2 foreign key (x) references p (b));
insert into c values (2);
xa start 'x';
insert into c values (1);
delete from p where a = 1;
insert into p values (1, 1);
insert into c values (1);
xa end 'x';
xa rollback 'x';
start transaction;
insert into p values (5, 5);
insert into c values (5);
delete from c where x = 5;
delete from p where a = 5;
commit;
insert into c values (2) returning x;
update p set a = 3, b = 2 where a = 2;
update p set a = 2, b = 3 where a = 2;
update c set x = 1;
update p, c set p.a = 7 where p.a = c.x;
create view vc as select * from c with check option;
insert into vc values (9);
drop view vc;
delimiter //
create procedure one_more() begin declare continue handler for 1452 select 'no parent'; insert into c values (77); end//
delimiter ;
call one_more();
drop procedure one_more;
create trigger t1 before delete on p for each row delete from c where x = old.a;
delete from p where a = 2;
select * from c;
drop table c, p;
create table wide (a int, b int, c int, d int, e int, key (a, b, c, d, e));
create table wide_child (e int, d int, c int, b int, a int, foreign key (a, b, c, d) references wide (a, b, c, d) on update cascade on delete set null);
insert into wide values (1, 2, 3, 4, 5), (1, 2, 3, 4, 6);
insert into wide_child values (9, 4, 3, 2, 1);
update wide set e = 7 where e = 6;
update wide set d = 8 where e = 5;
select * from wide_child;
delete from wide where e = 7;
select * from wide_child;
delete from wide where e = 5;
select * from wide_child;
drop table wide_child, wide;

-- 14. Orphans, and constraints that have lost an index

create table p (a int primary key, b int, key (b));
create table c (id int primary key, x int, y int, z int, key xy (x, y), foreign key (x) references p (a));
set foreign_key_checks=0;
insert into c values (1, 9, 1, 1);
set foreign_key_checks=1;
update c set z = 2;
update c set y = 2;
update c set id = 2;
update c set x = 9;
update c set x = 9, z = 3;
update c set x = null;
insert into p values (1, 1), (2, 2);
insert into c values (3, 1, 1, 1);
set foreign_key_checks=0;
alter table c drop key xy;
set foreign_key_checks=1;
show create table c\G
insert into c values (4, 1, 1, 1);
insert into c values (4, 9, 1, 1);
update c set x = 9 where id = 3;
delete from p where a = 2;
delete from p where a = 1;
alter table c add key (x);
delete from p where a = 2;
delete from p where a = 1;
insert into c values (5, 9, 1, 1);
drop table c;
insert into p values (2, 2);
create table c (x int, foreign key (x) references p (b) on delete cascade);
insert into c values (1), (2);
set foreign_key_checks=0;
alter table p drop key b;
set foreign_key_checks=1;
delete from p where b = 1;
update p set b = 7 where b = 2;
select * from c;
insert into c values (7);
alter table p add key (b);
insert into c values (7);
drop table c, p;
-- A cascade writes no other value than the parent's: a BINARY column is not filled up.
create table p (id int primary key, b varbinary(3) not null unique);
create table c (b binary(2) not null, foreign key (b) references p (b) on update cascade);
insert into p values (1, 0x4100), (2, 0x41);
insert into c values (0x41);
update p set b = 0x12 where id = 1;
update p set b = 0x123456 where id = 1;
select hex(p.b), hex(c.b) from p, c where id = 1;
update p set b = 0x1220 where id = 1;
select hex(p.b), hex(c.b) from p, c where id = 1;
drop table c, p;
