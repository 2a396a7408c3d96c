"""RFC 5545 recurrence rules, from their text to instants; python-dateutil does the reckoning.

text       lines and parts of a rule, as users write them (parts, checks)
objects    the same, out of objects of python-dateutil
meaning    what a text means in a zone, with all that it leaves unsaid; spelling is the way back
recurrence one rule as a row of local times (periods)
instants   rules and dates together, put into the zone
table      the timetable
schedule   the schedule class for users
"""

from celery_redlock_beat.timetables.rule.schedule import rrule, rule_of
from celery_redlock_beat.timetables.rule.table import Rule
from celery_redlock_beat.timetables.rule.text import is_rule_text

__all__ = ["Rule", "is_rule_text", "rrule", "rule_of"]
