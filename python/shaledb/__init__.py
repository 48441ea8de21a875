"""Shale, an embedded log-structured merge tree: ordered maps of bytes, kept on disk."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _shaledb
from ._shaledb import (
    Batch,
    Closed,
    ConfigError,
    Conflict,
    Corruption,
    Db,
    Deadlock,
    DiskFull,
    Error,
    Forked,
    InvalidArgument,
    Locked,
    LockTimeout,
    NoDatabase,
    NoSuchTree,
    Poisoned,
    ReadOnly,
    Retry,
    Rows,
    Snapshot,
    SpaceLimit,
    Transaction,
    Tree,
    TreeExists,
    __version__,
)

__all__ = [
    "Batch",
    "Closed",
    "ConfigError",
    "Conflict",
    "Corruption",
    "Db",
    "Deadlock",
    "DiskFull",
    "Error",
    "Forked",
    "InvalidArgument",
    "LockTimeout",
    "Locked",
    "NoDatabase",
    "NoSuchTree",
    "Poisoned",
    "ReadOnly",
    "Retry",
    "Rows",
    "Snapshot",
    "SpaceLimit",
    "Transaction",
    "Tree",
    "TreeExists",
    "__version__",
    "open",
    "open_follower",
]


def open(path: str | os.PathLike[str], *, read_only: bool = False, **settings: Any) -> Db:
    """Opens the database in a folder, or makes it there.

    Settings are those of docs/settings.md, such as ``memory_bytes=64 << 20``, ``create=False``,
    ``sync="always"`` or ``sync={"every_millis": 100}``; what is left out has its default.
    """
    return _shaledb.open(path, read_only, json.dumps(settings))


def open_follower(path: str | os.PathLike[str], **settings: Any) -> Db:
    """Opens the database in a folder for reading, also while another process writes it.

    What is seen is the state at one position in the commit order, and stays so until ``refresh()``,
    which answers with that position. Commits may be seen that are not durable yet. Settings are
    those of ``open``, such as ``memory_bytes``.
    """
    return _shaledb.open_follower(path, json.dumps(settings))
