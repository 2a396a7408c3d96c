"""The file of stock beat is read as Celery itself wrote it, and none of what is in it is run."""

from __future__ import annotations

import dbm
import pickle
import shelve
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.beat import PersistentScheduler
from celery.schedules import crontab
from dateutil.tz import tzlocal

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.pickled_times import UnknownMoment, loaded
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
    assert read(shelved(tmp_path / "schedule", {}), UTC).last_runs == {}


@pytest.mark.parametrize("entries", [[1, 2], "text", 3])
def test_what_no_beat_has_written_is_refused(tmp_path, entries):
    with pytest.raises(ConfigurationError, match="no beat has written"):
        read(shelved(tmp_path / "schedule", entries), UTC)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "schedule").write_text("[beat]\n" * 100)
    with pytest.raises(ConfigurationError, match="--schedule"):
        read(str(tmp_path / "schedule"), UTC)


def pickled(module, name, *args):
    """Return a pickle of what a callable makes of texts and numbers, but for its end."""
    told = "".join(
        "N" if each is None else f"{'IV'[isinstance(each, str)]}{each}\n" for each in args
    )
    return f"c{module}\n{name}\n({told}tR".encode()


class TestZonesOfOtherLibraries:
    """Older Celerys and Pythons have others; what a pickle of theirs says is all that is needed."""

    def moment(self, zone):
        state = AT.replace(tzinfo=None).__reduce__()[1][0]
        return loaded(b"cdatetime\ndatetime\n(C" + bytes([len(state)]) + state + zone + b"tR.")

    @pytest.mark.parametrize(
        ("zone", "hours"),
        [
            (("pytz", "_UTC"), 0),
            (("pytz", "_p", "Europe/Berlin", 7200, 3600, "CEST"), 2),
            (("pytz", "_p", "Etc/GMT-3"), 3),
            (("pytz", "_FixedOffset", 90), 1.5),
            (("dateutil.tz.tz", "tzutc"), 0),
            (("dateutil.tz.tz", "tzfile", None, "/usr/share/zoneinfo/Europe/Berlin"), 2),
            (("backports.zoneinfo", "ZoneInfo", "Europe/Berlin"), 2),
            (("zoneinfo", "ZoneInfo._unpickle", "Europe/Berlin", 1), 2),
        ],
    )
    def test_are_understood(self, zone, hours):
        assert self.moment(pickled(*zone)).astimezone(UTC) == AT - timedelta(hours=hours)

    @pytest.mark.parametrize("zone", [("mars", "sol", 7), ("zoneinfo", "ZoneInfo", "Mars/Olympus")])
    def test_that_nobody_knows_are_told(self, zone):
        assert isinstance(self.moment(pickled(*zone)), UnknownMoment)

    def test_keep_an_entry_apart_and_hide_no_other(self, tmp_path):
        path = written(tmp_path / "schedule", {"a": AT, "b": AT})
        with closing(shelve.open(path, writeback=True)) as store:
            store["entries"]["b"].last_run_at = AT.astimezone(tzlocal())
        found = read(path, UTC)
        assert (found.last_runs["a"], found.unreadable) == (AT, ["b"])


def test_a_file_of_sqlite_is_read_by_every_python_and_nothing_is_written_beside_it(tmp_path):
    path = tmp_path / "schedule"
    entries = {"a": PickledLike("a", "t", AT, 0)}
    with closing(sqlite3.connect(path)) as store:
        store.execute("PRAGMA journal_mode = wal")
        store.execute("CREATE TABLE Dict (key BLOB UNIQUE NOT NULL, value BLOB NOT NULL)")
        store.execute("INSERT INTO Dict VALUES (?, ?)", (b"entries", pickle.dumps(entries)))
        store.commit()
        for each in tmp_path.iterdir():
            each.chmod(0o444)
        before = sorted(tmp_path.iterdir())
        assert read(str(path), UTC).last_runs == {"a": AT}
        assert sorted(tmp_path.iterdir()) == before


def test_a_database_of_something_else_is_refused(tmp_path):
    with closing(shelve.open(str(tmp_path / "schedule"))) as store:
        store["other"] = 1
    with pytest.raises(ConfigurationError, match="no beat has written"):
        read(str(tmp_path / "schedule"), UTC)


def test_a_folder_that_must_not_be_entered_is_told(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        read(str(tmp_path / "schedule"), UTC)
