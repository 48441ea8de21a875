-- Parents that a transaction has found, and then removes, changes or undoes.
create table g (a int primary key);
create table p (a int primary key, b int, g int, key (b), foreign key (g) references g (a) on delete cascade);
create table c (id int primary key auto_increment, x int, y int, u int, unique key (u),
  foreign key (x) references p (a), foreign key (y) references p (b));
insert into g values (1), (2);
insert into p values (1, 10, 1), (2, 20, null), (3, 30, 2), (4, 30, null), (5, 50, null), (6, 60, null);

-- removed, and back
begin;
insert into c (x, y) values (1, 10), (1, 10), (2, 20);
delete from c;
delete from p where a = 2;
insert into c (x) values (1);
insert into c (x) values (2);
insert into c (y) values (20);
insert into p values (2, 20, null);
insert into c (x, y) values (2, 20), (2, 20);
rollback;

-- changed, by primary key and by the other index
begin;
insert into c (x) values (1);
delete from c;
update p set a = 11 where a = 1;
insert into c (x) values (1);
insert into c (x) values (11), (11);
rollback;
begin;
insert into c (y) values (10);
delete from c;
update p set b = 11 where b = 10;
insert into c (y) values (10);
insert into c (y) values (11);
update p set b = 11 where b = 20;
insert into c (y) values (20);
rollback;

-- one of two equal ones
begin;
insert into c (y) values (30);
delete from c;
delete from p where a = 3;
insert into c (y) values (30);
delete from c;
delete from p where a = 4;
insert into c (y) values (30);
rollback;

-- through another table's rows
begin;
insert into c (x, y) values (1, 10), (3, 30);
delete from c;
delete from g where a = 1;
insert into c (x, y) values (3, 30);
insert into c (x) values (1);
insert into c (y) values (10);
rollback;

-- undone
begin;
savepoint s;
insert into p values (7, 70, null);
insert into c (x, y) values (7, 70);
rollback to s;
insert into c (x) values (7);
rollback;
begin;
insert into c (x) values (1);
savepoint s;
insert into p values (7, 70, null);
insert into c (x, y) values (7, 70);
insert into c (x, y) values (7, 70);
rollback to s;
insert into c (x) values (7);
insert into c (y) values (70);
rollback;
insert into c (x) values (7);
begin;
insert into p values (7, 70, null);
insert into c (x) values (7);
delete from c;
savepoint s;
delete from p where a = 7;
insert into c (x) values (7);
rollback to s;
insert into c (x) values (7);
rollback;

-- without checks, and with them again
begin;
insert into c (x) values (5);
delete from c;
set foreign_key_checks = 0;
delete from p where a = 5;
insert into c (x) values (5);
set foreign_key_checks = 1;
insert into c (x) values (5);
rollback;

-- by REPLACE and ON DUPLICATE KEY UPDATE
begin;
insert into c (x, y) values (6, 60);
delete from c;
replace into p values (6, 61, null);
insert into c (x) values (6);
insert into c (y) values (60);
insert into c (y) values (61);
delete from c;
insert into p values (6, 0, null) on duplicate key update a = 66;
insert into c (x) values (6);
insert into c (x) values (66);
rollback;

-- within one statement: a trigger makes and removes parents
delimiter //
create trigger t before insert on c for each row
begin
  if new.u = 1 then insert into p values (new.x, 0, null); end if;
  if new.u = 2 then delete from p where a = 2; end if;
  if new.u = 99 then signal sqlstate '45000'; end if;
end//
delimiter ;
begin;
insert into c (x, u) values (8, 1), (8, null), (99, 3);
insert into c (x) values (8);
insert into c (x, u) values (8, 1), (8, null), (8, 99);
insert into c (x) values (8);
insert ignore into c (x, u) values (8, 1), (8, null), (99, 3), (8, 4), (8, 4);
select x, u from c;
insert into c (x) values (8);
rollback;
begin;
insert into c (x, u) values (2, null), (2, null);
delete from c;
insert into c (x, u) values (1, null), (1, 2), (2, 5);
insert ignore into c (x, u) values (1, null), (1, 2), (2, 5);
select x, u from c;
rollback;
drop trigger t;

-- a row that is its own parent, and is left out
create table s (id int primary key, par int, u int, unique key (u), foreign key (par) references s (id));
begin;
insert ignore into s values (1, 1, 10), (2, 2, 10), (3, 2, 11), (4, 1, 12), (5, 5, 13), (6, 5, 13), (7, 5, 14);
select * from s;
delete from s where id = 7;
delete from s where id = 5;
update s set par = null where id = 5;
delete from s where id = 5;
insert into s values (8, 5, 15);
replace into s values (1, 1, 10);
delete from s where id = 4;
replace into s values (1, 1, 10);
replace into s values (11, 1, 10);
select * from s;
rollback;
insert into s values (2, 2, 10), (3, 2, 10);
insert into s values (3, 2, 11);
drop table s;

create table s (id int primary key, n int, par int, q int, key (n), key (par), key (q),
  foreign key (par) references s (n), foreign key (q) references p (a));
begin;
insert ignore into s values (1, 5, 5, 99), (2, null, 5, null), (3, 6, 6, 1), (4, null, 6, 1), (5, null, 5, 1);
select * from s;
rollback;
drop table s;

-- keys of other forms, NULL in a part, texts, long ones
create table q (k varchar(300) collate latin1_swedish_ci primary key, n bigint unsigned, d date, unique key nd (n, d));
create table d (id int primary key, k varchar(300) collate latin1_swedish_ci, n bigint unsigned, d date,
  foreign key (k) references q (k) on delete set null, foreign key nd (n, d) references q (n, d) on update cascade);
insert into q values ('a', 1, '2020-01-01'), (repeat('x', 300), 2, '2020-01-02');
begin;
insert into d values (1, 'A', 1, null), (2, 'a', null, '2020-01-01'), (3, repeat('X', 300), 1, '2020-01-01'),
  (4, repeat('x', 300), 2, '2020-01-02'), (5, 'a', 1, '2020-01-01');
delete from q where k = repeat('x', 300);
update q set n = 3 where n = 1;
insert into d values (6, 'A', 1, '2020-01-01');
insert into d values (6, 'A', 3, '2020-01-01'), (7, 'a ', 3, '2020-01-01');
insert into d values (8, repeat('x', 300), null, null);
delete from q where n = 3;
delete from d where n = 3;
delete from q where n = 3;
insert into d values (9, 'a', null, null);
insert into d values (10, null, 3, '2020-01-01');
select id, left(k, 3), n, d from d order by id;
rollback;
drop table d, q, c, p, g;
