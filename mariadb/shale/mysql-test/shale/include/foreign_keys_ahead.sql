-- INSERT of many rows: values that are looked at before their row is written. `flush tables` makes
-- that be done anew.
create table p (a int primary key, b varchar(20) character set utf8mb3, d date, n decimal(5,2), e enum('x', 'y', 'z'),
  unique key (b), unique key (d), unique key (n), unique key (e));
insert into p values (1, 'one', '2020-01-01', 1.5, 'x'), (2, 'two', '2020-01-02', 2.5, 'y'), (3, 'three', '2020-01-03', 3.5, 'z'),
  (-4, 'vier', '2020-01-04', -4.5, null), (127, null, null, null, null);
create table q (a tinyint primary key);
insert into q select a from p;
create table c (id int primary key auto_increment, a tinyint default 2, t text, b varchar(20) character set latin1, d date not null default '2020-01-01',
  n decimal(5,2), e enum('x', 'y', 'z'), v int as (a + 1), hidden int invisible default 7, f float,
  foreign key (a) references q (a), foreign key (d) references p (d), foreign key (n) references p (n), foreign key (e) references p (e));
create table c2 (id int, a int, b varchar(20) character set utf8mb3 collate utf8mb3_general_ci, key (id),
  foreign key (a) references p (a), foreign key (b) references p (b));
set sql_mode = '';
flush tables;
insert into c values (1, 1, 'a text', 'q', '2020-01-01', 1.5, 'x', default, 1.25), (2, 2, repeat('long ', 1000), 'r', '2020-01-02', 2.5, 'y', default, 2.25), (3, 3, 'text', 's', '2020-01-03', 3.5, 'z', default, null);
flush tables;
insert into c (e, n, d, a) values ('x', 1.5, '2020-01-01', 1), (2, '2.5', 20200102, '2'), ('Z', 3.50, '2020-01-03 00:00:00', 3), (null, -4.5, '20200104', -4);
flush tables;
insert into c (t, a) values ('t', 1), ('t', default), ('t', null), ('t', 1 + 1), ('t', 200);
show warnings;
flush tables;
insert into c (t, a) values ('t', 127), ('t', 5), ('t', 1);
flush tables;
insert into c (t, a) values ('t', 1), ('t', 2), ('t', 5);
flush tables;
insert ignore into c (t, a) values ('t', 1), ('t', 5), ('t', 2), ('t', 6), ('t', 'word'), ('t', 3);
flush tables;
insert into c (t, n, d, e) values ('t', 1.509, '2020-01-01x', 'nothing'), ('t', 1.509, '2020-01-01', 'x'), ('t', 2.5, '2020-02-30', 'x');
set sql_mode = default;
flush tables;
insert into c (t, a) values ('t', 1), ('t', 2), ('t', 300), ('t', 5);
insert into c (t, a) values ('t', 1), ('t', 5), ('t', 300), ('t', 5);
insert into c (t, d) values ('t', '2020-01-01'), ('t', '2020-02-30'), ('t', '2020-01-02');
flush tables;
insert into c (t, hidden, a) values ('h', 1, 1), ('h', 2, 2), ('h', 3, 3);
flush tables;
replace into c (id, a, t) values (1, 2, 'new'), (2, 3, 'new'), (3, 1, 'new');
flush tables;
insert into c (id, a) values (1, 3), (2, 2), (3, 5) on duplicate key update a = values (a);
insert into c (id, a) values (1, 3), (2, 2), (3, 1) on duplicate key update a = values (a);
flush tables;
insert into c2 values (1, 1, 'ONE'), (2, 2, 'two '), (3, -4, 'vier');
flush tables;
insert into c2 values (1, 1, _latin1'one'), (2, 2, _utf8mb4'two'), (3, 3, x'0076696572'), (4, null, null);
insert into c2 values (1, 1, _latin1'one'), (2, 2, _utf8mb4'two'), (3, 3, x'76696572'), (4, null, null);
flush tables;
insert into c2 values (1, 1, repeat('one', 1)), (2, 2, '12345678901234567890123'), (3, 3, 'vier');
create view w as select a as x, id as y from c2 where id < 100;
flush tables;
insert into w values (1, 10), (2, 20), (3, 30);
flush tables;
insert into w (y, x) values (11, 1), (21, 2), (31, 5);
prepare s from 'insert into c2 values (?, ?, ?), (?, ?, ?), (?, 1, ?)';
set @a = 1, @b = 'two', @n = null;
flush tables;
execute s using @a, @a, @b, @a, @n, @n, @a, @b;
set @a = 5;
execute s using @a, @a, @b, @a, @n, @n, @a, @b;
execute s using default, @n, default, @a, @n, @n, @a, default;
flush tables;
insert into c2 (id, a) values (@x := 1, 1), (@x := @x + 1, 2), (@x := @x + 1, 5), (@x := @x + 1, 3);
select @x;
create trigger r before insert on c2 for each row set new.a = new.a - 10;
flush tables;
insert into c2 (id, a) values (50, 11), (51, 12), (52, 13);
drop trigger r;
create procedure r (x int) insert into c2 (id, a) values (60, x), (61, 1), (62, x), (63, 2);
flush tables;
call r (3);
call r (5);
lock tables c2 write, p read;
insert into c2 (id, a) values (70, 1), (71, 2), (72, 3);
unlock tables;
select id, a, left(t, 10), length(t), b, d, n, e, v, hidden, f from c order by id;
select * from c2 order by id, a, b;
drop view w;
drop procedure r;
drop table c, c2, p, q;
