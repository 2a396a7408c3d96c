"""What an app's schedule says, in words and as the next ticks, and what is wrong with it.

Nothing in here needs a server, prints, or asks what time it is.
"""

from __future__ import annotations

from celery_redlock_beat.diagnostics.schedules.checking import ScheduleReport, check_schedule
from celery_redlock_beat.diagnostics.schedules.explanation import Explanation, explained
from celery_redlock_beat.diagnostics.schedules.forthcoming import Forthcoming, Outlook, Question
from celery_redlock_beat.diagnostics.schedules.loading import Schedule, load
from celery_redlock_beat.diagnostics.schedules.plain_language import MISSING

__all__ = [
    "MISSING",
    "Explanation",
    "Forthcoming",
    "Outlook",
    "Question",
    "Schedule",
    "ScheduleReport",
    "check_schedule",
    "explained",
    "load",
]
