"""Run Celery beat on every node: each periodic task is sent once."""

from celery_redlock_beat.delivery.headers import CurrentTick, current_tick
from celery_redlock_beat.errors import (
    ConfigurationError,
    EntryError,
    LedgerError,
    LedgerUnavailable,
    RedlockBeatError,
    SettingError,
)
from celery_redlock_beat.scheduler import RedlockScheduler
from celery_redlock_beat.timetables import cron, once, rrule

__version__ = "0.1.0.dev0"

__all__ = [
    "ConfigurationError",
    "CurrentTick",
    "EntryError",
    "LedgerError",
    "LedgerUnavailable",
    "RedlockBeatError",
    "RedlockScheduler",
    "SettingError",
    "__version__",
    "cron",
    "current_tick",
    "once",
    "rrule",
]
