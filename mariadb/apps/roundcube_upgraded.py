"""Roundcube of Debian's release before: its database, with rows, brought up to date, and then used."""

from __future__ import annotations

import packages
from roundcube import FOLDERS, IGNORED, IGNORED_ROWS, PACKAGES, REMOVED, configure, install
from roundcube import serve, update, use
from webapp import Site

__all__ = ["FOLDERS", "IGNORED", "IGNORED_ROWS", "PACKAGES", "REMOVED", "install", "serve", "use"]

NAME = "roundcube-upgraded"
VERSION = "1.4.15-1.6.5"
USERS = 20
# One who has nothing to do with those who log in later. Rows of every table that has some.
ROWS = """
insert into users (user_id, username, mail_host, created, language, preferences)
  values ({n}, 'molch{n}', '127.0.0.1', '2019-01-02 03:04:05', 'de_DE', 'a:1:{{s:1:"x";i:{n};}}');
insert into identities (user_id, changed, standard, name, organization, email, signature)
  values ({n}, '2019-02-03', 1, 'Molch № {n}', 'Teich ß', 'molch{n}@example.org', '-- quak Ж'),
  ({n}, '2019-02-03', 0, 'Lurch', '', 'lurch{n}@example.org', null);
insert into contacts (contact_id, changed, name, email, firstname, surname, vcard, words, user_id)
  values ({n}, '2019-03-04', 'Kröte 蛙 {n}', 'a{n}@example.net', 'Kröte', '蛙', 'BEGIN:VCARD', ' a ', {n}),
  ({n} + 1000, '2019-03-04', 'Unke', 'b{n}@example.net', 'Unke', 'ß', null, ' b ', {n});
insert into contactgroups (contactgroup_id, user_id, changed, name)
  values ({n}, {n}, '2019-04-05', 'Moor ß');
insert into contactgroupmembers (contactgroup_id, contact_id, created)
  values ({n}, {n}, '2019-05-06'), ({n}, {n} + 1000, '2019-05-06');
insert into searches (user_id, type, name, data) values ({n}, 1, 'Suche ß', 'a:0:{{}}');
insert into dictionary (user_id, language, data) values ({n}, 'de', 'quak');
insert into cache (user_id, cache_key, expires, data) values ({n}, 'a', '2019-06-07', 'x');
insert into cache_index (user_id, mailbox, expires, data) values ({n}, 'INBOX', '2019-06-07', 'x');
insert into cache_messages (user_id, mailbox, uid, expires, data)
  values ({n}, 'INBOX', 7, '2019-06-07', 'x');
insert into filestore (user_id, context, filename, mtime, data)
  values ({n}, 'enigma', 'Bild.png', 7, 'x');
"""


def prepare(site: Site) -> None:
    configure(site)
    old = packages.unpack("roundcube-old", ("roundcube-core",), "bullseye")
    file = site.work / "old.sql"
    schema = (old / "usr/share/roundcube/SQL/mysql.initial.sql").read_text()
    file.write_text(
        schema.replace("ENGINE=INNODB", f"ENGINE={site.engine}")
        + "".join(ROWS.format(n=number) for number in range(1, USERS + 1))
    )
    site.load(file)
    update(site)
