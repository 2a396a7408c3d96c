"""One message as it came to the broker; no broker and no judgement is in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from celery_redlock_beat.ticks import Micros, Tick, to_micros


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message: whose tick it is, its ids, and when it came by the server's clock.

    ``push`` is kombu's delivery tag: the same when one recorded message was pushed twice.
    """

    tick: Tick | None
    task_id: str
    attempt: int
    at: Micros
    push: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, headers: Mapping[str, Any], at: Micros, push: str = "") -> Arrival:
        """Read the headers of a message; those of a stock beat have no tick."""
        entry, instant = headers.get("redlock_entry"), headers.get("redlock_tick")
        tick = None
        if entry is not None and instant is not None:
            tick = Tick(str(entry), to_micros(datetime.fromisoformat(instant)))
        attempt = int(headers.get("redlock_attempt") or 0)
        return cls(tick, str(headers.get("id", "")), attempt, at, push, dict(headers))

    @property
    def passed_over(self) -> int:
        """How many earlier ticks the message says were deliberately not sent."""
        return int(self.headers.get("redlock_passed_over") or 0)

    @property
    def fence(self) -> int | None:
        """The fence of its grant, which is the server's time of the grant or a little more."""
        fence = self.headers.get("redlock_fence")
        return None if fence is None else int(fence)
