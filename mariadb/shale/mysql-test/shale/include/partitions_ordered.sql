# A scan in order has rows of several partitions at hand while one moves between them
create table t (k int, s date, e date, period for p (s, e), key k (k))
 partition by range (year(e)) (partition p0 values less than (2005), partition p1 values less than maxvalue);
insert into t values (1, '2000-01-01', '2010-01-01'), (2, '1999-01-01', '2003-01-01');
insert into t select 1000 + seq, '1990-01-01', '1995-01-01' from seq_1_to_2000;
delete from t for portion of p from '2002-01-01' to '2030-01-01' where k between 1 and 2;
select * from t where k <= 2 order by k;
select * from t ignore index (k) where k <= 2 order by k;
delete from t for portion of p from '1992-01-01' to '1993-01-01' where k > 10 order by k limit 3;
select * from t ignore index (k) where k < 1005 order by k, s;
check table t extended;
create trigger b before insert on t for each row set @n = ifnull(@n, 0) + 1;
insert into t values (5, '2000-01-01', '2010-01-01'), (6, '1999-01-01', '2003-01-01');
delete from t for portion of p from '2002-01-01' to '2030-01-01' where k between 5 and 6;
select * from t ignore index (k) where k between 5 and 6 order by k, s;
check table t extended;
drop table t;
# Reads that lock are no look-ups of the server's for rows that overlap
create table t (a int not null, s date not null, e date not null, period for p (s, e),
  unique u (a, p without overlaps)) partition by hash (a) partitions 4;
insert into t select seq % 5, '2000-01-01' + interval seq day, '2000-01-01' + interval seq + 1 day from seq_1_to_2000;
select min(a) from t where a > 1 for update;
select distinct a from t for update;
create table x (a int);
insert into x select min(a) from t where a > 2 for update;
insert into t values (1, '2000-01-02', '2000-01-03');
select * from x;
drop table x, t;
