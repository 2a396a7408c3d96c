"""An entry of the schedule: Celery's ScheduleEntry with our policies; it knows no time."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from celery.beat import ScheduleEntry

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.policies import PARSERS, Policies, hint_for, said_by
from celery_redlock_beat.timetables import check_spec, schedule_of

if TYPE_CHECKING:
    from datetime import datetime

    from celery import Celery


class RedlockEntry(ScheduleEntry):  # type: ignore[misc]
    """A periodic task, as in ``beat_schedule``; its schedule may be a cron string or a rule.

    Each policy (see ``Policies``) is an attribute of its key's name, as it was given.
    ``last_run_at`` and ``total_run_count`` are kept for subclasses and plugins; what was sent is
    decided by the ledger alone.

    Raises:
        ConfigurationError: Its schedule or a policy cannot be.

    """

    is_plain = True
    """Whether an entry of exactly this class is no more than what its attributes say."""

    def __init__(  # noqa: PLR0917, PLR0913 - Celery's own signature, extended
        self,
        name: str | None = None,
        task: str | None = None,
        last_run_at: datetime | None = None,
        total_run_count: int | None = None,
        schedule: Any = None,
        args: Any = (),
        kwargs: Any = None,
        options: Any = None,
        relative: bool = False,  # noqa: FBT001, FBT002 - Celery's own signature
        app: Celery | None = None,
        **policies: Any,
    ) -> None:
        if schedule is not None:
            schedule = schedule_of(schedule)
            check_spec(schedule)  # Celery sets an attribute on whatever it is
        for key in policies.keys() - PARSERS.keys():
            raise ConfigurationError(f"unknown key {key!r}; {hint_for(key, PARSERS)}")
        Policies.of(policies)
        super().__init__(
            name, task, last_run_at, total_run_count, schedule, args, kwargs, options, relative, app
        )
        self.__dict__.update(policies)

    def default_now(self) -> datetime:
        """Return the present moment as its schedule has it, or as the app does."""
        own = getattr(self.schedule, "now", None)  # it may be of any class
        now: datetime = own() if own else self.app.now()
        return now

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as Celery does, with the policies as state."""
        maker, values = super().__reduce__()[:2]
        return maker, values, said_by(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the policies back."""
        self.__dict__.update(state)

    def update(self, other: ScheduleEntry) -> None:
        """Take over the definition of another entry, policies included."""
        super().update(other)
        for key in said_by(self):
            del self.__dict__[key]
        self.__dict__.update(said_by(other))

    def editable_fields_equal(self, other: ScheduleEntry) -> bool:
        """Compare the definitions, policies included."""
        return said_by(self) == said_by(other) and bool(super().editable_fields_equal(other))


for each in fields(Policies):  # what an entry does not say
    setattr(RedlockEntry, each.name, each.default)
