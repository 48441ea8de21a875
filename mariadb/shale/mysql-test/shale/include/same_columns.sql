# BIT: defaults, joins, keys.
create table b (id int primary key, b bit(10) default b'1010101010', c bit(3) default b'101', d bit(64), e bit(1) not null, key (b), key (c, b), unique (d));
insert into b (id, d, e) select seq, seq * 7, b'1' from seq_1_to_980;
update b set b = b'1', c = b'11' where id % 3 = 0;
update b set b = default where id = 3;
update b set c = default(c), b = null where id = 6;
select id, b + 0, c + 0, default(b) + 0, default(c) + 0, d + 0, e + 0 from b order by id limit 6;
select count(*) from b join (select distinct b from b) x on b.b = x.b;
select count(*), sum(n) from b join (select b, c, count(*) n from b group by b, c) x on b.b = x.b and b.c = x.c;
select c + 0, count(*), min(b + 0) from b force index (c) where c > b'1' group by c order by c;
select id from b where d = 70;
create table c select * from b where id < 4;
alter table c add f bit(9) default b'111111111', add primary key (id), algorithm = copy;
alter table c modify b bit(20), modify e bit(5), algorithm = copy;
select id, b + 0, c + 0, d + 0, e + 0, f + 0 from c order by id;
update c set b = default, e = b'11111';
insert into c (id, e) values (9, b'1') on duplicate key update e = default;
select id, hex(b), hex(c), hex(e), hex(f) from c order by id;
# Columns of no length.
create table z (a char(0), b int not null, c binary(0), d varbinary(0), primary key (b), unique (a, b), key (a), key (c desc), key (d, a));
insert into z values ('', 1, '', ''), (null, 2, null, null), ('', 3, null, '');
select b from z force index (a_2) where a = '' order by b;
select b from z force index (c) where c is null order by b;
select a, d from z force index (d) order by d, a;
create table y (a char(0) not null, key (a));
alter table z add unique only_one (a);
check table z extended;
# What is below a NULL takes part in one form of checksum.
create table n (a int, b int, c varchar(20) default 'abc', d char(5), e blob, f decimal(10, 2) default 3, g bit(5) default b'11', h datetime, i enum('a', 'b') default 'b', j int, k varchar(300) default 'k');
insert into n values (1, null, null, null, null, null, null, null, null, null, null), (null, 1, 'x', 'y', 'z', 1, b'1', '2020-01-01', 'a', 8, repeat('k', 300)), (3, null, null, 'abc', null, null, null, null, null, 9, null);
update n set c = null, i = null, f = null, g = null where a is null;
alter table n add l int, add m char(3) default null;
set old_mode = 'COMPAT_5_1_CHECKSUM';
checksum table n extended;
set old_mode = '';
checksum table n extended;
# ROW_FORMAT is what the table was made with, for SHOW and for EXCHANGE PARTITION.
create table a1 (a int) row_format = compact;
create table a2 (a int) row_format = redundant;
create table a3 (a int) row_format = compressed;
create table a4 (a int) row_format = dynamic;
create table a5 (a int);
create table p1 (a int) row_format = compact partition by hash (a) partitions 2;
create table p2 (a int) partition by hash (a) partitions 2;
alter table p1 exchange partition p0 with table a1;
alter table p1 exchange partition p0 with table a2;
alter table p1 exchange partition p0 with table a4;
alter table p1 exchange partition p0 with table a5;
alter table p2 exchange partition p0 with table a1;
alter table p2 exchange partition p0 with table a3;
alter table p2 exchange partition p0 with table a4;
alter table p2 exchange partition p0 with table a5;
alter table a5 row_format = redundant;
select table_name, row_format from information_schema.tables where table_schema = database() and table_name regexp '^[ap]' order by 1;
# An index is of the type that tools know.
create table i (id int primary key, a int, b varchar(100), unique (a), key (a, id) using hash, key (b(10)) using btree, key (a desc, b), unique (b));
show index from i;
show create table i;
select index_name, index_type from information_schema.statistics where table_schema = database() and table_name = 'i' order by 1, seq_in_index;
