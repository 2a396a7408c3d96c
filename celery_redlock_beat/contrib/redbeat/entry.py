"""RedBeat's entry, kept as a stored entry of ours; it is the ledger that decides what is due.

Between ``save()`` and the first run, an interval waits one period, as with RedBeat. What differs is
told where it differs.
"""

from __future__ import annotations

from datetime import UTC
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

from celery.app import app_or_default
from celery.beat import ScheduleEntry

from celery_redlock_beat.contrib.redbeat.config import ensure_conf
from celery_redlock_beat.contrib.redbeat.decoder import to_timestamp
from celery_redlock_beat.contrib.redbeat.due import SWITCHED_OFF, following
from celery_redlock_beat.contrib.redbeat.keeper import keeper_of
from celery_redlock_beat.contrib.redbeat.reading import Loading, definition_of, found_by, meta_of
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.entry_checks import check_name
from celery_redlock_beat.policies import said_by
from celery_redlock_beat.ticks import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.ticks import Micros

NEVER = -1
"""The score of an entry that is not due any more."""
CALL = ("task", "schedule", "args", "kwargs", "options")


class RedBeatSchedulerEntry(Loading, RedlockEntry):
    """A periodic task as RedBeat's callers make it: ``save()`` stores it, and every node sends it.

    ``app`` may be left out everywhere: then it is the current one. Policies of ours, as
    ``timezone``, are taken as keywords, too.

    Raises:
        ConfigurationError: Its schedule or a policy cannot be.

    """

    is_plain = True

    def __init__(
        self,
        name: str | None = None,
        task: str | None = None,
        schedule: Any = None,
        args: Any = None,
        kwargs: Any = None,
        enabled: bool = True,  # noqa: FBT001, FBT002 - RedBeat's own signature
        options: Any = None,
        **more: Any,
    ) -> None:
        app = app_or_default(more.pop("app", None))
        if not enabled:
            more["enabled"] = False  # that it is enabled need not be said
        super().__init__(
            name=None if name is None else str(name),
            task=task,
            schedule=schedule,
            args=args,
            kwargs=kwargs,
            options=options,
            app=app,
            **more,
        )
        ensure_conf(app)

    @classmethod
    def from_key(cls, key: str, app: Celery | None = None) -> Self:
        """Return the entry of this key, stored or from code.

        Raises:
            KeyError: There is none.
            EntryError: What is stored cannot be read.
        """
        found = found_by(key, app)
        meta = meta_of(found, app)
        entry = cls(app=app, **{**definition_of(found), **meta})
        entry.last_run_at = meta["last_run_at"]  # Celery takes None for now
        return entry

    @property
    def key(self) -> str:
        """RedBeat's key of this entry."""
        return self.generate_key(app=self.app, name=self.name)

    @property
    def due_at(self) -> datetime | None:
        """When it is due by its own ``last_run_at``, an aware datetime; now if it is overdue.

        ``None`` if it is not due any more.
        """
        now = self.default_now()
        last_run_at: datetime | None = self.last_run_at
        if last_run_at is None:
            return now
        due_at = following(self.schedule, _aware(last_run_at))
        return None if due_at is None else max(now, due_at)

    @property
    def score(self) -> int:
        """``due_at`` in whole seconds since the epoch, -1 if it is not due any more."""
        due_at = self.due_at
        return NEVER if due_at is None else to_timestamp(due_at)

    @property
    def rank(self) -> int | None:
        """Its place among all active entries by when they are due, or ``None``; looks at all."""
        return keeper_of(self.app).rank(self.name)

    @property
    def is_due(self) -> Callable[[], Any]:
        """Answer whether it is due, and in how many seconds to ask again; never while disabled.

        A property that answers Celery's own method: a method of our own would tell that the entry
        decides for itself, and not its timetable.
        """
        return MethodType(ScheduleEntry.is_due, self if self.enabled else SWITCHED_OFF)

    def save(self) -> Self:
        """Store this entry, in the place of a stored one of its name; return it.

        A new one is due as if it had run last at ``last_run_at``, which is when it was made unless
        something else was said. An interval keeps its beat over later saves until its period is
        another one.

        Raises:
            EntryExists: The code has an entry of this name.
            EntryError: It could not be sent, or its schedule or arguments are code.
            LedgerUnavailable: The ledger could not be asked.
        """
        check_name(self.name)
        fields = {key: getattr(self, key) for key in CALL}
        said = {key: value for key, value in fields.items() if value}
        keeper_of(self.app).keep(self.name, {**said, **said_by(self)}, self._last_run())
        return self

    def delete(self) -> None:
        """Remove this entry from what is stored; one that is not there is no error.

        Raises:
            NotStored: It is defined in code.
            LedgerUnavailable: The ledger could not be asked.
        """
        keeper_of(self.app).drop(self.name)

    def reschedule(self, last_run_at: datetime | None = None) -> None:
        """Have the entry go on as if it had run at ``last_run_at``, by default now.

        - What was due before is not caught up.
        - Where it would be due by now, its message is sent at once, from this process, unless it is
          disabled. It does not count as a run.
        - A stored interval is due next a period later. Other schedules, and those from code, keep
          their instants.
        - One to come holds the entry back until then, as a pause that the next reschedule ends.

        Raises:
            NoSuchEntry: There is no such entry.
            EntryPaused: It would be due at once, and is paused.
            DeliveryError: The broker did not take the message.
            LedgerUnavailable: The ledger could not be asked.
        """
        self.last_run_at = last_run_at or self.default_now()
        at = None if last_run_at is None else self._last_run()
        keeper_of(self.app).reschedule(self.name, at)

    def _next_instance(
        self, last_run_at: datetime | None = None, *, only_update_last_run_at: bool = False
    ) -> Self:
        """Return how the entry is after a run; nothing is stored: the ledger alone counts runs."""
        after: Self = super()._next_instance(last_run_at=last_run_at)
        if only_update_last_run_at:
            after.total_run_count = self.total_run_count
        return after

    __next__ = next = _next_instance

    def editable_fields_equal(self, other: ScheduleEntry) -> bool:
        """Compare the definitions; a phase counts only if both have one, and empty is empty."""
        ours, theirs = (_said(each) for each in (self, other))
        for said, fewer in ((ours, theirs), (theirs, ours)):
            if "phase" not in fewer:
                said.pop("phase", None)
        return ours == theirs

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by names: RedBeat's arguments have another order than Celery's."""
        kept = (*("name", "last_run_at", "total_run_count"), *CALL)
        return _restored, (type(self), {key: getattr(self, key) for key in kept}), said_by(self)

    def _last_run(self) -> Micros:
        last_run_at: datetime | None = self.last_run_at
        return 0 if last_run_at is None else max(0, to_micros(_aware(last_run_at)))


def _restored(cls: type[RedBeatSchedulerEntry], kept: dict[str, Any]) -> RedBeatSchedulerEntry:
    return cls(**kept)


def _aware(moment: datetime) -> datetime:
    """Return a datetime as an aware one; a naive one is in UTC, as for Celery."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _said(entry: ScheduleEntry) -> dict[str, Any]:
    call = {key: getattr(entry, key) for key in CALL}
    return {**call, "args": list(call["args"] or ()), **said_by(entry)}
