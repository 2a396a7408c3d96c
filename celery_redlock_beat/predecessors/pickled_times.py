"""Read pickles for the times in them: no code of the classes there is run, or imported."""

from __future__ import annotations

import io
import pickle
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from typing import Self

ZONES = ("ZoneInfo", "ZoneInfo._unpickle")
"""What makes a zone in ``zoneinfo``, and in the ``backports.zoneinfo`` of older Pythons."""
ZONEINFO = "zoneinfo/"
"""What is before the name of a zone in the path of its file."""


def loaded(data: bytes) -> Any:
    """Return a pickled value; raises whatever a broken pickle makes of it."""
    return _Times(io.BytesIO(data)).load()


class Unknown:
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

    def __call__(self, *args: Any) -> Unknown:  # noqa: D102 - what makes something, too
        return Unknown(*args)


class UnknownMoment(Unknown):
    """A datetime in a zone that cannot be told."""


class _Times(pickle.Unpickler):
    """Read times as they are, and of all else only what it was made of."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes times; ``Unknown`` for all else."""
        if "zoneinfo" in module and name in ZONES:
            return _zone
        return KNOWN.get((module, name), Unknown)


def _moment(*args: Any) -> Any:
    """Make a datetime, unless its zone is of an unknown class."""
    return UnknownMoment() if isinstance(args[-1], Unknown) else datetime(*args)  # noqa: DTZ001


def _zone(key: str, _from_cache: bool = True) -> tzinfo | Unknown:  # noqa: FBT001, FBT002 - so called
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return Unknown(key)


def _attribute(of: Any, name: str) -> Any:
    return _zone if of is _zone and name == "_unpickle" else Unknown


def _utc(*_args: Any) -> tzinfo:
    return UTC


def _of_pytz(key: str, offset: int | None = None, *_more: Any) -> tzinfo | Unknown:
    """Return a zone as pytz pickles it: with the offset that was in force, in seconds, if any."""
    return _zone(key) if offset is None else timezone(timedelta(seconds=offset))


def _fixed(minutes: int) -> tzinfo:
    return timezone(timedelta(minutes=minutes))


def _of_file(_file: Any = None, path: Any = "", *_more: Any) -> Any:
    """Return the zone of a file as dateutil pickles it, by the path."""
    _, _, key = str(path).partition(ZONEINFO)
    return _Filled(key) if key else Unknown(path)


class _Filled(tzinfo):
    """A zone that the pickle of its file fills: what it is filled with is not looked at."""

    def __init__(self, key: str) -> None:
        self._inner = ZoneInfo(key)

    def __setstate__(self, _state: Any) -> None:
        """Take no notice."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return the offset of the zone."""
        return moment.replace(tzinfo=self._inner).utcoffset() if moment else None

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return the part of it that is summer time."""
        return moment.replace(tzinfo=self._inner).dst() if moment else None

    def tzname(self, _moment: datetime | None) -> str:
        """Return its name."""
        return self._inner.key


KNOWN = {
    ("datetime", "datetime"): _moment,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("builtins", "getattr"): _attribute,
    ("dateutil.tz.tz", "tzutc"): _utc,
    ("dateutil.tz.tz", "tzfile"): _of_file,
    ("pytz", "_UTC"): _utc,
    ("pytz", "_p"): _of_pytz,
    ("pytz", "_FixedOffset"): _fixed,
    ("pytz", "FixedOffset"): _fixed,
}
