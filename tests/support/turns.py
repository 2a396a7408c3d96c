"""Where zones changed their UTC offset, in every way in which that has happened; no schedule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import strategies as st

from celery_redlock_beat.ticks import SECOND, Micros, to_datetime, to_micros

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True)
class Turn:
    """The first instant ``at`` which a zone has a new offset, and by how much clocks moved."""

    zone: str
    at: Micros
    shift: Micros

    def __str__(self) -> str:  # it names the case of a test
        return f"{self.zone} {to_datetime(self.at):%Y-%m-%d}"


def _turn(zone: str, at: str, minutes: int) -> Turn:
    return Turn(zone, to_micros(datetime.fromisoformat(at).replace(tzinfo=UTC)), minutes * MINUTE)


TURNS = (
    _turn("Europe/Berlin", "2026-03-29T01:00", 60),
    _turn("Europe/Berlin", "2026-10-25T01:00", -60),
    _turn("America/New_York", "2026-03-08T07:00", 60),
    _turn("America/New_York", "2026-11-01T06:00", -60),
    # Summer is the standard time, and winter the exception.
    _turn("Europe/Dublin", "2024-03-31T01:00", 60),
    _turn("Europe/Dublin", "2024-10-27T01:00", -60),
    # By half an hour.
    _turn("Australia/Lord_Howe", "2026-04-04T15:00", -30),
    _turn("Australia/Lord_Howe", "2025-10-04T15:30", 30),
    _turn("Pacific/Norfolk", "2015-10-03T14:30", -30),
    _turn("America/Caracas", "2007-12-09T07:00", -30),
    _turn("America/Caracas", "2016-05-01T07:00", 30),
    # By a quarter, by two hours, by three.
    _turn("Asia/Kathmandu", "1985-12-31T18:30", 15),
    _turn("Antarctica/Troll", "2024-03-31T01:00", 120),
    _turn("Antarctica/Troll", "2024-10-27T01:00", -120),
    _turn("Antarctica/Casey", "2018-03-10T17:00", -180),
    # No midnight on that date, or two.
    _turn("Africa/Cairo", "2024-04-25T22:00", 60),
    _turn("Africa/Cairo", "2024-10-31T21:00", -60),
    _turn("America/Havana", "2024-03-10T05:00", 60),
    _turn("America/Havana", "2024-11-03T05:00", -60),
    _turn("Asia/Beirut", "2024-03-30T22:00", 60),
    _turn("Asia/Beirut", "2024-10-26T21:00", -60),
    _turn("America/Asuncion", "2023-10-01T04:00", 60),
    _turn("America/Asuncion", "2024-03-24T03:00", -60),
    _turn("Asia/Colombo", "1996-10-25T18:00", -30),
    _turn("Asia/Pyongyang", "2015-08-14T15:00", -30),
    _turn("Asia/Pyongyang", "2018-05-04T15:00", 30),
    _turn("America/Juneau", "1983-10-30T09:00", -120),
    # At no full hour.
    _turn("America/St_Johns", "1988-04-03T03:31", 120),
    _turn("America/St_Johns", "2006-10-29T02:31", -60),
    _turn("America/Toronto", "1919-03-31T04:30", 60),
    # A date that there never was; one that came twice.
    _turn("Pacific/Apia", "2011-12-30T10:00", 24 * 60),
    _turn("Pacific/Kwajalein", "1993-08-21T12:00", 24 * 60),
    _turn("Pacific/Kwajalein", "1969-09-30T13:00", -23 * 60),
    # Put off or pulled forward by decree, and for Ramadan.
    _turn("Europe/Istanbul", "2015-11-08T01:00", -60),
    _turn("Europe/Istanbul", "2016-03-27T01:00", 60),
    _turn("Africa/Casablanca", "2024-03-10T02:00", -60),
    _turn("Africa/Casablanca", "2024-04-14T02:00", 60),
    _turn("Asia/Gaza", "2023-04-29T00:00", 60),
    _turn("Asia/Gaza", "2023-10-27T23:00", -60),
)


def around(turn: Turn) -> st.SearchStrategy[Micros]:
    """Draw an instant near a turn: at it, or microseconds, seconds, minutes or days off."""
    distances = st.one_of(
        st.integers(-2, 2),
        st.integers(-2 * MINUTE, 2 * MINUTE),
        *(
            st.integers(-most, most).map(unit.__mul__)
            for unit, most in ((SECOND, 3600), (MINUTE, 5 * 60), (HOUR, 50), (DAY, 200))
        ),
        st.integers(-30 * HOUR, 30 * HOUR),
    )
    return distances.map(turn.at.__add__)
