-- tables of stop words
delimiter //
create procedure name_table(scope varchar(10), name varchar(100))
begin
  declare exit handler for sqlexception
  begin
    get diagnostics condition 1 @number = mysql_errno;
    select name, @number;
  end;
  execute immediate concat('set ', scope, ' ', lower(@@default_storage_engine), '_ft_',
    if(scope = 'global', 'server', 'user'), '_stopword_table = ', name);
end//
create procedure find(words varchar(100))
begin
  select words, group_concat(id order by id) as natural_language from t where match (a) against (words);
  select group_concat(id order by id) as boolean_mode from t where match (a) against (words in boolean mode);
end//
delimiter ;
create table words (value varchar(30)) charset=utf8mb4;
create table words_bin (value varchar(30) collate utf8mb4_bin primary key) charset=utf8mb4;
create table words_long (value varchar(500) not null, more int, key (value)) charset=utf8mb4;
create table other_name (word varchar(30));
create table other_type (value char(30));
create table a_text (value text);
create table second_column (id int primary key, value varchar(30));
create table other_engine (value varchar(30)) engine=myisam;
create view words_view as select * from words;
create table `odd-name x` (value varchar(30));
insert into words values ('this'), ('Row'), ('café'), (null), (''), ('this');
insert into words_bin values ('Row'), ('this');
insert into words_long values (repeat('long', 25), 1), ('this', 2);
insert into `odd-name x` values ('that');
call name_table('session', '"nowhere"');
call name_table('session', '"both_engines/nowhere"');
call name_table('session', '"both_engines.words"');
call name_table('session', '"/words"');
call name_table('session', '""');
call name_table('session', '17');
call name_table('session', '"both_engines/other_name"');
call name_table('session', '"both_engines/other_type"');
call name_table('session', '"both_engines/a_text"');
call name_table('session', '"both_engines/second_column"');
call name_table('session', '"both_engines/other_engine"');
call name_table('session', '"both_engines/words_view"');
call name_table('global', '"both_engines/other_type"');
-- the words are taken when the index is made
call name_table('session', '"both_engines/words"');
create table t (id int primary key, a text, fulltext (a)) charset=utf8mb4;
insert into t values (1, 'This row that one'), (2, 'THIS rows the what'), (3, 'Cafe ROW www'), (4, 'thisrow of café'), (5, null);
call find('this');
call find('row');
call find('that');
call find('the');
call find('cafe');
call find('+this +row');
call find('"this row"');
call find('ro*');
insert into words values ('thisrow');
delete from words where value = 'this';
insert into t values (6, 'this thisrow');
call find('this');
call find('thisrow');
drop table words;
insert into t values (7, 'this thisrow');
update t set a = 'cafe this rows' where id = 1;
call find('thisrow');
call find('rows');
drop table t;
-- by a binary collation, case tells
call name_table('session', '"both_engines/words_bin"');
create table t (id int primary key, a text, fulltext (a)) charset=utf8mb4;
insert into t values (1, 'this row'), (2, 'THIS Row'), (3, 'This ROW');
call find('this');
call find('row');
alter table t drop key a;
call name_table('session', '"both_engines/words_long"');
alter table t add fulltext (a);
insert into t values (4, repeat('long', 25)), (5, repeat('long', 20));
call find('this');
call find('row');
call find(repeat('long', 20));
drop table t;
-- names as in files; the server's table, which the session's comes before
call name_table('session', '"both_engines/odd@002dname@0020x"');
call name_table('session', 'null');
call name_table('global', '"both_engines/words_bin"');
create table t (id int primary key, a text, fulltext (a)) charset=utf8mb4;
insert into t values (1, 'this row that the');
call find('this');
call find('that');
drop table t;
call name_table('session', '"both_engines/words_long"');
create table t (id int primary key, a text, fulltext (a)) charset=utf8mb4;
insert into t values (1, 'this row that the');
call find('this');
call find('row');
drop table t;
-- a table that has gone: the engine's own words
drop table words_long;
create table t (id int primary key, a text, fulltext (a)) charset=utf8mb4;
insert into t values (1, 'this row that the');
call find('this');
call find('row');
drop table t;
call name_table('global', 'null');
call name_table('session', 'default');
drop view words_view;
drop table words_bin, other_name, other_type, a_text, second_column, other_engine, `odd-name x`;
drop procedure name_table;
drop procedure find;
