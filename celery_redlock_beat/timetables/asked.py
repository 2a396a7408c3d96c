"""Entries whose subclass, or whose scheduler's, decides itself if they are due; it changes none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery.beat import ScheduleEntry

from celery_redlock_beat.copies import shallow_copy

if TYPE_CHECKING:
    from collections.abc import Callable

    IsDue = Callable[[ScheduleEntry], Any]


class Asked:
    """The schedule of an entry that a subclass, its own or the scheduler's, asks if it is due.

    It is asked with the shared mark as ``last_run_at``, and at the ledger's time.
    """

    nowfun: Callable[[], Any] | None = None

    def __init__(self, entry: ScheduleEntry, is_due: IsDue) -> None:
        self._entry = entry
        self._is_due = is_due

    def is_due(self, last_run_at: Any) -> Any:
        """Ask a copy: what plugins read from the entry does not change."""
        entry = shallow_copy(self._entry, last_run_at=last_run_at)
        if self.nowfun and getattr(entry.schedule, "nowfun", None) is None:
            entry.schedule = shallow_copy(entry.schedule, nowfun=self.nowfun)
        return self._is_due(entry)

    def __repr__(self) -> str:
        return f"{type(self._entry).__qualname__} {self._entry.schedule!r}"


def own_is_due(entry: ScheduleEntry) -> IsDue | None:
    """Return the ``is_due`` of an entry whose class has one of its own, or ``None``."""
    if getattr(entry.is_due, "__func__", None) is ScheduleEntry.is_due:
        return None
    return lambda copy: copy.is_due()
