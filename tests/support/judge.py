"""The package's checker, by the names that tests use; nothing is judged in here."""

from __future__ import annotations

from celery_redlock_beat.verify.books import totals
from celery_redlock_beat.verify.checker import grid, judge, judge_all
from celery_redlock_beat.verify.verdict import Verdict
from support.collector import Arrival, Collector

__all__ = ["Arrival", "Collector", "Verdict", "grid", "judge", "judge_all", "totals"]
