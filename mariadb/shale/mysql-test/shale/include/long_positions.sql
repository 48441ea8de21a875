# Primary keys of which a position has only the beginning: texts of letters with many weights.
set names utf8mb4;
create table t (id varchar(100) collate utf8mb4_unicode_ci primary key, a int, b int, x text, key a (a), key b (b))
  charset utf8mb4;
insert into t select concat(repeat(_utf8mb4 x'EFB7BA', 40 + seq % 50), seq), seq % 7, seq % 5, concat('text ', seq)
  from seq_1_to_200;
insert into t select concat('short ', seq), seq % 7, seq % 5, concat('text ', seq) from seq_1_to_50;
select x from t order by x limit 5;
select count(*), sum(length(x)) from (select * from t order by a, x limit 230) s;
select x from t where a = 3 and b = 2 order by x limit 5;
select count(*) from t where a = 3 and b = 2;
select count(*) from t where a = 3 or b = 2;
select x from t where a = 3 or b = 2 order by x limit 5;
select count(distinct x) from t where a in (select b from t s where s.b = t.a);
update t join (select 3 n union select 4) s on t.a = s.n set t.b = 100 + t.b, t.x = 'changed';
select b, count(*) from t where x = 'changed' group by b;
update t set id = concat(id, 'y'), a = a + 10 where b > 100 order by x, id limit 20;
select count(*) from t where a > 10;
delete t from t join (select 11 n union select 13) s on t.a = s.n;
select count(*) from t;
replace into t select id, 50, 50, 'replaced' from t where b = 3;
select count(*) from t where x = 'replaced';
insert into t select id, 60, 60, 'again' from t where b = 4 on duplicate key update x = 'twice';
select count(*) from t where x = 'twice';
create table u (id varchar(100) collate utf8mb4_unicode_ci primary key, y text) charset utf8mb4;
insert into u select id, x from t where b = 1;
select count(*), count(distinct u.y) from t, u where t.id = u.id and t.b = 1;
select count(*) from t where id in (select id from u);
check table t;

# As long as tables are locked, in partitions, by a filter of rows, with accents and case.
lock tables t write, u write;
select count(*), sum(length(x)) from (select * from t order by x, a limit 200) s;
update t join u on t.id = u.id set t.x = concat(t.x, '!'), u.y = 'both';
select count(*) from t where x like '%!';
delete t, u from t join u on t.id = u.id where t.a = 2;
select count(*) from t;
unlock tables;
create table q (id varchar(100) collate utf8mb4_unicode_ci primary key, a int, x text, key a (a)) charset utf8mb4
  partition by key (id) partitions 3;
insert into q select id, a, x from t;
select x, length(id) from q order by a, x, id limit 3;
update q set id = concat(id, 'z') where a > 2 order by x, id;
select count(*), count(distinct id) from q where a > 2;
delete q from q join t on q.a = t.a where t.b = 4;
select count(*) from q;
drop table q;
create table q (id varchar(100) collate uca1400_as_cs primary key, a int, b int, x text, key a (a), key b (b)) charset utf8mb4;
insert into q select id, a, b, x from t;
select x from q where a between 1 and 3 and b = 2 order by x, id limit 5;
update q set id = concat(id, 'z') where a > 2 order by x, id;
select count(*), count(distinct id) from q;
check table q;
drop table t, u, q;
