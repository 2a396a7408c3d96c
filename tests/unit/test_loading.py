"""The schedule of an app as it is loaded to be looked at."""

import sys
from types import ModuleType

import pytest
from celery import Celery
from celery.signals import import_modules

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.diagnostics.schedules.loading import Schedule, scheduler_class
from celery_redlock_beat.errors import SettingError
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


@pytest.fixture
def late(tmp_path, monkeypatch):
    """A scheduler that can be imported once the app's modules are, as one with models of Django."""
    text = "import made_late\nfrom celery_redlock_beat import RedlockScheduler as Late\n"
    (tmp_path / "late_scheduler.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("late_scheduler", "made_late"):
        monkeypatch.setitem(sys.modules, name, None)  # so that it is as before in the end
        del sys.modules[name]
    app = app_with(pulse=PULSE)
    app.conf.beat_scheduler = "late_scheduler:Late"
    return app


def test_a_scheduler_that_wants_modules_to_be_imported_first_is_found_as_by_beat(late):
    def make(sender, **_):
        sys.modules["made_late"] = ModuleType("made_late")

    import_modules.connect(make, sender=late)
    try:
        assert scheduler_class(late).__module__ == "celery_redlock_beat.scheduler"
        assert "pulse" in Schedule(late).names
    finally:
        import_modules.disconnect(make, sender=late)


def test_one_that_cannot_be_imported_at_all_is_told(late):
    with pytest.raises(SettingError, match=r"cannot be imported .*made_late"):
        scheduler_class(late)
