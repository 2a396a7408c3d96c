"""Who keeps entries in Redis, and how each is given them; the same is done to all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat import Control
from celery_redlock_beat.documents import schedules

TASK = "stored.noop"
PROJECT = """
from celery import Celery

app = Celery("stored", broker={broker!r})
app.conf.update({settings!r})
"""


class Store(Protocol):
    """Entries in Redis, as operators change them; ``settings`` are what the node is given."""

    name: str
    scheduler: str

    @staticmethod
    def settings(broker: str) -> dict[str, Any]: ...

    def fill(self, number: int) -> None:
        """Store so many entries, of which none is due for months."""

    def put(self, name: str, every: float) -> None:
        """Store an entry that is due every so many seconds."""

    def change(self, name: str, what: int) -> None:
        """Call the task of an entry with something else from now on."""

    def remove(self, name: str) -> None: ...


def quiet(number: int) -> crontab:
    """Return one of thirty crontabs that are due in half a year."""
    month = (datetime.now(UTC).month + 5) % 12 + 1
    return crontab(minute=str(number % 30), hour="3", day_of_month="15", month_of_year=str(month))


def name_of(number: int) -> str:
    return f"entry-{number:06}"


@dataclass
class Redlock:
    """This scheduler, through what operators use."""

    broker: str
    name = "redlock"
    scheduler = "redlock"

    def __post_init__(self) -> None:
        self._control = Control(Celery("stored", broker=self.broker, set_as_current=False))

    @staticmethod
    def settings(_broker: str) -> dict[str, Any]:
        return {}

    def fill(self, number: int) -> None:
        times = [schedules.written(quiet(each)) for each in range(30)]
        self._control.import_(
            {
                name_of(each): {
                    "task": TASK,
                    "schedule": times[each % len(times)],
                    "kwargs": {"customer": each},
                }
                for each in range(number)
            }
        )

    def put(self, name: str, every: float) -> None:
        self._control.add(name, task=TASK, schedule=every)

    def change(self, name: str, what: int) -> None:
        self._control.update(name, kwargs={"customer": -what})

    def remove(self, name: str) -> None:
        self._control.remove(name)


@dataclass
class RedBeat:
    """RedBeat, which looks as often as this scheduler does: by default it sleeps for minutes."""

    broker: str
    name = "RedBeat"
    scheduler = "redbeat.RedBeatScheduler"

    def __post_init__(self) -> None:
        from redbeat import RedBeatSchedulerEntry  # noqa: PLC0415 - where it is installed

        self._entry = RedBeatSchedulerEntry
        self._app = Celery("stored", broker=self.broker, set_as_current=False)
        self._app.conf.redbeat_redis_url = self.broker

    @staticmethod
    def settings(broker: str) -> dict[str, Any]:
        return {"redbeat_redis_url": broker, "beat_max_loop_interval": 0.5}

    def fill(self, number: int) -> None:
        times = [quiet(each) for each in range(30)]
        for each in range(number):
            self._save(name_of(each), times[each % len(times)], {"customer": each})

    def put(self, name: str, every: float) -> None:
        self._save(name, schedule(every, app=self._app), {})

    def change(self, name: str, what: int) -> None:
        self._save(name, quiet(0), {"customer": -what})

    def remove(self, name: str) -> None:
        self._entry(name, TASK, schedule(1.0), app=self._app).delete()

    def _save(self, name: str, when: schedule, kwargs: dict[str, Any]) -> None:
        # One that never ran would be due at once.
        now = datetime.now(UTC)
        self._entry(name, TASK, when, kwargs=kwargs, last_run_at=now, app=self._app).save()


def stores() -> Sequence[type[Store]]:
    """Return those that can be measured here."""
    found: list[type[Store]] = [Redlock]
    with suppress(ImportError):
        import redbeat  # noqa: F401, PLC0415 - only to see whether it is there

        found.append(RedBeat)
    return found
