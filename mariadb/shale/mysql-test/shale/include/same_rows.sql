# An UPDATE of the primary key reads all rows first, and warns only as a search does.
create table t (id int primary key, v varchar(10));
insert into t values (1, '1a'), (2, '2b'), (3, '9'), (4, null);
update t set id = id + 10 where v < 5;
update t set id = id + 1000, v = concat(v, 'x') where id < 100 order by id;
select * from t order by id;
# A row that stays as it is was not changed: REPLACE, ON DUPLICATE KEY UPDATE, UPDATE.
create table r (id int primary key, a int, b varchar(10), c blob, d char(5), e bit(3), f double, u int) partition by hash(id) partitions 3;
create table s (id int primary key, a int, b varchar(10), c blob, d char(5), e bit(3), f double, u int unique key, w int as (a + 1) virtual, key (w), key (b, a));
create table h (a int, b varchar(10), key (a));
insert into r values (1, 1, 'one', 'blob', 'd', b'101', -0.0, 1), (2, null, null, null, null, null, null, null);
insert into s (id, a, b, c, d, e, f, u) select * from r;
replace into r values (1, 1, 'one', 'blob', 'd', b'101', -0.0, 1);
replace into r values (2, null, null, null, null, null, null, null);
replace into r values (1, 1, 'One', 'blob', 'd', b'101', -0.0, 1), (1, 1, 'One', 'blob', 'd', b'101', -0.0, 1);
replace into r values (1, 1, 'One ', 'blob', 'd', b'101', -0.0, 1);
replace into r values (1, 1, 'One ', 'blob', 'd', b'101', 0.0, 1);
replace into s (id, a, b, c, d, e, f, u) values (1, 1, 'one', 'blob', 'd', b'101', -0.0, 1);
replace into s (id, a, b, c, d, e, f, u) values (2, null, null, null, null, null, null, null);
replace into s (id, a, b, c, d, e, f, u) values (1, 1, 'one', 'blob', 'e', b'101', -0.0, 1);
replace into s (id, a, b, c, d, e, f, u) values (9, 1, 'one', 'blob', 'e', b'101', -0.0, 1);
insert into s (id, a) values (2, 5) on duplicate key update a = null;
insert into s (id, a) values (2, 5) on duplicate key update a = null, b = null, c = null, e = null, f = null, u = null;
insert into s (id, a) values (2, 5) on duplicate key update a = 5;
insert into s (id, a) values (2, 5) on duplicate key update a = 5;
insert into r (id, a) values (2, 5) on duplicate key update a = values(a);
insert into r (id, a) values (2, 5) on duplicate key update a = values(a);
update s set a = a, b = 'x' where id = 2;
update s set a = a, b = 'x' where id = 2;
update s join r using (id) set s.b = 'y', r.b = 'y';
update s join r using (id) set s.b = 'y', r.b = 'y';
insert into h values (1, 'a'), (1, 'a'), (2, null);
update h set b = 'a' where a = 1;
update h set b = null;
update h set b = null;
select id, a, b, c, d, e + 0, f, u from r order by id;
select id, a, b, c, d, e + 0, f, u, w from s order by id;
# A trigger may change the row after all.
create trigger b before update on s for each row set new.u = 50 + old.id;
update s set a = a where id = 2;
insert into s (id) values (2) on duplicate key update a = a;
select id, a, u from s order by id;
# What changes by itself when anything else does.
create table n (id int primary key, a int, at datetime default '2000-01-01' on update current_timestamp);
insert into n (id, a) values (1, 1), (2, null);
update n set a = 1 where id = 1;
insert into n (id) values (2) on duplicate key update a = null;
select * from n;
update n set a = 2 where id = 1;
select id, a, at > '2020-01-01' from n order by id;
# A row that goes to another partition and meets a duplicate there.
create table p (id int, u int, p int, primary key (id, p), unique second (u, p)) partition by range (p) (partition a values less than (10), partition b values less than (20));
insert into p values (1, 1, 1), (2, 1, 11), (1, 3, 12), (5, 5, 5);
insert into p values (9, 1, 1);
update p set p = 12 where id = 1 and p = 1;
update p set p = 11 where id = 1 and p = 1;
update ignore p set p = 11 where id = 1 and p = 1;
update p set p = p + 10, id = 2, u = 9 where id = 1 and p = 1;
update p, (select 1 x) o set p = 12 where id = 1 and p = 1;
insert into p values (1, 1, 1) on duplicate key update p = 11;
insert into p values (5, 5, 5) on duplicate key update p = 15;
replace into p values (7, 1, 1);
select * from p order by id, u, p;
check table s, r, p, h extended;

-- AUTO_INCREMENT is set to what is too small: the next number is above those that are there then.
create table numbered (id int primary key auto_increment, v int);
insert into numbered (v) values (1), (2), (3);
alter table numbered auto_increment=1;
delete from numbered;
insert into numbered (v) values (4);
select * from numbered;
alter table numbered auto_increment=2;
flush tables;
truncate table numbered;
alter table numbered auto_increment=7, comment='seven';
insert into numbered (v) values (5);
select * from numbered;
drop table numbered;
create table numbered (id int primary key auto_increment, v int) partition by hash (id) partitions 3;
insert into numbered (v) values (1), (2), (3), (4);
alter table numbered auto_increment=2;
delete from numbered;
flush tables;
insert into numbered (v) values (5);
select * from numbered;
drop table numbered;

-- CHECK TABLE says nothing of a computed value that does not fit its column.
create table c (a text not null, v varchar(10) as (concat(a, 'x')) virtual, key (a(10)));
insert into c (a) values (repeat('ab', 20));
check table c;
check table c extended;
drop table c;

-- A range that ends within a column of which the index has the beginning only: the record has that of
-- an earlier row when a condition on the index is asked.
create table beginnings (n int primary key, a int, x blob, key k (a, x(3)));
insert into beginnings values (1, 0, '47'), (2, 0, 'p28'), (3, 0, 'q37'), (4, 1, '31'), (5, 1, 'p14'),
  (6, 2, 'pq38'), (7, 2, 'q45'), (8, 3, '47'), (9, 3, 'p34'), (10, 3, 'q99'), (11, null, 'q19');
select n from beginnings force index (k) where x <= 'q2' and a between 0 and 3 order by n;
select n from beginnings force index (k) where x <= 'q2' and a between 0 and 3 order by n for update;
begin;
update beginnings force index (k) set n = n + 100 where x <= 'q2' and a between 0 and 3;
select * from beginnings;
rollback;
delete from beginnings where x <= 'q2' and a between 0 and 3;
select * from beginnings;
drop table beginnings;
create table beginnings (c varchar(20), x blob not null, key k (x(8) desc));
insert into beginnings values ('a', 'abc'), ('b', x'00ff00'), ('c', x'ff'), ('d', x'00'), ('e', x'00'), ('f', x'80');
create table target (id int primary key auto_increment, c varchar(20));
insert into target (c) select c from beginnings where c is not null and x in (x'ff', repeat('b', 9000));
select * from target;
drop table target, beginnings;
