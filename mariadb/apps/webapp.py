"""A web application: its folder, its database on a server, and its web server."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import urllib.error
import urllib.request
import zlib

from mail import Mail
from server import Server


@dataclasses.dataclass
class Site:
    """What a walk has to know of where it is."""

    engine: str
    server: Server
    folder: pathlib.Path
    work: pathlib.Path
    database_port: int
    port: int
    database: str = "app"
    user: str = "app"
    password: str = "Geheim-1"
    web: Web | None = None
    packages: pathlib.Path | None = None
    mail: Mail | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.database_port}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, web: Web) -> None:
        """From now on by this web server."""
        self.stop()
        self.web = web

    def stop(self) -> None:
        if self.web is not None:
            self.web.stop()
            self.web = None

    def end(self) -> None:
        """With what serves beside."""
        self.stop()
        if self.mail is not None:
            self.mail.stop()

    def php(self, *arguments: str) -> str:
        """Runs a program of the application's."""
        return subprocess.run(
            ["php", *arguments], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def load(self, file: pathlib.Path) -> None:
        """Runs the statements of a file, by the server's own client."""
        with open(file, "rb") as statements:
            subprocess.run(
                [str(self.server.layout.server / "bin/mariadb"), "--no-defaults", f"--socket={self.server.socket}",
                 "--user=root", "--default-character-set=utf8mb4", self.database],
                check=True, stdin=statements, env=self.server.layout.environment,
            )


def lay_out(
    packages: pathlib.Path, folders: tuple[str, ...], removed: tuple[str, ...], into: pathlib.Path
) -> None:
    """A copy of what packages have, of files only. They are unpacked in a folder that is not the root."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for folder in folders:
        subprocess.run(["cp", "-rL", f"{packages / folder}/.", str(into)], check=True)
    for name in removed:
        (into / name).unlink(missing_ok=True)


class Web:
    """A web server for the application, with its workers."""

    def __init__(self, site: Site, command: list[str], **environment: str) -> None:
        self.log = site.work / "web.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=site.folder, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | environment,
            )
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{site.address}/license.txt", timeout=30).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"the web server does not answer: see {self.log}")

    def stop(self) -> None:
        # With its workers, which are of its session.
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def php(site: Site, *options: str) -> Web:
    """PHP's own web server, with a few processes: pages ask for several things at once."""
    return Web(
        site,
        ["php", "-d", "opcache.enable_cli=1", "-d", "memory_limit=512M",
         "-d", "display_errors=0", "-d", "log_errors=1", "-d", "upload_max_filesize=16M",
         "-d", "max_execution_time=300", *options, "-S", f"127.0.0.1:{site.port}", "-t", str(site.folder)],
        PHP_CLI_SERVER_WORKERS="4",
    )


def picture(path: pathlib.Path, width: int = 1600, height: int = 1200) -> pathlib.Path:
    """A PNG that is large enough for smaller copies to be made of it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    def dot(x: int, y: int) -> bytes:
        return bytes((x * 255 // width, y * 255 // height, (x ^ y) & 255))

    rows = b"".join(b"\0" + b"".join(dot(x, y) for x in range(width)) for y in range(height))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b""))
    return path
