"""Time zones as values with a name, and where their UTC offset changes; knows no schedule."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.ticks import SECOND, Micros, to_datetime

DAY: Micros = 86_400 * SECOND
NEARBY_DAYS = 4
_PROBE: Micros = DAY // 2
_DATEUTIL_FILE = re.compile(r"tzfile\('(?:.*/zoneinfo/)?(?P<name>[^']+)'\)")
_OF_THE_MACHINE = {"localtime", "posixrules", "Factory"}
"""Files among the zones that may be another zone on each machine."""
_SAME_AS_UTC = {"UTC", "UCT", "Universal", "Zulu", "Etc/UTC", "Etc/UCT", "Etc/Zulu"}


@dataclass(frozen=True)
class Zone:
    """A time zone that compares by name; tzinfo objects do so by identity, or have no hash."""

    name: str
    tz: dt.tzinfo = field(compare=False, repr=False)

    def local(self, moment: Micros) -> dt.datetime:
        """Return the aware local time at ``moment``."""
        return to_datetime(moment).astimezone(self.tz)

    def offset(self, moment: Micros) -> Micros:
        """Return the UTC offset at ``moment`` in microseconds, positive east of Greenwich."""
        offset = self.local(moment).utcoffset() or dt.timedelta(0)
        return offset // dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class Change:
    """A change of UTC offset: its first instant, and by how much clocks move (negative: back)."""

    at: Micros
    shift: Micros


UTC_ZONE = Zone("UTC", dt.UTC)


def zone_of(place: str | dt.tzinfo) -> Zone:
    """Return the zone of an IANA name or of a tzinfo object of any library.

    Raises:
        ConfigurationError: The name is unknown; the text suggests close ones.

    """
    if isinstance(place, str):
        return _named(place)
    if isinstance(place, dt.timezone):
        offset = place.utcoffset(None)
        return Zone(str(dt.timezone(offset)), place) if offset else UTC_ZONE
    # zoneinfo calls its name `key`, pytz `zone`, and dateutil only shows the path of a file.  An
    # object of pytz is no use for wall arithmetic, one of dateutil answers otherwise in a gap, and
    # some keys name no zone at all (tzlocal's "local"), hence the attempt to load it by name.
    name = getattr(place, "key", None) or getattr(place, "zone", None) or _shown_name(place)
    if isinstance(name, str):
        try:
            return _named(name)
        except ConfigurationError:
            pass
    return Zone(_describe(place), place)


def _shown_name(place: dt.tzinfo) -> str | None:
    shown = repr(place)
    match = _DATEUTIL_FILE.fullmatch(shown)
    return match["name"] if match else "UTC" if shown == "tzutc()" else None


@lru_cache(maxsize=1024)
def _named(name: str) -> Zone:
    if name in _SAME_AS_UTC:
        return UTC_ZONE
    tz = None if name in _OF_THE_MACHINE else _loaded(name)
    if tz is None:
        known = available_timezones() - _OF_THE_MACHINE
        meant = hint(name, known, "use an IANA name as 'Europe/Berlin'")
        raise ConfigurationError(
            f"unknown time zone {name!r}; {meant} "
            "(where the system has no zone files, install the package 'tzdata')"
        )
    return Zone(name, tz)


def _loaded(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _describe(place: dt.tzinfo) -> str:
    """Name a zone that has no name, so that two that differ are told apart by their offsets."""
    label = getattr(place, "key", None) or repr(place)
    if " at 0x" in label:
        label = type(place).__name__
    seen = Zone("", place)
    winter, summer = (seen.offset(m) // SECOND for m in _SOLSTICES)
    return f"{label}[{winter:+d},{summer:+d}]"


_SOLSTICES = (1_735_689_600 * SECOND, 1_751_328_000 * SECOND)  # 1 January and 1 July 2025


@lru_cache(maxsize=8192)
def changes_near(zone: Zone, day: int) -> tuple[Change, ...]:
    """Return the changes of offset within four days of a UTC day (counted from the epoch).

    Offsets are compared every twelve hours: no zone has changed and changed back within that.
    """
    if zone is UTC_ZONE:
        return ()
    found = []
    start = (day - NEARBY_DAYS) * DAY
    before = zone.offset(start)
    for probe in range(start + _PROBE, (day + NEARBY_DAYS + 1) * DAY + 1, _PROBE):
        after = zone.offset(probe)
        if after != before:
            found.append(Change(_locate(zone, probe - _PROBE, probe), after - before))
            before = after
    return tuple(found)


def _locate(zone: Zone, low: Micros, high: Micros) -> Micros:
    """Bisect for the first instant, on a whole second, at which the offset is that of ``high``."""
    target = zone.offset(high)
    low, high = low // SECOND, high // SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if zone.offset(middle * SECOND) == target:
            high = middle
        else:
            low = middle
    return high * SECOND
