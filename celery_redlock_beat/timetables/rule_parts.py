"""TEMPORARY, until its importer names the new place: timetables.rule.parts."""

from celery_redlock_beat.timetables.rule.parts import Parts, Stamp

__all__ = ["Parts", "Stamp"]
