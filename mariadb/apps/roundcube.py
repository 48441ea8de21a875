"""Roundcube, webmail: contacts, groups, identities; a user removed with all that is his."""

from __future__ import annotations

import json
import pathlib
import shutil
import time
from urllib.parse import urlencode

import mail
from browse import Browser
from webapp import Site, Web, php

NAME = "roundcube"
PACKAGES = (
    "roundcube",
    "roundcube-core",
    "php-pear",
    "php-auth-sasl",
    "php-mail-mime",
    "php-net-smtp",
    "php-net-sieve",
    "php-net-socket",
    "php-masterminds-html5",
    "php-guzzlehttp-guzzle",
    "php-guzzlehttp-promises",
    "php-guzzlehttp-psr7",
    "php-psr-http-client",
    "php-psr-http-factory",
    "php-psr-http-message",
    "php-symfony-deprecation-contracts",
    "php-getallheaders",
    "libjs-bootstrap4",
    "libjs-popper.js",
    "libjs-codemirror",
    "libjs-jquery",
    "libjs-jquery-minicolors",
    "libjs-jquery-ui",
    "libjs-jstimezonedetect",
)
FOLDERS = ("usr/share/roundcube",)
REMOVED = ()
PASSWORD = "Quak-1"
USERS = ("frosch@example.org", "kroete@example.org", "unke@example.org")

IGNORED = [
    ("session", ".*"),
    # The name of the mail's server has its port.
    ("users", "mail_host|last_login|created|preferences"),
    ("cache.*", "expires|changed|data"),
]
IGNORED_ROWS = [("session", "sess_id", ""), ("cache_shared", "cache_key", "")]
SETTINGS = """<?php
$config['db_dsnw'] = 'mysql://{user}:{password}@{host}/{database}';
$config['imap_host'] = '127.0.0.1:{port}';
$config['smtp_host'] = '127.0.0.1:{port}';
$config['des_key'] = 'abcdefghijklmnopqrstuvwx';
$config['plugins'] = [];
$config['language'] = 'en_US';
$config['imap_cache'] = 'db';
$config['messages_cache'] = 'db';
$config['ip_check'] = false;
$config['log_dir'] = '{work}';
$config['temp_dir'] = '{work}';
$config['enable_installer'] = false;
$config['date_format'] = 'Y-m-d';
$config['timezone'] = 'UTC';
$config['skin'] = 'elastic';
$config['create_default_folders'] = true;
"""


def prepare(site: Site) -> None:
    configure(site)
    site.load(site.folder / "SQL/mysql.initial.sql")
    update(site)


def configure(site: Site) -> None:
    assert site.packages is not None
    letters = {user: [mail.letter(number, user) for number in range(5)] for user in USERS}
    site.mail = mail.Mail(PASSWORD, letters)
    configuration = site.folder / "config"
    configuration.mkdir()
    shutil.copy(site.packages / "etc/roundcube/defaults.inc.php", configuration)
    shutil.copy(site.packages / "etc/roundcube/mimetypes.php", configuration)
    (configuration / "config.inc.php").write_text(
        SETTINGS.format(
            user=site.user,
            password=site.password,
            host=site.host,
            database=site.database,
            port=site.mail.port,
            work=site.work,
        )
    )
    # The schema says ENGINE=INNODB, in capitals, and so do its changes.
    for file in (site.folder / "SQL/mysql.initial.sql", *(site.folder / "SQL/mysql").glob("*.sql")):
        file.write_text(file.read_text().replace("ENGINE=INNODB", f"ENGINE={site.engine}"))
    for folder in ("bin", "program"):
        for file in (*(site.folder / folder).rglob("*.php"), *(site.folder / folder).rglob("*.sh")):
            text = file.read_text(errors="surrogateescape")
            if "/var/lib/roundcube/" in text:
                changed = text.replace("/var/lib/roundcube/", f"{site.folder}/")
                file.write_text(changed, errors="surrogateescape")


def update(site: Site) -> None:
    site.php(*libraries(site), "bin/updatedb.sh", f"--dir={site.folder}/SQL", "--package=roundcube")


def libraries(site: Site) -> tuple[str, ...]:
    return ("-d", f"include_path=.:{site.packages}/usr/share/php:/usr/share/php")


def serve(site: Site) -> Web:
    return php(site, *libraries(site))


def log_in(browser: Browser, user: str) -> None:
    browser.driver.delete_all_cookies()
    browser.go("")
    browser.fill(_user=user, _pass=PASSWORD)
    browser.press("#rcmloginsubmit")
    browser.find("#messagelist")


def page(**query: str) -> str:
    return f"index.php?{urlencode(query)}"


def ask(browser: Browser, task: str, action: str, **values: str) -> str:
    """What the page's own script would send, and what it is answered."""
    return str(
        browser.script(
            "const [task, action, given] = values;"
            "const body = new URLSearchParams({...given, _token: rcmail.env.request_token, _remote: '1'});"
            "const answer = await fetch(`./?_task=${task}&_action=${action}`, {method: 'POST', body,"
            " headers: {'X-Roundcube-Request': rcmail.env.request_token}});"
            "return await answer.text()",
            task,
            action,
            values,
        )
    )


def install(site: Site, browser: Browser) -> None:
    browser.go("")
    browser.keep("log in", "body", "Roundcube Webmail")
    log_in(browser, USERS[0])
    show_letters(browser)
    browser.keep("letters", "#messagelist", "Brief 3")


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    for user in USERS:
        log_in(browser, user)
        contacts(browser, user)
        settings(browser)
        letters(browser)
    looks(browser)
    remove(site, browser)


