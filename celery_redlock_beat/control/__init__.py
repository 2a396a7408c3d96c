"""What operators can do and ask, as an API; the command line prints it, and pages show it."""

from __future__ import annotations

from celery_redlock_beat.control.api import Control
from celery_redlock_beat.control.views import (
    EntryView,
    Fired,
    Health,
    HistoryRecord,
    Imported,
    NodeView,
    Origin,
    Paused,
    Result,
    Resumed,
    Seeded,
    State,
    Upcoming,
    Why,
    as_dict,
)

__all__ = [
    "Control",
    "EntryView",
    "Fired",
    "Health",
    "HistoryRecord",
    "Imported",
    "NodeView",
    "Origin",
    "Paused",
    "Result",
    "Resumed",
    "Seeded",
    "State",
    "Upcoming",
    "Why",
    "as_dict",
]
