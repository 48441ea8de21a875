# A row that a nested action has moved out of the key is no child any more
create table tenant (id int primary key);
create table node (pk int primary key, tenant_id int, id int, parent_id int,
  unique (tenant_id, id), key (tenant_id, parent_id),
  foreign key (tenant_id) references tenant (id) on delete cascade,
  foreign key (tenant_id, parent_id) references node (tenant_id, id) on delete set null);
insert into tenant values (1);
insert into node values (1, 1, 10, null), (2, 1, 20, 10);
delete from tenant;
select * from node;
drop table node, tenant;
# Generated texts of each level, in rows of the past too
create table t (id int primary key, par int, txt text, g text as (concat(txt, txt)) stored,
  v text as (concat('v', txt)) virtual, key (par), key (v(20)),
  foreign key (par) references t (id) on delete cascade) with system versioning;
insert into t (id, par, txt) values (1, null, 'x'), (2, 1, 'aaaa'), (3, 2, repeat('b', 5000)), (4, 3, 'c');
delete from t where id = 1;
select id, left(txt, 4), left(g, 8), length(g), left(v, 5), length(v) from t for system_time all order by id;
select id from t for system_time all force index (v) where v like 'vaaa%';
check table t extended;
drop table t;
create table p (id int primary key);
create table c (id int primary key, txt text, g text as (concat(txt, txt)) stored, key (g(10)),
  foreign key (id) references p (id) on update cascade);
create table d (id int primary key, foreign key (id) references c (id) on update cascade);
insert into p values (1), (2);
insert into c (id, txt) values (1, 'one'), (2, repeat('two', 1000));
insert into d values (1), (2);
update p set id = id + 10 order by id desc;
select id, left(g, 10), length(g) from c order by id;
select * from d;
check table c extended;
drop table d, c, p;
# Columns that are computed of virtual ones
create table p (id int primary key);
create table c (id int primary key, pid int, a int, v int as (a + 1) virtual, g int as (v * 2) stored,
  t text as (concat('t', a)) virtual, u text as (concat(t, t)) stored,
  c1 int as (a + 5) virtual, c2 int as (c1 + 5) virtual, c3 int as (c2 + 5) virtual, key (c3), key (pid),
  foreign key (pid) references p (id) on update cascade on delete set null) with system versioning;
insert into p values (1), (2), (3);
insert into c (id, pid, a) values (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, 40);
update p set id = id + 10 order by id desc;
delete from p where id = 11;
select id, pid, a, v, g, t, u, c3 from c order by id;
select id, pid, a, g, u, c3 from c for system_time all order by id, pid;
drop table c, p;
# Virtual columns that nobody stores are not computed, and do not fail
create table p (id int primary key);
create table c (id int primary key, pid int, d int, v int as (10 div d) virtual, w tinyint as (d + 1000) virtual,
  foreign key (pid) references p (id) on update cascade on delete cascade);
insert into p values (1);
set sql_mode = '';
insert into c (id, pid, d) values (1, 1, 0);
set sql_mode = default;
update p set id = 2;
select id, pid, d from c;
delete from p;
select count(*) from c;
drop table c, p;
create table p (id int primary key);
create table c (id int primary key, pid int, d int, v int as (10 div d) virtual, key (v),
  foreign key (pid) references p (id) on update cascade);
insert into p values (1);
set sql_mode = '';
insert into c (id, pid, d) values (1, 1, 0);
set sql_mode = default;
update p set id = 2;
select id, pid, d from c;
drop table c, p;
# Without its index a child needs no parent for NULL
create table p (a int primary key);
create table c (id int primary key, x int, foreign key (x) references p (a));
set foreign_key_checks = 0;
alter table c drop key x;
set foreign_key_checks = 1;
insert into c values (1, null);
insert into c values (2, 1);
select * from c;
set foreign_key_checks = 0;
drop table c, p;
set foreign_key_checks = 1;
# Each second row is undone alone
create table t (id bigint auto_increment primary key, email varchar(50), n int, unique (email));
insert into t (email, n) select concat('u', seq), 0 from seq_1_to_2000;
insert into t (email, n) select concat('u', seq), 1 from seq_1_to_2000 on duplicate key update n = n + 1;
select count(*), sum(n), min(id) from t;
insert ignore into t (email, n) select concat('u', seq * 1000), 5 from seq_1_to_10;
select count(*), sum(n) from t;
check table t extended;
drop table t;
