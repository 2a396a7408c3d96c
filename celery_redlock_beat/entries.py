"""An entry of the schedule: Celery's ScheduleEntry with our policies; it knows no time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery.beat import ScheduleEntry

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import CATCH_UP
from celery_redlock_beat.timetables import check_spec, cron

if TYPE_CHECKING:
    from datetime import datetime

    from celery import Celery


class RedlockEntry(ScheduleEntry):  # type: ignore[misc]
    """A periodic task, as in ``beat_schedule``; a string as its schedule is a cron string.

    ``catch_up`` is ``"latest"``, ``"all"``, ``"none"``, or ``None`` for the setting's value.
    ``last_run_at`` and ``total_run_count`` are kept for subclasses and plugins; what was sent is
    decided by the ledger alone.
    """

    catch_up: str | None = None

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
        catch_up: str | None = None,
    ) -> None:
        if isinstance(schedule, str):
            schedule = cron(schedule)
        elif schedule is not None:
            check_spec(schedule)  # Celery sets an attribute on whatever it is
        if catch_up is not None and catch_up not in CATCH_UP:
            known = ", ".join(repr(value) for value in CATCH_UP)
            msg = f"catch_up = {catch_up!r} is not one of {known}"
            raise ConfigurationError(msg)
        super().__init__(
            name, task, last_run_at, total_run_count, schedule, args, kwargs, options, relative, app
        )
        self.catch_up = catch_up

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as Celery does, with the policies as state."""
        maker, values = super().__reduce__()[:2]
        return maker, values, {"catch_up": self.catch_up}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the policies back."""
        self.__dict__.update(state)

    def update(self, other: ScheduleEntry) -> None:
        """Take over the definition of another entry, policies included."""
        super().update(other)
        self.catch_up = getattr(other, "catch_up", None)

    def editable_fields_equal(self, other: ScheduleEntry) -> bool:
        """Compare the definitions, policies included."""
        same_policies = self.catch_up == getattr(other, "catch_up", None)
        return same_policies and bool(super().editable_fields_equal(other))
