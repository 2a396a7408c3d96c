"""The file of stock beat is read as Celery itself wrote it, and none of what is in it is run."""

from __future__ import annotations

import dbm
import shelve
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.shelve_file import read

BERLIN = ZoneInfo("Europe/Berlin")
AT = datetime(2026, 3, 29, 12, 0, 0, 1500, UTC)
KINDS = [
    kind
    for kind, module in {"dumb": "", "gnu": "_gdbm", "ndbm": "_dbm", "sqlite3": "_sqlite3"}.items()
    if find_spec(f"dbm.{kind}") and (not module or find_spec(module))
]


def written(path, last_runs, **conf):
    """Have stock beat write a file, as it does when it is stopped."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(conf)
    app.conf.beat_schedule = {
        name: {"task": "t", "schedule": crontab(minute=3) if name == "crontab" else 30.0}
        for name in last_runs
    }
    scheduler = PersistentScheduler(app, schedule_filename=str(path))
    for name, at in last_runs.items():
        scheduler.schedule[name].last_run_at = at
    scheduler.close()
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_each_kind_that_this_python_has_is_read(tmp_path, monkeypatch, kind):
    with dbm.open(str(tmp_path / "any"), "c"):  # from then on it knows all kinds
        monkeypatch.setattr(dbm, "_defaultmod", import_module(f"dbm.{kind}"))
    path = written(tmp_path / "schedule", {"interval": AT, "crontab": AT})
    found = read(path, UTC)
    assert {found.last_runs[name] for name in ("interval", "crontab")} == {AT}
    assert "celery.backend_cleanup" in found.last_runs
    assert datetime.now(UTC) - found.written < timedelta(minutes=1)


@pytest.mark.parametrize(
    "at",
    [
        AT,
        AT.astimezone(BERLIN),
        AT.astimezone(timezone(timedelta(hours=-3))),
        AT.replace(tzinfo=None),
    ],
)
def test_every_way_to_write_a_time_is_the_same_instant(tmp_path, at):
    assert read(written(tmp_path / "schedule", {"a": at}), BERLIN).last_runs["a"] == AT


def test_a_time_without_an_offset_is_local_where_celery_did_not_keep_utc(tmp_path):
    local = AT.astimezone(BERLIN).replace(tzinfo=None)
    path = written(tmp_path / "schedule", {"a": local}, enable_utc=False, timezone="Europe/Berlin")
    assert read(path, BERLIN).last_runs["a"] == AT


def test_nothing_is_changed_by_reading(tmp_path):
    path = written(tmp_path / "schedule", {"a": AT})
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    read(path, UTC)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


class Trap:
    """Something that writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def shelved(path, entries):
    with closing(shelve.open(str(path))) as store:
        store["entries"] = entries
    return str(path)


class PickledLike:
    """An object that is pickled as Celery pickles an entry: what makes it, and what of."""

    def __init__(self, *args):
        self.args = args

    def __reduce__(self):
        return PickledLike, self.args


def test_code_in_it_is_not_run_and_its_classes_need_not_be_there(tmp_path):
    trap = Trap(tmp_path / "sprung")
    path = shelved(tmp_path / "schedule", {"a": PickledLike("a", "t", AT, 0, trap, [trap], {})})
    assert read(path, UTC).last_runs == {"a": AT}
    assert not (tmp_path / "sprung").exists()


class Filled(dict):
    """A class that a pickle fills item by item."""


def test_objects_of_every_shape_are_passed_over(tmp_path):
    odd = [Filled(a=1), {1, 2}, frozenset([1]), BERLIN, timedelta(1), range(3), Filled]
    path = shelved(tmp_path / "schedule", {"a": PickledLike("a", "t", AT, 0, odd)})
    assert read(path, UTC).last_runs == {"a": AT}


def test_an_entry_whose_time_cannot_be_told_does_not_hide_the_others(tmp_path):
    entries = {
        "never": PickledLike("a", "t", None, 0),
        "short": PickledLike("a"),
        "good": PickledLike("a", "t", AT, 0),
    }
    assert read(shelved(tmp_path / "schedule", entries), UTC).last_runs == {"good": AT}


def test_without_a_file_it_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "schedule"), UTC)


def test_an_empty_one_has_no_entries(tmp_path):
    with closing(shelve.open(str(tmp_path / "schedule"))) as store:
        store["other"] = 1
    assert read(str(tmp_path / "schedule"), UTC).last_runs == {}


@pytest.mark.parametrize("entries", [[1, 2], "text", 3])
def test_what_no_beat_has_written_is_refused(tmp_path, entries):
    with pytest.raises(ConfigurationError, match="no beat has written"):
        read(shelved(tmp_path / "schedule", entries), UTC)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "schedule").write_text("[beat]\n" * 100)
    with pytest.raises(ConfigurationError, match="--schedule"):
        read(str(tmp_path / "schedule"), UTC)
