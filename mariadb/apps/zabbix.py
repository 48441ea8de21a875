"""Zabbix: its templates, hosts and users by the API, pages, the server's start."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request
from typing import Any

from browse import Browser
from webapp import Site

NAME = "zabbix"
PACKAGES = (
    "zabbix-frontend-php",
    "zabbix-server-mysql",
    "libodbc2",
    "libsnmp40",
    "libopenipmi0",
    "libltdl7",
    "libsensors5",
    "libpci3",
    "libwrap0",
    "libevent-2.1-7",
    "libssh2-1",
    "libodbcinst2",
    "libtirpc3",
    "libnsl2",
    "libevent-core-2.1-7",
    "libevent-extra-2.1-7",
    "libevent-pthreads-2.1-7",
    "libperl5.36",
)
FOLDERS = ("usr/share/zabbix",)
REMOVED = ()
USER, PASSWORD = "Admin", "zabbix"

# Of this version; and of the one before, whose names an upgrade keeps.
TEMPLATES = [
    "Linux by Zabbix agent",
    "Nginx by HTTP",
    "Website certificate by Zabbix agent 2",
    "Template App Apache by HTTP",
    "Template App Nginx by HTTP",
    "Template OS Linux by Zabbix agent",
]

IGNORED = [
    ("users", "passwd|attempt_clock|attempt_ip"),
    # Numbers that are made at random.
    (".*", "uuid|session_key|instanceid|recordsetid|auditid"),
    ("sessions", ".*"),
    # What the server has come to in its seconds.
    ("interface", "available|error|errors_from|disable_until"),
    ("item_rtdata", "state|error|lastlogsize|mtime"),
    ("triggers", "state|error|value|lastchange"),
    # Seconds since 1970, of when a thing happened.
    (".*", "clock|lastaccess|lastcheck|lastclock|created_at|ts_delete|value_timestamp"),
]
IGNORED_ROWS = [
    ("sessions", "sessionid", ""),
    ("auditlog", "auditid", ""),
    # Of the server that ran for some seconds: its own, and what it had come to.
    (
        "ha_node|housekeeper|task.*|history.*|trends.*|events?.*|event_.*|problem.*|dbversion",
        ".*",
        "",
    ),
]
SETTINGS = """<?php
$DB['TYPE'] = 'MYSQL';
$DB['SERVER'] = '127.0.0.1';
$DB['PORT'] = '{port}';
$DB['DATABASE'] = '{database}';
$DB['USER'] = '{user}';
$DB['PASSWORD'] = '{password}';
$DB['SCHEMA'] = '';
$DB['ENCRYPTION'] = false;
$DB['DOUBLE_IEEE754'] = true;
$ZBX_SERVER_NAME = 'Teich 蛙';
$IMAGE_FORMAT_DEFAULT = IMAGE_FORMAT_PNG;
"""
SERVER = """DBHost=127.0.0.1
DBPort={port}
DBName={database}
DBUser={user}
DBPassword={password}
LogFile={work}/server.log
PidFile={work}/server.pid
SocketDir={work}
ListenIP=127.0.0.1
ListenPort={listen}
AllowRoot=1
AllowUnsupportedDBVersions=1
FpingLocation=/bin/true
Fping6Location=/bin/true
"""


def prepare(site: Site) -> None:
    assert site.packages is not None
    configure(site)
    load(site, site.packages)


def configure(site: Site) -> None:
    # Debian's is in /etc.
    reader = site.folder / "include/classes/core/CConfigFile.php"
    reader.write_text(reader.read_text().replace("/etc/zabbix/", f"{site.folder}/conf/"))
    (site.folder / "conf/zabbix.conf.php").write_text(
        SETTINGS.format(
            port=site.database_port, database=site.database, user=site.user, password=site.password
        )
    )


def load(site: Site, packages: pathlib.Path, characters: str = "utf8mb4") -> None:
    """The schema and the templates of the server that these packages have."""
    site.server.run(
        f"alter database {site.database} character set {characters} collate {characters}_bin",
        "set global log_bin_trust_function_creators = 1",
    )
    for name in ("schema", "images", "data"):
        text = gzip.open(
            packages / f"usr/share/zabbix-server-mysql/{name}.sql.gz", "rt"
        ).read()
        file = site.work / f"{name}.sql"
        # The schema names InnoDB for each table.
        file.write_text(re.sub(r"ENGINE=InnoDB", f"ENGINE={site.engine}", text))
        site.load(file)
        file.unlink()


class Api:
    """The program's own interface, as its clients use it."""

    def __init__(self, site: Site, browser: Browser) -> None:
        self.address = f"{site.address}/api_jsonrpc.php"
        self.browser = browser
        self.token: str | None = None
        self.token = self("user.login", username=USER, password=PASSWORD)

    def __call__(self, method: str, *listed: Any, **given: Any) -> Any:
        answer = self.ask(method, list(listed) or given)
        if "error" in answer:
            raise SystemExit(f"{method} is refused: {answer['error']}")
        return answer["result"]

    def ask(self, method: str, given: Any) -> Any:
        body = {"jsonrpc": "2.0", "method": method, "params": given, "id": 1, "auth": self.token}
        request = urllib.request.Request(
            self.address, json.dumps(body).encode(), {"Content-Type": "application/json-rpc"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read())

    def keep(self, method: str, *listed: Any, **given: Any) -> Any:
        """What is compared."""
        result = self(method, *listed, **given)
        self.browser.said.append(
            (
                f"api {method} {len(self.browser.said)}",
                json.dumps(result, ensure_ascii=False, indent=1),
            )
        )
        return result


def install(site: Site, browser: Browser) -> None:
    browser.go("index.php")
    browser.fill(name=USER, password=PASSWORD)
    browser.press('[name="enter"]')
    browser.find("header, .wrapper")
    browser.go("zabbix.php?action=userprofile.edit")
    browser.keep("profile", "main", "Change password")


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    api = Api(site, browser)
    ids = build(api)
    change(api, ids)
    looks(browser)
    remove(api, ids)
    start_server(site, "server #0 started [main process]")


def build(api: Api) -> dict[str, list[str]]:
    group = api.keep("hostgroup.create", name="Teich/蛙 🐸")["groupids"][0]
    templates = [
        one["templateid"]
        for one in api(
            "template.get",
            output=["templateid"],
            sortfield="host",
            limit=3,
            filter={"host": TEMPLATES},
        )
    ]
    hosts = []
    for number in range(6):
        hosts += api.keep(
            "host.create",
            host=f"frosch-{number}",
            name=f"Frosch № {number} Ж",
            groups=[{"groupid": group}],
            templates=[{"templateid": one} for one in templates[: number % 3 + 1]],
            interfaces=[
                {"type": 1, "main": 1, "useip": 1, "ip": "127.0.0.1", "dns": "", "port": "10050"}
            ],
            tags=[{"tag": "art", "value": "Lurch ß"}],
            macros=[{"macro": "{$QUAK}", "value": "蛙"}],
        )["hostids"]
    items = []
    for host in hosts:
        items += api.keep(
            "item.create",
            name="Quaken 🐸",
            key_="quak",
            hostid=host,
            type=2,
            value_type=3,
            tags=[{"tag": "a", "value": "b"}],
        )["itemids"]
        api.keep(
            "trigger.create",
            description="Zu laut ß",
            expression=f"last(/frosch-{hosts.index(host)}/quak)>5",
        )
    usergroup = api.keep(
        "usergroup.create", name="Lurche ß", rights=[{"id": group, "permission": 3}]
    )["usrgrpids"][0]
    users = api.keep(
        "user.create",
        username="kroete",
        passwd="Quak-1-Teich-9!",
        roleid="1",
        name="Kröte",
        usrgrps=[{"usrgrpid": usergroup}],
        medias=[],
    )["userids"]
    maps = api.keep(
        "map.create",
        name="Teichkarte 蛙",
        width=600,
        height=400,
        selements=[
            {
                "selementid": "1",
                "elements": [{"hostid": hosts[0]}],
                "elementtype": 0,
                "iconid_off": "2",
            },
            {
                "selementid": "2",
                "elements": [{"hostid": hosts[1]}],
                "elementtype": 0,
                "iconid_off": "2",
            },
        ],
        links=[{"selementid1": "1", "selementid2": "2"}],
    )["sysmapids"]
    api.keep(
        "graph.create",
        name="Quaken",
        width=900,
        height=200,
        gitems=[{"itemid": one, "color": "00AA00"} for one in items[:3]],
    )
    api.keep(
        "maintenance.create",
        name="Winter ß",
        active_since=1700000000,
        active_till=1800000000,
        groups=[{"groupid": group}],
        timeperiods=[{"period": 3600, "timeperiod_type": 0}],
    )
    return {
        "group": [group],
        "hosts": hosts,
        "items": items,
        "users": users,
        "usergroup": [usergroup],
        "maps": maps,
        "templates": templates,
    }


def change(api: Api, ids: dict[str, list[str]]) -> None:
    api.keep("host.update", hostid=ids["hosts"][1], name="Umbenannt 🐸", status=1)
    api.keep(
        "host.massadd",
        hosts=[{"hostid": one} for one in ids["hosts"][:3]],
        groups=[{"groupid": "2"}],
    )
    api.keep(
        "host.update", hostid=ids["hosts"][2], templates_clear=[{"templateid": ids["templates"][0]}]
    )
    api.keep("template.massremove", templateids=[ids["templates"][1]], templateids_clear=[])
    api.keep("item.update", itemid=ids["items"][0], name="Quaken, leise")
    api.keep(
        "host.get",
        output="extend",
        selectItems=["name", "key_"],
        selectTriggers=["description"],
        groupids=ids["group"],
    )
    # What a foreign key forbids, the program says in its own words, or the database does.
    api.browser.said.append(
        ("group in use", json.dumps(api.ask("hostgroup.delete", ids["group"]), ensure_ascii=False))
    )


PAGES = (
    "zabbix.php?action=host.list",
    "hostgroups.php",
    "templates.php?filter_name=Linux&filter_set=1",
    "zabbix.php?action=user.list",
    "sysmaps.php",
    "maintenance.php",
    "zabbix.php?action=usergroup.list",
    "zabbix.php?action=mediatype.list",
    "zabbix.php?action=dashboard.list",
    "actionconf.php?eventsource=0",
)


def looks(browser: Browser) -> None:
    for path in PAGES:
        browser.read(path, path, "main", in_order=False)


def remove(api: Api, ids: dict[str, list[str]]) -> None:
    api.keep("host.delete", *ids["hosts"][:3])
    api.keep("user.delete", *ids["users"])
    api.keep("usergroup.delete", *ids["usergroup"])
    api.keep("map.delete", *ids["maps"])
    some = [
        one["templateid"]
        for one in api("template.get", output=["templateid"], sortfield="host", limit=40)
    ]
    # By ON DELETE CASCADE with their items, triggers, discovery rules, dashboards.
    api.keep("template.delete", *some)
    api.keep("template.get", countOutput=True)
    api.keep("item.get", countOutput=True, templated=True)


def low_port() -> int:
    """The server takes ports up to 32767 only."""
    for port in range(20000, 32767):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise SystemExit("no port is free")


def start_server(site: Site, *told: str) -> None:
    """The server reads all of its configuration from the database, and writes what it has seen."""
    assert site.packages is not None
    configuration = site.work / "zabbix_server.conf"
    configuration.write_text(
        SERVER.format(
            port=site.database_port,
            database=site.database,
            user=site.user,
            password=site.password,
            work=site.work,
            listen=low_port(),
        )
    )
    # Its migrations name InnoDB for the tables that they make.
    program = site.work / "zabbix_server"
    named = f" engine={site.engine:6}".encode()
    code = (site.packages / "usr/sbin/zabbix_server").read_bytes()
    assert code.count(b" engine=innodb") == 1 and len(named) == len(b" engine=innodb")
    program.write_bytes(code.replace(b" engine=innodb", named))
    program.chmod(0o755)
    machine = os.uname().machine
    libraries = (
        f"{site.packages}/usr/lib/{machine}-linux-gnu:{site.packages}/lib/{machine}-linux-gnu"
    )
    process = subprocess.Popen(
        [str(program), "-f", "-c", str(configuration)],
        start_new_session=True,
        env=os.environ
        | {"LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"},
        stdout=subprocess.DEVNULL,
    )
    log_file = site.work / "server.log"
    ends = time.monotonic() + 900
    text = ""
    while not all(words in text for words in told):
        if process.poll() is not None or time.monotonic() > ends:
            raise SystemExit(f"Zabbix's server has ended, or does not say {told}: see {log_file}")
        time.sleep(1)
        text = log_file.read_text(errors="replace") if log_file.exists() else ""
    time.sleep(20)
    if process.poll() is not None:
        raise SystemExit(f"Zabbix's server has ended: see {log_file}")
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=60)
    text = log_file.read_text(errors="replace")
    with open(site.work / "database-errors.log", "a") as log:
        log.write(
            "\n".join(f"Error 1 {line}" for line in text.splitlines() if "query failed" in line)
        )
