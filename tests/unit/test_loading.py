"""The schedule of an app as it is loaded to be looked at."""

from celery import Celery

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.diagnostics.schedules.loading import Schedule
from celery_redlock_beat.heartbeat import fingerprint_of

PULSE = {"task": "proj.pulse", "schedule": 30}


def app_with(**schedule):
    app = Celery("proj", broker="memory://", set_as_current=False)
    app.conf.update(redlock_beat_url="memory://", beat_schedule=schedule)
    return app


def told_by_a_node(app):
    return fingerprint_of(sorted(RedlockScheduler(app=app).roster.facts()))


def test_its_fingerprint_is_what_a_node_tells_also_of_disabled_entries():
    app = app_with(pulse=PULSE, off={**PULSE, "enabled": False}, bad={**PULSE, "schedule": -1})
    assert Schedule(app).fingerprint == told_by_a_node(app)


def test_its_fingerprint_is_another_one_where_the_code_is():
    one, other = app_with(pulse=PULSE), app_with(pulse={**PULSE, "task": "proj.other"})
    assert Schedule(one).fingerprint != Schedule(other).fingerprint
