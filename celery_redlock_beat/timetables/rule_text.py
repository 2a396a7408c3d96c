"""TEMPORARY, until its importer names the new place: timetables.rule.text."""

from celery_redlock_beat.timetables.rule.text import RuleText, read

__all__ = ["RuleText", "read"]
