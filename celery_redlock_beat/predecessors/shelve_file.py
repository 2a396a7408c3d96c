"""The ``celerybeat-schedule`` file of stock beat: when it ran each entry last; it sends nothing.

Only the times are taken out of a file: no code of the classes in it is run, or imported.
"""

from __future__ import annotations

import dbm
import shelve
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.pickled_times import UnknownMoment, loaded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery import Celery

SUFFIXES = ("", ".db", ".dat", ".dir")
"""What the kinds of dbm add to the name that beat was given."""
NOTHING = "celery.ping"
"""A task that is never sent: each entry's own takes its place."""
WANTED = (b"entries", b"utc_enabled")
SQLITE = b"SQLite format 3"
LAST_RUN = 2
"""Where a pickled entry has its last run, in all releases of Celery."""


@dataclass(frozen=True, slots=True)
class ShelveFile:
    """What is in such a file: the last run of each entry, and when the file was written last.

    ``unreadable`` are the names of those whose last run is in a zone that cannot be told.
    """

    last_runs: Mapping[str, datetime]
    unreadable: Sequence[str]
    written: datetime


def read(path: str, zone: tzinfo) -> ShelveFile:
    """Return what is in a file, by the name that beat was given for it.

    A last run without an offset is in ``zone``, unless Celery kept UTC.

    Raises:
        FileNotFoundError: There is none.
        ConfigurationError: It is no such file, it is in use, or this Python cannot read its kind.

    """
    written = _written(path)
    try:
        entries, is_utc = (loaded(data) if data else None for data in _held(path).values())
        return ShelveFile(*_read(entries, zone if is_utc is False else UTC), written)
    except (*dbm.error, sqlite3.Error, OSError) as problem:
        raise ConfigurationError(
            f"{path} cannot be read ({problem}): it must be the file that beat was given with "
            "--schedule, beat must have stopped, and this Python must have the module that wrote it"
        ) from None
    except Exception as problem:
        raise ConfigurationError(
            f"{path} holds what no beat has written ({problem!r}): give the file that beat was "
            "given with --schedule"
        ) from problem


def write(path: str, app: Celery, last_runs: Mapping[str, datetime]) -> None:
    """Write a new file, with which stock beat takes entries as run at these aware instants.

    It takes all else of an entry from its own schedule.

    Raises:
        FileExistsError: There is a file of this name.
        ConfigurationError: It cannot be written.

    """
    if any(Path(f"{path}{suffix}").exists() for suffix in SUFFIXES):
        raise FileExistsError(path)
    entries = {
        name: ScheduleEntry(
            # Celery compares the fields of a crontab with it as it is told.
            name,
            NOTHING,
            at.astimezone(app.timezone),
            0,
            schedule(app=app),
            app=app,
        )
        for name, at in last_runs.items()
    }
    try:
        with shelve.open(path, "n") as store:  # noqa: S301 - it is written
            store["entries"] = entries
            store["__version__"] = celery.__version__
            store["tz"], store["utc_enabled"] = app.conf.timezone, app.conf.enable_utc
    except (*dbm.error, OSError) as problem:
        raise ConfigurationError(f"{path} cannot be written: {problem}") from None


def _written(path: str) -> datetime:
    try:
        times = [
            place.stat().st_mtime
            for place in (Path(f"{path}{suffix}") for suffix in SUFFIXES)
            if place.is_file()
        ]
    except OSError as problem:
        raise ConfigurationError(f"{path} cannot be read ({problem})") from None
    if not times:
        raise FileNotFoundError(path)
    return datetime.fromtimestamp(max(times), UTC)


def _held(path: str) -> dict[bytes, bytes | None]:
    """Return what is under the keys that are wanted, whatever kind of database it is."""
    if _is_sqlite(Path(path)):
        return _held_by_sqlite(path)
    with dbm.open(path, "r") as store:
        return {key: store.get(key) for key in WANTED}


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _held_by_sqlite(path: str) -> dict[bytes, bytes | None]:
    """Read a copy: it would write beside the file even to read it, which may be impossible."""
    with TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").is_file():
                copyfile(f"{path}{suffix}", f"{folder}/copy{suffix}")
        with closing(sqlite3.connect(f"{folder}/copy")) as store:
            rows = {
                key: store.execute("SELECT value FROM Dict WHERE key = ?", (key,)).fetchone()
                for key in WANTED
            }
    return {key: row and row[0] for key, row in rows.items()}


def _read(entries: Any, naive: tzinfo) -> tuple[dict[str, datetime], list[str]]:
    """Return the last runs, and the names of those whose zone nobody here knows."""
    if not isinstance(entries, dict):
        raise TypeError(type(entries).__qualname__)
    last_runs, unreadable = {}, []
    for name, entry in entries.items():
        args = getattr(entry, "args", ())
        at = args[LAST_RUN] if len(args) > LAST_RUN else None
        if isinstance(at, datetime):
            last_runs[str(name)] = (at if at.tzinfo else at.replace(tzinfo=naive)).astimezone(UTC)
        elif isinstance(at, UnknownMoment):
            unreadable.append(str(name))
    return last_runs, unreadable
