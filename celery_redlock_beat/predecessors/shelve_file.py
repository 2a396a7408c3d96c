"""The ``celerybeat-schedule`` file of stock beat: when it ran each entry last; it sends nothing.

Only the times are taken out of a file: no code of the classes in it is run, or imported.
"""

from __future__ import annotations

import dbm
import io
import pickle
import shelve
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule

from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from celery import Celery

SUFFIXES = ("", ".db", ".dat", ".dir")
"""What the kinds of dbm add to the name that beat was given."""
NOTHING = "celery.ping"
"""A task that is never sent: each entry's own takes its place."""
LAST_RUN = 2
"""Where a pickled entry has its last run, in all releases of Celery."""


@dataclass(frozen=True, slots=True)
class ShelveFile:
    """What is in such a file: the last run of each entry, and when the file was written last."""

    last_runs: Mapping[str, datetime]
    written: datetime


class _Unknown:
    """An object of whatever class, or what makes one: only what it was made of is kept."""

    args: tuple[Any, ...]

    def __new__(cls, *args: Any, **_kwargs: Any) -> Self:
        """Keep the arguments; a pickle may make an object without calling ``__init__``."""
        made = object.__new__(cls)
        made.args = args
        return made

    def _take(self, *_args: Any) -> None:
        """Take whatever a pickle fills an object with."""

    __setstate__ = __setitem__ = append = extend = add = _take

    def __call__(self, *args: Any) -> _Unknown:
        return _Unknown(*args)


class _Times(pickle.Unpickler):
    """Read times as they are, and of all else only what it was made of."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes times; ``_Unknown`` for all else."""
        return KNOWN.get((module, name), _Unknown)


def _moment(*args: Any) -> Any:
    """Make a datetime, unless its zone is of an unknown class."""
    return _Unknown() if isinstance(args[-1], _Unknown) else datetime(*args)  # noqa: DTZ001


def _zone(key: str, _from_cache: bool) -> tzinfo:  # noqa: FBT001 - as a pickle calls it
    return ZoneInfo(key)


def _attribute(of: Any, name: str) -> Any:
    return _zone if of is ZoneInfo and name == "_unpickle" else _Unknown


KNOWN = {
    ("datetime", "datetime"): _moment,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("zoneinfo", "ZoneInfo"): ZoneInfo,
    ("zoneinfo", "ZoneInfo._unpickle"): _zone,
    ("builtins", "getattr"): _attribute,
}


def read(path: str, zone: tzinfo) -> ShelveFile:
    """Return what is in a file, by the name that beat was given for it.

    A last run without an offset is in ``zone``, unless Celery kept UTC.

    Raises:
        FileNotFoundError: There is none.
        ConfigurationError: It is no such file, it is in use, or this Python cannot read its kind.

    """
    written = _written(path)
    try:
        with dbm.open(path, "r") as store:
            held = {key: store.get(key) for key in (b"entries", b"utc_enabled")}
        entries, is_utc = (_loaded(data) if data else None for data in held.values())
        naive = zone if is_utc is False else UTC
        return ShelveFile(dict(_last_runs(entries or {}, naive)), written)
    except (*dbm.error, OSError) as problem:
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
    times = [
        place.stat().st_mtime
        for place in (Path(f"{path}{suffix}") for suffix in SUFFIXES)
        if place.is_file()
    ]
    if not times:
        raise FileNotFoundError(path)
    return datetime.fromtimestamp(max(times), UTC)


def _loaded(data: bytes) -> Any:
    return _Times(io.BytesIO(data)).load()


def _last_runs(entries: Any, naive: tzinfo) -> Iterator[tuple[str, datetime]]:
    if not isinstance(entries, dict):
        raise TypeError(type(entries).__qualname__)
    for name, entry in entries.items():
        args = getattr(entry, "args", ())
        at = args[LAST_RUN] if len(args) > LAST_RUN else None
        if isinstance(at, datetime):
            yield str(name), (at if at.tzinfo else at.replace(tzinfo=naive)).astimezone(UTC)
