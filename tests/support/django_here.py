"""Django with django-celery-beat in the process of the tests, on a SQLite file; it runs no node.

It is configured once per process, for whichever test comes first.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
from celery import Celery
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

if TYPE_CHECKING:
    import datetime as dt


@cache
def set_up() -> None:
    """Configure Django, and make the tables."""
    # Kept until the process ends: threads of schedulers may look at it until then.
    directory = Path(tempfile.mkdtemp(prefix="redlock-django-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    database = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(directory / "site.sqlite3"),
        "OPTIONS": {"timeout": 20},
    }
    settings.configure(
        SECRET_KEY="of one run",
        INSTALLED_APPS=["django_celery_beat"],
        USE_TZ=True,
        TIME_ZONE="UTC",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        DATABASES={"default": database},
    )
    django.setup()
    call_command("migrate", verbosity=0)


def empty_tables() -> None:
    """Remove all rows, as if there had never been one."""
    from django_celery_beat import models

    kinds = (
        models.PeriodicTask,
        models.PeriodicTasks,
        models.IntervalSchedule,
        models.CrontabSchedule,
        models.SolarSchedule,
        models.ClockedSchedule,
    )
    for each in kinds:
        each.objects.all()._raw_delete(connection.alias)


def new_app(**config: Any) -> Celery:
    """Return an app whose ledger is in memory."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update({"redlock_beat_url": "memory://", "result_expires": None, **config})
    return app


def every(count: int, period: str = "seconds") -> Any:
    """Return the interval of a period."""
    from django_celery_beat.models import IntervalSchedule

    return IntervalSchedule.objects.get_or_create(every=count, period=period)[0]


def add(name: str, count: int = 3600, **columns: Any) -> Any:
    """Save a row as the admin does; it is due every hour."""
    from django_celery_beat.models import PeriodicTask

    if not any(kind in columns for kind in ("interval", "crontab", "solar", "clocked")):
        columns["interval"] = every(count)
    row = PeriodicTask(name=name, **{"task": "proj.noop", **columns})
    row.save()
    return row


def row_of(name: str) -> Any:
    """Return a row as it is now."""
    from django_celery_beat.models import PeriodicTask

    return PeriodicTask.objects.get(name=name)


def ran(name: str, at: dt.datetime) -> None:
    """Have a row look as if it had run, without a word to anybody."""
    from django_celery_beat.models import PeriodicTask

    PeriodicTask.objects.filter(name=name).update(last_run_at=at, total_run_count=1)


@contextmanager
def queries() -> Iterator[list[str]]:
    """Note what is asked of the database by this thread."""
    told: list[str] = []
    with CaptureQueriesContext(connections["default"]) as caught:
        yield told
    told += [each["sql"] for each in caught.captured_queries]