def show_letters(browser: Browser) -> None:
    """The first look at a mailbox may find it empty: another process has just begun its cache."""
    for _ in range(20):
        browser.go(page(_task="mail", _mbox="INBOX"))
        for _ in range(20):
            if browser.all("#messagelist tr.message"):
                return
            time.sleep(0.2)
    raise SystemExit(f"there are no letters:\n{browser.text()}")


def contacts(browser: Browser, user: str) -> None:
    for number in range(6):
        browser.go(page(_task="addressbook", _action="add", _source="0", _framed="1"))
        browser.fill(
            _firstname=f"Frosch {number}", _surname="Ünkenruf 蛙", _name=f"Frosch № {number} 🐸"
        )
        browser.driver.execute_script(
            'document.querySelector(\'[name="_email[]"], [name^="_email"]\').value = arguments[0]',
            f"frosch{number}@example.net",
        )
        browser.driver.execute_script("rcmail.command('save')")
        browser.until("!document.querySelector('[name=_firstname]')")
    browser.go(page(_task="addressbook"))
    groups = []
    for name in ("Teich", "Moor ß", "Weg damit"):
        answer = json.loads(ask(browser, "addressbook", "group-create", _source="0", _name=name))
        groups.append(answer["exec"].split('"id":"')[1].split('"')[0])
    browser.said.append((f"groups of {user}", " ".join(groups)))
    ids = browser.driver.execute_script("return Object.keys(rcmail.contact_list.rows)")
    browser.said.append((f"contacts of {user}", " ".join(ids)))
    for group in groups:
        ask(
            browser,
            "addressbook",
            "group-addmembers",
            _source="0",
            _gid=group,
            _cid=",".join(ids[:4]),
        )
    ask(browser, "addressbook", "group-delmembers", _source="0", _gid=groups[0], _cid=ids[0])
    ask(browser, "addressbook", "group-rename", _source="0", _gid=groups[1], _name="Sumpf 🐸")
    ask(browser, "addressbook", "group-delete", _source="0", _gid=groups[2])
    ask(browser, "addressbook", "delete", _source="0", _cid=ids[5])
    browser.go(page(_task="addressbook", _source="0"))
    browser.find("#contacts-table tr")
    browser.keep(f"address book of {user}", "#contacts-table", "Frosch № 1")


def settings(browser: Browser) -> None:
    browser.go(page(_task="settings", _action="add-identity", _framed="1"))
    browser.fill(
        _name="Zweites Ich 蛙",
        _email="zweite@example.org",
        _organization="Teich ß",
        _signature="-- 🐸",
    )
    browser.driver.execute_script("rcmail.command('save')")
    browser.until(
        "document.querySelector('[name=_iid]') && document.querySelector('[name=_iid]').value"
    )
    browser.go(page(_task="settings", _action="identities"))
    browser.keep("identities", "#identities-table", "zweite@example.org")
    browser.go(page(_task="settings", _action="add-response", _framed="1"))
    browser.fill(_name="Antwort", _text="Vielen Dank, quak 🐸")
    browser.driver.execute_script("rcmail.command('save')")
    browser.until("!location.href.includes('add-response')")
    browser.go(page(_task="settings", _action="responses"))
    browser.keep("responses", "#responses-table", "Antwort")
    browser.go(page(_task="settings", _action="edit-prefs", _section="mailbox", _framed="1"))
    browser.fill(_mail_read_time="5")
    browser.driver.execute_script("rcmail.command('save')")
    browser.keep("preferences", "body")


def letters(browser: Browser) -> None:
    browser.go(page(_task="mail", _mbox="INBOX"))
    show_letters(browser)
    browser.keep("list", "#messagelist", "Brief 1")
    browser.go(page(_task="mail", _mbox="INBOX", _uid="2", _action="show"))
    browser.keep("letter", "#messagebody", "schreibt sehr viel")
    browser.go(page(_task="mail", _mbox="INBOX"))
    for words in ("Grüße", "nichts-davon", "東京"):
        answer = ask(
            browser,
            "mail",
            "search",
            _q=words,
            _headers="subject,from",
            _mbox="INBOX",
            _scope="base",
        )
        browser.said.append((f"search {words}", str(answer.count("add_message_row"))))
    ask(browser, "mail", "mark", _uid="1", _mbox="INBOX", _flag="read")
    ask(browser, "mail", "addcontact", _address='"Unke 蛙" <unke1@example.org>', _source="0")
    ask(browser, "mail", "addcontact", _address='"Unke 蛙" <unke1@example.org>', _source="0")


def looks(browser: Browser) -> None:
    for words in ("Frosch", "蛙", "nichts", "ünken", "5"):
        found = ask(browser, "addressbook", "search", _q=words, _headers="name,email", _source="0")
        browser.said.append((f"contacts {words}", str(found.count("add_contact_row"))))
    browser.go(page(_task="addressbook"))
    text = browser.script(
        "return await (await fetch('./?_task=addressbook&_action=export&_source=0&_token='"
        " + rcmail.env.request_token)).text()"
    )
    browser.said.append(("vcards", str(text)))


def remove(site: Site, browser: Browser) -> None:
    """One statement on `users` removes them, and by foreign keys all that is theirs."""
    browser.driver.delete_all_cookies()
    browser.said.append(
        ("user removed", site.php(*libraries(site), "bin/deluser.sh", "--host=127.0.0.1", USERS[1]))
    )
    browser.said.append(
        (
            "preferences",
            site.php(
                *libraries(site), "bin/moduserprefs.sh", f"--user={USERS[0]}", "timezone", "UTC"
            ),
        )
    )
    site.php(*libraries(site), "bin/cleandb.sh")
    site.php(*libraries(site), "bin/gc.sh")
    log_in(browser, USERS[0])
    browser.go(page(_task="addressbook", _source="0"))
    browser.find("#contacts-table tr")
    browser.keep("address book, at the end", "#contacts-table", "Frosch № 1")
