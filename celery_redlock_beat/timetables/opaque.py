"""Schedules that only know ``is_due(last_run_at)``, asked at ledger time.

It must not guess their instants, and leaves the schedule as ``is_due`` itself leaves it.
"""

from __future__ import annotations

import copy
import datetime as dt
import math
from typing import Any

from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Micros, to_datetime

# When a schedule does not say when to ask again, or says something that cannot be.
LOOK_AGAIN: Micros = 5 * SECOND
# The soonest second look, so that a schedule that answers 0 for ever does not spin.
SOONEST: Micros = SECOND // 100
LATEST: Micros = 366 * 86_400 * SECOND


class Opaque:
    """A schedule object of a class that we do not know; equal only to itself.

    ``is_due`` runs on a copy whose ``nowfun`` answers the given ``now`` in ``zone``.  A ``nowfun``
    of the user's own stays, and then decides alone.  It is asked from ``start`` to ``end`` only.
    """

    def __init__(
        self,
        schedule: Any,
        zone: dt.tzinfo = dt.UTC,
        start: Micros | None = None,
        end: Micros | None = None,
    ) -> None:
        self.schedule = schedule
        self.zone = zone
        self.start = start
        self.end = end

    @property
    def fingerprint(self) -> str:
        """A short text, the same in every process if the schedule's repr is."""
        bounds = "" if self.start is self.end is None else f"|{self.start}..{self.end}"
        return self._name() + bounds

    def _name(self) -> str:
        cls = type(self.schedule)
        name = f"opaque:{cls.__module__}.{cls.__qualname__}"
        try:
            # What is no text to Redis, as a lone surrogate, must not reach it.
            shown = repr(self.schedule).encode("utf-8", "backslashreplace").decode()
        except Exception:  # noqa: BLE001 (a broken repr must not stop the entry)
            return name
        return name if " at 0x" in shown else f"{name}:{shown}"

    def check(self, last: Micros, now: Micros) -> tuple[bool, Micros]:
        """Return whether a run is due after ``last``, and the instant at which to look again.

        Raises:
            Exception: Whatever the schedule's ``is_due`` raises.
            ConfigurationError: Its answer is neither a pair nor a bool.

        """
        if self.start is not None and now < self.start:
            return False, self.start
        if self.end is not None and now > self.end:
            return False, now + LATEST
        last_run, asked = (to_datetime(each).astimezone(self.zone) for each in (last, now))
        due, delay = self._pair(self._ask(last_run, asked))
        return due, now + _micros(delay)

    def _ask(self, last: dt.datetime, now: dt.datetime) -> Any:
        frozen = _clone(self.schedule)
        if frozen is None or getattr(frozen, "nowfun", None) is not None:
            return self.schedule.is_due(last)
        vars(frozen)["nowfun"] = lambda: now
        before = dict(vars(frozen))
        answer = frozen.is_due(last)
        # What is_due notes on itself (a cached zone, a drawn delay) is kept, as under stock beat.
        for name, value in vars(frozen).items():
            if before.get(name, before) is not value:
                vars(self.schedule)[name] = value
        return answer

    def _pair(self, answer: Any) -> tuple[bool, Any]:
        if isinstance(answer, bool):
            return answer, None
        pair: Any = None if isinstance(answer, str) else answer  # "no" could be unpacked
        try:
            due, delay = pair
        except (TypeError, ValueError):
            raise ConfigurationError(
                f"{type(self.schedule).__qualname__}.is_due answered {answer!r}; "
                "it must answer a pair (is_due, seconds until the next check)"
            ) from None
        return bool(due), delay


def _clone(schedule: Any) -> Any:
    """Return a shallow copy that did not run the constructor, or ``None`` if there can be none."""
    try:
        return shallow_copy(schedule)
    except TypeError:  # slots, or a type of an extension module
        return _copied(schedule)


def _copied(schedule: Any) -> Any:
    try:
        clone = copy.copy(schedule)
        vars(clone)
    except Exception:  # noqa: BLE001 (whatever its class does when copied, it can still be asked)
        return None
    return clone


def _micros(delay: Any) -> Micros:
    if isinstance(delay, dt.timedelta):
        delay = delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, (int, float)):
        return LOOK_AGAIN
    if not math.isfinite(delay) or delay < 0:
        return LOOK_AGAIN
    return max(SOONEST, min(LATEST, math.ceil(delay * SECOND)))
