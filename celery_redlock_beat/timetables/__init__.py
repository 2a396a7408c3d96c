"""Schedules as sets of instants, the same for every node: one module per kind."""

from celery_redlock_beat.timetables.bounded import Bounded
from celery_redlock_beat.timetables.celery_crontab import CeleryCrontab
from celery_redlock_beat.timetables.cron import Cron, cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.kinds import check_spec, schedule_of
from celery_redlock_beat.timetables.oneoff import Once, once
from celery_redlock_beat.timetables.opaque import Opaque
from celery_redlock_beat.timetables.reading import app_zone, opaque_for, timetable_for
from celery_redlock_beat.timetables.real_crontab import RealCrontab
from celery_redlock_beat.timetables.relative import Relative
from celery_redlock_beat.timetables.rule import Rule, rrule
from celery_redlock_beat.timetables.solar import Solar
from celery_redlock_beat.timetables.terms import Terms

KINDS = (Bounded, CeleryCrontab, Cron, Interval, Once, Opaque, RealCrontab, Relative, Rule, Solar)

__all__ = [
    "KINDS",
    "Bounded",
    "CeleryCrontab",
    "Cron",
    "Interval",
    "Once",
    "Opaque",
    "RealCrontab",
    "Relative",
    "Rule",
    "Solar",
    "Terms",
    "app_zone",
    "check_spec",
    "cron",
    "once",
    "opaque_for",
    "rrule",
    "schedule_of",
    "timetable_for",
]
