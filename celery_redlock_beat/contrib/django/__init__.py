"""Entries from the tables of django-celery-beat, whose admin stays; it sends nothing itself.

``celery -A proj beat -S celery_redlock_beat.contrib.django:DatabaseScheduler`` on every node.
"""

from __future__ import annotations

try:
    import django as _django
    import django_celery_beat as _tables
except ImportError as _missing:
    raise ImportError(
        f"celery_redlock_beat.contrib.django needs {_missing.name}: install "
        "'celery-redlock-beat[django]'",
        name=_missing.name,
    ) from _missing

from celery_redlock_beat.contrib.django.scheduler import DatabaseScheduler

__all__ = ["DatabaseScheduler"]

del _django, _tables
