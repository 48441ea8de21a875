"""Private servers for the tests: made, started, killed and stopped, each in a folder of its own.

The server is the unpacked one that `mariadb/try` runs, with the plugin of this checkout.
"""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterable

import pymysql

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def shell(script: str) -> str:
    command = f". '{HERE.parent}/lib.sh'\n{script}"
    return subprocess.run(
        ["bash", "-c", command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def tool() -> str:
    """The `shale` command of this checkout, or that of SHALE_TOOL."""
    if "SHALE_TOOL" in os.environ:
        return os.environ["SHALE_TOOL"]
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "shaledb-cli"], check=True, cwd=REPOSITORY
    )
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return str((REPOSITORY / target / "debug" / "shale").resolve())


class Layout:
    """Where the server is, and a made data folder to copy from. Built once for a program."""

    def __init__(self, work: pathlib.Path | None = None) -> None:
        # `server`, `target` and the libraries' path are what lib.sh says; with a plugin named,
        # nothing is built, but the server laid out that the build would have laid out.
        self.plugin = os.environ.get("SHALE_PLUGIN")
        if self.plugin is None:
            self.plugin = shell('need_runtime; "$here/shale/build"')
        else:
            shell("need_runtime; fetch; lay_out")
        lines = shell('echo "$server"; echo "$target"; echo "$LD_LIBRARY_PATH"').splitlines()
        self.server = pathlib.Path(lines[0])
        # What needs no disk may work in memory.
        self.work = work or pathlib.Path(lines[1]) / "mariadb" / "tests"
        self.environment = dict(os.environ, LD_LIBRARY_PATH=lines[2])
        self.work.mkdir(parents=True, exist_ok=True)
        # Told to end, a test ends as by an error: with what is done at its end.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        # A folder of this run, so that two runs do not meet.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.work))
        # A socket's path may have 107 bytes.
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="shale-"))
        self.template = self.folder / "template"
        self._lay_plugins()
        self._make_template()

    def _lay_plugins(self) -> None:
        """A folder of plugins with the one under test: a later build does not change this run."""
        self.plugins = self.folder / "plugins"
        self.plugins.mkdir()
        for file in (self.server / "lib/mysql/plugin").iterdir():
            if file.name != "ha_shale.so" and not file.name.endswith(".new"):
                (self.plugins / file.name).symlink_to(file.resolve())
        shutil.copy(self.plugin, self.plugins / "ha_shale.so")

    @staticmethod
    def temporary_of(data: pathlib.Path) -> pathlib.Path:
        folder = data.with_name(f"{data.name}.tmp")
        folder.mkdir(exist_ok=True)
        return folder

    def options(self, data: pathlib.Path) -> list[str]:
        share = self.server / "share/mysql"
        options = [
            "--no-defaults",
            f"--basedir={self.server}",
            f"--datadir={data}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share}/charsets",
            f"--plugin-dir={self.plugins}",
            # In a folder that servers share, one that starts removes what others use.
            f"--tmpdir={self.temporary_of(data)}",
        ]
        return options + (["--user=root"] if os.getuid() == 0 else [])

    def _make_template(self) -> None:
        with open(self.folder / "install.log", "w") as log:
            command = [str(self.server / "bin/mariadb-install-db"), *self.options(self.template)]
            made = subprocess.run(
                [*command, "--auth-root-authentication-method=normal"],
                stdout=log, stderr=log, env=self.environment,
            )
        if made.returncode != 0:
            raise SystemExit(f"the data folder was not made: see {log.name}")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)


class Server:
    """One server. `options` are the server's, without the two dashes."""

    def __init__(self, layout: Layout, name: str, options: Iterable[str] = ()) -> None:
        self.layout = layout
        self.name = name
        self.data = layout.folder / name
        self.socket = layout.sockets / f"{name}.sock"
        self.log = layout.folder / f"{name}.log"
        self.given = list(options)
        self.process: subprocess.Popen[bytes] | None = None
        shutil.copytree(layout.template, self.data)

    def start(self, *more: str) -> None:
        command = [
            str(self.layout.server / "sbin/mariadbd"),
            *self.layout.options(self.data),
            f"--socket={self.socket}",
            f"--pid-file={self.socket}.pid",
            "--plugin-maturity=experimental",
            "--plugin-load-add=ha_shale",
            "--default-storage-engine=SHALE",
            "--innodb-buffer-pool-size=32M",
            "--loose-shale-memory=64M",
            *[f"--{option}" for option in [*self.given, *more]],
        ]
        if not any(option.startswith("port=") for option in self.given):
            command.append("--skip-networking")
        # A test that fails leaves its files, but no server.
        atexit.register(self.kill)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.layout.environment, start_new_session=True
            )
        self.wait()

    def wait(self) -> None:
        """Until the server answers; a server that takes two minutes to start counts as stuck."""
        assert self.process is not None
        for _ in range(2400):
            try:
                self.connect().close()
                return
            except pymysql.err.OperationalError:
                if self.process.poll() is not None:
                    raise SystemExit(f"{self.name} did not start:\n{self.errors()}")
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not answer: see {self.log}")

    def errors(self, lines: int = 12) -> str:
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in text if "ERROR" in line][-lines:] or text[-lines:])

    def connect(self, database: str | None = None, **more: Any) -> pymysql.connections.Connection:
        more.setdefault("autocommit", True)
        return pymysql.connect(
            unix_socket=str(self.socket), user="root", database=database, **more
        )

    def run(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Runs statements on a connection of their own, and gives the rows of the last."""
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def refuses(self, statement: str, words: str) -> None:
        """The statement fails, and the error has these words."""
        try:
            self.run(statement)
        except pymysql.err.Error as error:
            assert words in error.args[1], (statement, error)
            return
        raise AssertionError(f"not refused: {statement}")

    def prepared(self) -> int:
        """How many transactions of Shale are prepared."""
        rows = self.run(
            "select count(*) from information_schema.shale_transactions where state = 'prepared'"
        )
        return int(rows[0][0])

    def status(self, name: str) -> int:
        rows = self.run(f"show global status like '{name}'")
        return int(rows[0][1]) if rows else 0

    def kill(self) -> None:
        """As the system would: at once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
            atexit.unregister(self.kill)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=300)
        self.process = None
        atexit.unregister(self.kill)
        if code != 0:
            raise SystemExit(f"{self.name} ended with {code}:\n{self.errors()}")


class Running(threading.Thread):
    """A call in a thread of its own, whose error is raised where it is awaited."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._arguments = arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call(*self._arguments)
        except BaseException as error:  # raised again by `get`
            self.error = error

    def get(self) -> Any:
        self.join()
        if self.error is not None:
            raise self.error
        return self.result


def all_of(calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Calls at once, each given as the function and its arguments; their results in order."""
    return [thread.get() for thread in [Running(*call) for call in calls]]
