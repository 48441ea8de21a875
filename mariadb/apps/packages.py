"""Brings applications here: Debian's packages, unpacked, and environments of Python."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from server import shell


def unpack(name: str, packages: tuple[str, ...], release: str = "") -> pathlib.Path:
    """Unpacks packages, once: installed they would bring servers that are started. They are of the
    machine's release of Debian, or of another."""
    folder = pathlib.Path(os.environ["APPS_PACKAGES"]) / name
    if not (folder / "complete").exists():
        shell(f"OF_RELEASE={release} fetch_packages '{folder}' {' '.join(packages)}")
        relink(folder)
        (folder / "complete").touch()
    return folder


def relink(packages: pathlib.Path) -> None:
    """Links to the root's folders lead to the unpacked ones instead, or are removed."""
    links = [path for path in packages.rglob("*") if path.is_symlink()]
    for path in links:
        inside = packages / os.readlink(path).lstrip("/")
        if os.readlink(path).startswith("/") and os.path.lexists(inside):
            path.unlink()
            path.symlink_to(inside)
    for path in links:
        if not path.exists():
            path.unlink()


def environment(name: str, requirements: tuple[str, ...]) -> pathlib.Path:
    """The Python of an environment that has these packages."""
    folder = pathlib.Path(os.environ["APPS_WORK"]) / "environments" / name
    stamp = folder / "has"
    wanted = "\n".join(requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run(
            [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *requirements],
            check=True,
        )
        stamp.write_text(wanted)
    return folder / "bin/python"
