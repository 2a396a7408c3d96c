"""Run Celery beat on every node: each periodic task is sent once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.delivery.headers import CurrentTick, current_tick
from celery_redlock_beat.errors import (
    ConfigurationError,
    ControlError,
    DeliveryError,
    EntryChanged,
    EntryError,
    EntryExists,
    EntryPaused,
    LedgerError,
    LedgerRecovering,
    LedgerUnavailable,
    NoSuchEntry,
    NothingSelected,
    NotStored,
    RedlockBeatError,
    SettingError,
    TickRefused,
)
from celery_redlock_beat.scheduler import RedlockScheduler
from celery_redlock_beat.timetables import cron, once, rrule

if TYPE_CHECKING:
    from celery_redlock_beat.control import Control

__version__ = "0.1.0.dev0"

__all__ = [
    "ConfigurationError",
    "Control",
    "ControlError",
    "CurrentTick",
    "DeliveryError",
    "EntryChanged",
    "EntryError",
    "EntryExists",
    "EntryPaused",
    "LedgerError",
    "LedgerRecovering",
    "LedgerUnavailable",
    "NoSuchEntry",
    "NotStored",
    "NothingSelected",
    "RedlockBeatError",
    "RedlockScheduler",
    "SettingError",
    "TickRefused",
    "__version__",
    "cron",
    "current_tick",
    "once",
    "rrule",
]


def __getattr__(name: str) -> Any:
    """Import what only operators need, and not every worker and beat, when it is asked for."""
    if name == "Control":
        from celery_redlock_beat.control import Control  # noqa: PLC0415

        return Control
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
