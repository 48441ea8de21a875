"""One application on one engine: installed, used, upgraded, dumped and restored."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
from types import ModuleType

import packages
import tables
from browse import Browser
from server import Layout, Server
from webapp import Site, lay_out, php, picture


@dataclasses.dataclass
class Outcome:
    """All that is compared of one engine."""

    said: list[tuple[str, str]]
    engines: dict[str, str]
    definitions: dict[str, str]
    keys: list[tuple[str, ...]]
    contents: dict[str, list[tuple[str, ...]]]
    bad: list[str]
    errors: list[str]


def walk(
    application: ModuleType, engine: str, layout: Layout, port: int, database_port: int
) -> Outcome:
    """One application on one engine, from its installation to its end. The ports are the same of
    both, as applications write their address into their tables.

    An application's module has NAME, `install` and `use`, VERSION if it is not a package's. It may
    have PACKAGES of Debian's to unpack, FOLDERS of these that the site is made of, REMOVED files of
    the site; `prepare`, before it is served; `serve`, if not by PHP; `upgrade`, after its use; and
    what is not compared: IGNORED and IGNORED_ROWS (tables.py), IGNORED_LINES of definitions.
    """
    work = pathlib.Path(os.environ["APPS_WORK"]) / f"{application.NAME}-{engine}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    server = Server(
        layout,
        f"{application.NAME}-{engine.lower()}",
        [
            f"port={database_port}",
            "bind-address=127.0.0.1",
            f"default-storage-engine={engine}",
            "character-set-server=utf8mb4",
        ],
    )
    server.start()
    site = Site(engine, server, work / "site", work, database_port, port)
    make_database(site)
    if hasattr(application, "PACKAGES"):
        site.packages = packages.unpack(application.NAME, application.PACKAGES)
        lay_out(site.packages, application.FOLDERS, application.REMOVED, site.folder)
    if hasattr(application, "prepare"):
        application.prepare(site)
    image = picture(work / "Fröschchen.png")
    said = go(application, site, image)
    outcome = Outcome(
        said,
        tables.tables(server, site.database),
        tables.definitions(server, site.database, getattr(application, "IGNORED_LINES", None)),
        tables.foreign_keys(server, site.database),
        tables.contents(server, site.database, application.IGNORED, application.IGNORED_ROWS),
        tables.checked(server, site.database)
        + tables.orphans(server, site.database)
        + tables.restored(server, site.database, work / "dump.sql"),
        errors(site),
    )
    if server.process is None or server.process.poll() is not None:
        raise SystemExit(f"the server has ended: {server.errors()}")
    server.stop()
    return outcome


def make_database(site: Site) -> None:
    site.server.run(
        f"create database {site.database} character set utf8mb4",
        *(
            statement
            for host in ("localhost", "127.0.0.1")
            for statement in (
                f"create user {site.user}@'{host}' identified by '{site.password}'",
                f"grant all on {site.database}.* to {site.user}@'{host}'",
            )
        ),
    )


def go(application: ModuleType, site: Site, image: pathlib.Path) -> list[tuple[str, str]]:
    """Goes through the application, and gives what its pages said."""
    browser = None
    try:
        site.serve(getattr(application, "serve", php)(site))
        browser = Browser(site.address, site.work / "profile")
        application.install(site, browser)
        application.use(site, browser, image)
        if hasattr(application, "upgrade"):
            application.upgrade(site, browser)
    finally:
        if browser is not None:
            for number, (step, text) in enumerate(browser.said):
                (site.work / f"{number:03} {re.sub('[^A-Za-z0-9 ]', '_', step)}.txt").write_text(
                    text
                )
            browser.driver.save_screenshot(str(site.work / "last.png"))
            browser.close()
        site.end()
    return browser.said


def errors(site: Site) -> list[str]:
    """Errors of the database, and PHP's own, wherever the application wrote them."""
    found = []
    logs = (
        site.work / "web.log",
        site.folder / "wp-content/debug.log",
        site.work / "database-errors.log",
        site.work / "errors.log",
        site.work / "rails.log",
    )
    for file in logs:
        if file.exists():
            for line in file.read_text(errors="replace").splitlines():
                if re.search(
                    r"WordPress database error|Fatal error|DBQueryError|\bError \d{4}\b|django\.db\.utils"
                    r"|DB Error|SQLSTATE|Mysql2::Error",
                    line,
                ):
                    found.append(re.sub(r"^\[[^]]*\] (\[[^]]*\] )?", "", tables.plain(line)))
    return found
