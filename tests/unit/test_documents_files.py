"""Files of entries: both kinds, with and without an envelope; one bad entry among good ones."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat.documents import files
from celery_redlock_beat.documents.entries import written
from celery_redlock_beat.documents.json_text import LONGEST
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import ConfigurationError, EntryError

APP = Celery("shop", set_as_current=False)
ENTRIES = {
    "nightly": written("nightly", {"task": "proj.add", "schedule": "0 3 * * *", "args": [1]}),
    "größe": written("größe", {"task": "proj.sub", "schedule": 30, "kwargs": {"on": "off"}}),
}
YAML = """\
format: 1
entries:
  nightly:
    format: 1
    task: proj.add
    schedule:
      kind: cron
      expression: 0 3 * * *
    args:
    - 1
  größe:
    format: 1
    task: proj.sub
    schedule:
      kind: interval
      every: 30
    kwargs:
      'on': 'off'
"""


def one_of_yaml(lines):
    loaded = files.load(f"a:\n  task: t\n  schedule: 30\n{lines}", "yaml")
    assert not loaded.problems
    return json.loads(loaded.documents["a"])


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_a_file_is_read_as_it_was_written(kind):
    text = files.dump(ENTRIES, kind)
    assert files.load(text, kind) == (ENTRIES, {})
    assert files.load(text.encode(), kind) == (ENTRIES, {})
    documents = {name: json.loads(each) for name, each in ENTRIES.items()}
    assert files.dump(documents, kind) == text


def test_yaml_is_written_for_people():
    assert files.dump(ENTRIES, "yaml") == YAML


def test_json_is_written_for_people():
    text = files.dump(ENTRIES, "json")
    assert text.startswith('{\n  "format": 1,\n  "entries": {\n    "nightly": {\n')
    assert '"größe"' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_names_and_entries_need_no_envelope(kind):
    plain = json.dumps({name: json.loads(each) for name, each in ENTRIES.items()})
    assert files.load(plain, kind) == (ENTRIES, {})  # JSON is YAML, too


def test_an_entry_may_have_a_name_of_the_envelope():
    text = json.dumps({"entries": {"task": "t", "schedule": 5}})
    assert files.load(text, "json").documents.keys() == {"entries"}
    text = json.dumps({"format": {"task": "t", "schedule": 5}})
    assert files.load(text, "json").documents.keys() == {"format"}
    text = json.dumps({"entries": {"task": {"task": "t", "schedule": 5}}})
    assert files.load(text, "json").documents.keys() == {"task"}


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_a_bad_entry_does_not_stop_the_others(kind):
    text = """{
        "good": {"task": "t", "schedule": 5},
        "bad": {"task": "t"},
        "none": null,
        "": {"task": "t", "schedule": 5},
        "key": {"task": "t", "schedule": {"kind": "interval", "every": 1, "every": 2}},
        "twice": {"task": "t", "schedule": 5},
        "twice": {"task": "u", "schedule": 5},
        "type": {"task": "t", "schedule": 5, "args": [{"__type__": "x", "__value__": 1}]}
    }"""
    documents, problems = files.load(text, kind)
    assert documents.keys() == {"good"}
    assert problems["bad"] == "it has no 'schedule'; add that key"
    assert problems["none"] == "it must be an object with 'task' and 'schedule', not null"
    assert problems[""] == "its name is empty; give it one"
    assert problems["key"] == "its key 'every' is there twice; keep one of them"
    assert problems["twice"] == "its name is there twice; keep one of them"
    assert "args[0]" in problems["type"]


def test_a_name_that_is_no_text_is_told():
    documents, problems = files.load("5: {task: t, schedule: 5}\na: {task: t, schedule: 5}", "yaml")
    assert documents.keys() == {"a"}
    assert problems == {"5": "its name must be a text; write it in quotes"}


@pytest.mark.parametrize("kind", ["json", "yaml"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("null", "there is nothing in it"),
        ("[]", "it must be an object of entries by name, .*, not a list"),
        ('"a"', "not a text"),
        ('{"task": "t", "schedule": 5}', "one entry without a name"),
        ('{"format": 2, "entries": {}}', "its format is 2"),
        ('{"format": 1, "entires": {}}', "unknown key 'entires' in it; did you mean 'entries'?"),
        ('{"format": 1}', "'entries' must be an object of entries by name, not null"),
        ('{"entries": []}', "'entries' must be .* not a list"),
        ('{"entries": {}, "entries": {}}', "its key 'entries' is there twice"),
        ('{"a": ', "it is no (JSON|YAML)"),
        (b"\xff", "it is not UTF-8"),
        ("[" * 100_000, "deep"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_a_file_that_is_none_is_refused(text, words, kind):
    with pytest.raises(ConfigurationError, match=words):
        files.load(text, kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n---\n",
        "a: !!python/name:os.system",
        "a: *b",
        "? [1]\n: 2",
        "a: !!int x",
        "!!bool x",
        "a: !!timestamp 2026-01-01",
        "\x00",
        "a: &a [*a",
        f"a: {'9' * 5000}",
        "a: !!binary x",
    ],
    ids=lambda value: value[:20],
)
def test_yaml_that_json_could_not_tell_is_refused(text):
    with pytest.raises(ConfigurationError):
        files.load(text, "yaml")


def test_a_file_without_entries_is_one():
    assert files.load("{}", "json") == ({}, {})
    assert files.load('{"entries": {}}', "yaml") == ({}, {})


def test_words_that_only_yaml_takes_for_something_else_are_texts():
    words = ["on", "Off", "yes", "n", "010", "0o10", "0x1F", "1_000", "12:30", "2026-12-31", ".inf"]
    read = one_of_yaml(f"  args: [{', '.join(words)}, =]")
    assert read["args"] == [*words, "="]
    read = one_of_yaml("  args: [10, -5, 1.5, 1e3, true, False, null, ~]")
    assert read["args"] == [10, -5, 1.5, 1000.0, True, False, None, None]
    assert one_of_yaml("  start: 2026-12-31T18:00:00")["start"] == "2026-12-31T18:00:00"
    assert one_of_yaml("  end: 2026-12-31 18:00:00+01:00")["end"] == "2026-12-31T18:00:00+01:00"


def test_a_flag_that_only_old_yaml_knows_is_told():
    problems = files.load("a: {task: t, schedule: 5, enabled: yes}", "yaml").problems
    assert "write one of them, without quotes" in problems["a"]
    problems = files.load("a: {task: t, schedule: 5, start: 2026-12-31}", "yaml").problems
    assert "with the time of day" in problems["a"]


def test_crontab_fields_need_no_quotes_where_yaml_allows():
    text = "a: {task: t, schedule: {kind: crontab, minute: 0, hour: 08, day_of_week: mon-fri}}"
    read = json.loads(files.load(text, "yaml").documents["a"])["schedule"]
    assert (read["minute"], read["hour"], read["day_of_week"]) == (0, "08", "mon-fri")


def test_aliases_and_merges_work_and_overriding_is_no_repetition():
    text = """
        a: &base
          task: t
          schedule: 5
          options: &options {queue: low}
        b:
          <<: *base
          schedule: 6
          options: *options
        c: {<<: *base, task: u}
    """
    documents, problems = files.load(text, "yaml")
    assert not problems
    assert json.loads(documents["b"])["schedule"]["every"] == 6
    assert json.loads(documents["b"])["options"] == {"queue": "low"}
    assert json.loads(documents["c"])["task"] == "u"


def test_little_yaml_that_makes_much_is_refused_in_time():
    lines = "x0: &x0 [lol, lol]\n" + "".join(
        f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    text = f"{lines}a: {{task: t, schedule: 5, args: *x29}}\nb: {{task: t, schedule: 5}}"
    documents, problems = files.load(text, "yaml")
    assert documents.keys() == {"b"}
    assert "longer than" in problems["a"]
    text = "a: {task: t, schedule: 5, args: &x [*x]}"
    assert "levels deep" in files.load(text, "yaml").problems["a"]


def test_an_unknown_kind_is_told():
    with pytest.raises(ConfigurationError, match=r"'yml'; did you mean 'yaml'\?"):
        files.load("{}", "yml")
    with pytest.raises(ConfigurationError, match="use 'json' or 'yaml'"):
        files.dump({}, "toml")


def test_a_text_that_is_no_json_is_not_written():
    with pytest.raises(EntryError, match="entry 'a': it is no JSON"):
        files.dump({"a": "{"}, "json")


@pytest.mark.parametrize("document", [{"a": float("nan")}, {"a": {1, 2}}, {"a": "\ud800"}])
def test_a_document_that_is_no_json_is_not_written(document):
    with pytest.raises(EntryError, match="entry 'a': "):
        files.dump({"a": document}, "yaml")


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_what_limits_an_entry_does_not_limit_a_file(kind):
    fields = {"task": "t", "schedule": 5, "description": "x" * (LONGEST - 500)}
    entries = {name: written(name, fields) for name in "abc"}
    assert files.load(files.dump(entries, kind), kind) == (entries, {})


def test_a_document_of_a_later_release_comes_out_as_it_is():
    document = {"format": 2, "job": "t"}
    text = files.dump({"a": document}, "json")
    assert json.loads(text)["entries"]["a"] == document
    assert "its format is 2" in files.load(text, "json").problems["a"]


def test_without_pyyaml_json_works_and_yaml_tells_how(monkeypatch):
    for name in [each for each in sys.modules if each.split(".")[0] == "yaml"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "celery_redlock_beat.documents.yaml_text", raising=False)
    monkeypatch.delattr("celery_redlock_beat.documents.yaml_text", raising=False)
    assert files.load(files.dump(ENTRIES, "json"), "json") == (ENTRIES, {})
    with pytest.raises(ConfigurationError, match=r'pip install "celery-redlock-beat\[cli\]"'):
        files.load("{}", "yaml")
    with pytest.raises(ConfigurationError, match="PyYAML"):
        files.dump({}, "yaml")


def test_a_beat_schedule_is_exported_and_code_is_told_by_name():
    class Own(crontab):
        pass

    class Broken(dict):
        def get(self, *_):
            raise RuntimeError("no")

    entry = RedlockEntry(name="entry", app=APP, task="t", schedule=5)
    documents, problems = files.from_beat_schedule(
        {
            "good": {"task": "t", "schedule": crontab(0), "jitter": timedelta(seconds=5)},
            "entry": entry,
            "own": {"task": "t", "schedule": Own()},
            "broken": Broken(),
            "call": {"task": "t", "schedule": 5, "args": [print]},
            "bad": {"task": "t", "schedule": 5, "jiter": 5},
            5: {"task": "t", "schedule": 5},
        }
    )
    assert json.loads(documents["good"])["jitter"] == 5
    assert json.loads(documents["entry"])["schedule"] == {"kind": "interval", "every": 5}
    assert documents.keys() == {"good", "entry"}
    assert "Own is code" in problems["own"]
    assert problems["broken"] == "it cannot be read: RuntimeError: no"
    assert problems["call"].startswith("args[0] has a value of the class builtin_function")
    assert "did you mean 'jitter'" in problems["bad"]
    assert "its name must be a text" in problems["5"]


def test_entries_of_add_periodic_task_are_exported_with_their_policies():
    app = Celery("shop", set_as_current=False)

    @app.task(name="t", shared=False)
    def task():
        """Do nothing."""

    app.add_periodic_task(60, task.s(1), jitter=5, priority=3)
    documents, problems = files.from_beat_schedule(app.conf.beat_schedule)
    assert not problems
    told = json.loads(documents["t(1)"])
    assert told["jitter"] == 5
    assert told["options"] == {"priority": 3}
