"""Zabbix of Debian's release before: the newer server brings its database up to date, and is used."""

from __future__ import annotations

import packages
import tables
import zabbix
from webapp import Site
from zabbix import FOLDERS, PACKAGES, REMOVED, configure, install, load, start_server, use

__all__ = ["FOLDERS", "PACKAGES", "REMOVED", "install", "use"]

NAME = "zabbix-upgraded"
VERSION = "5.0.8-6.0.14"
# Numbers that a migration gives out in the order of a query without ORDER BY. What has them is compared.
IGNORED = [*zabbix.IGNORED, ("valuemap|valuemap_mapping|items", "valuemapid|valuemap_mappingid")]
# Made at random by a migration.
IGNORED_ROWS = [*zabbix.IGNORED_ROWS, ("widget_field", "name", "^reference$")]


def prepare(site: Site) -> None:
    configure(site)
    load(site, packages.unpack("zabbix-old", ("zabbix-server-mysql",), "bullseye"), "utf8mb3")
    # It changes 100 tables and more, and all templates.
    start_server(site, "completed 100% of database upgrade", "server #0 started [main process]")
    (site.work / "server.log").unlink()
    # The older one has no other characters, and its manual says how to come to these.
    site.server.run(
        "set foreign_key_checks = 0",
        f"alter database {site.database} character set utf8mb4 collate utf8mb4_bin",
        *(
            f"alter table `{table}` convert to character set utf8mb4 collate utf8mb4_bin"
            for table in sorted(tables.tables(site.server, site.database))
        ),
        database=site.database,
    )
