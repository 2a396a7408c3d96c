"""The file for probes: written as a whole, never in the way, and gone after a clean end."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.health_file import Health, HealthFile, read
from support.command_line import run_redlock
from support.requirements import has_program, require

PAGE = Path(__file__).parents[2] / "docs" / "health.md"
NOW = 1_900_000_000.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "beat-health"


@pytest.fixture
def file(path):
    return HealthFile(str(path))


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def text_of(**changes):
    told = {"format": 1, "node": "one", "pid": 7, "at": NOW, "ready": True, "problems": []}
    return json.dumps({**told, **changes})


class TestWriting:
    def test_it_tells_how_the_node_stands(self, file, path):
        file.write("one", ["the ledger is away"], NOW)
        assert json.loads(path.read_text()) == {
            "format": 1,
            "node": "one",
            "pid": os.getpid(),
            "at": NOW,
            "ready": False,
            "problems": ["the ledger is away"],
        }

    def test_a_node_without_problems_is_ready(self, file, path):
        file.write("one", [], NOW)
        assert '"ready": true' in path.read_text()  # as probes without Python look for it

    def test_it_is_written_at_most_once_a_second(self, file, path):
        file.write("one", [], NOW)
        file.write("one", ["away"], NOW + 0.9)
        assert read(path).ready
        file.write("one", ["away"], NOW + 1)
        assert not read(path).ready

    def test_a_clock_that_is_set_back_does_not_stop_it(self, file, path):
        file.write("one", [], NOW)
        file.write("one", [], NOW - 3600)
        assert read(path).at == NOW - 3600

    def test_nobody_ever_sees_half_of_it(self, file, path, monkeypatch):
        file.write("one", [], NOW)
        monkeypatch.setattr("json.dump", full)
        file.write("one", ["away"], NOW + 1)
        assert read(path).at == NOW
        assert list(path.parent.iterdir()) == [path]

    def test_others_may_read_it(self, file, path):
        before = os.umask(0o022)
        file.write("one", [], NOW)
        os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644

    def test_what_was_left_of_a_process_of_this_number_is_no_obstacle(self, file, path):
        target = path.with_name("precious")
        target.write_text("precious")
        path.with_name(f".{path.name}.{os.getpid()}").symlink_to(target)
        file.write("one", [], NOW)
        assert read(path).node == "one"
        assert target.read_text() == "precious"

    def test_its_path_stays_the_same_when_the_directory_changes(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        file = HealthFile("beat-health")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        file.write("one", [], NOW)
        assert (tmp_path / "beat-health").exists()


class TestTrouble:
    def test_a_full_disk_is_told_once_and_its_end_too(self, file, path, monkeypatch, caplog):
        with monkeypatch.context() as disk:
            disk.setattr("json.dump", full)
            for second in range(5):
                file.write("one", [], NOW + second)
        file.write("one", [], NOW + 9)
        assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
        assert "No space left" in caplog.text
        assert read(path).at == NOW + 9

    def test_a_folder_that_goes_away_stops_nothing(self, tmp_path, caplog):
        folder = tmp_path / "run"
        folder.mkdir()
        file = HealthFile(str(folder / "beat"))
        file.write("one", [], NOW)
        (folder / "beat").unlink()
        folder.rmdir()
        file.write("one", [], NOW + 1)
        file.close()
        assert "No such file" in caplog.text

    @pytest.mark.parametrize(
        ("place", "says"),
        [("missing/beat", "there is no folder '.*missing', make it"), (".", "is a folder")],
    )
    def test_a_path_where_no_file_can_be_ends_the_start(self, tmp_path, place, says):
        with pytest.raises(SettingError, match=f"redlock_beat_health_file = '.*{says}"):
            HealthFile(str(tmp_path / place)).check()

    def test_a_path_where_one_can_be_does_not(self, file):
        file.check()


class TestEnd:
    def test_it_is_gone_after_a_clean_end(self, file, path):
        file.write("one", [], NOW)
        file.close()
        file.close()
        assert list(path.parent.iterdir()) == []

    def test_nothing_is_written_after_it(self, file, path):
        file.close()
        file.write("one", [], NOW)
        assert not path.exists()

    @pytest.mark.parametrize("other", [{"node": "two"}, {"pid": 1}])
    def test_the_file_of_another_process_stays(self, file, path, other):
        file.write("one", [], NOW)
        path.write_text(text_of(**{"node": "one", "pid": os.getpid(), **other}))
        file.close()
        assert path.exists()

    def test_a_process_that_was_forked_off_does_not_remove_it(self, file, path, monkeypatch):
        file.write("one", [], NOW)
        monkeypatch.setattr("os.getpid", lambda: -1)
        file.close()
        assert path.exists()

    def test_an_end_in_the_middle_of_a_write_leaves_nothing(self, file, path, monkeypatch):
        real = json.dump

        def interrupted(*what):
            real(*what)
            file.close()  # as in the handler of a signal
            raise SystemExit

        monkeypatch.setattr("json.dump", interrupted)
        with pytest.raises(SystemExit):
            file.write("one", [], NOW)
        assert list(path.parent.iterdir()) == []

    def test_one_that_cannot_be_removed_is_told(self, file, monkeypatch, caplog):
        file.write("one", [], NOW)
        monkeypatch.setattr(Path, "unlink", full)
        file.close()
        assert "cannot be removed" in caplog.text


class TestReading:
    def test_what_was_written_is_read(self, file, path):
        file.write("one", ["away"], NOW)
        assert read(path) == Health("one", os.getpid(), NOW, ready=False, problems=["away"])

    def test_a_file_that_is_not_there_is_told(self, path):
        assert "does not run, or has not begun" in read(path)

    def test_a_folder_is_told(self, tmp_path):
        assert "cannot be read" in read(tmp_path)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "7",
            "null",
            "[" * 90_000,
            "\x00",
            "{}",
            text_of(at=None),
            text_of(at="x"),
            text_of(at=float("nan")),
            text_of(pid=float("inf")),
            text_of(problems=7),
        ],
    )
    def test_what_is_no_health_file_is_told(self, path, text):
        path.write_text(text)
        assert "is no health file" in read(path)

    def test_the_file_of_another_release_is_told(self, path):
        path.write_text(text_of(format=2))
        assert "its format is 2" in read(path)

    def test_only_true_is_ready(self, path):
        path.write_text(text_of(ready="false"))
        assert not read(path).ready


def blocks(kind):
    """The snippets of the page on health, of one kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def probes(told):
    """Every command of every probe in a document, by the kind of the probe."""
    found = []
    for key, value in told.items() if isinstance(told, dict) else enumerate(told):
        if isinstance(value, dict | list):
            found += probes(value)
        if str(key).endswith("Probe"):
            found.append((key, value["exec"]["command"]))
    return found


DOCUMENTS = list(map(yaml.safe_load, blocks("yaml")))
PROBES = [probe for document in DOCUMENTS for probe in probes(document)]
IN_SHELL = [(kind, command[2]) for kind, command in PROBES if command[:2] == ["sh", "-c"]]
WITH_PYTHON = [(kind, command) for kind, command in PROBES if command[0] == "celery"]


class TestPage:
    def test_its_documents_are_what_they_claim(self):
        kinds = [each.get("kind") for each in DOCUMENTS]
        assert kinds == ["Deployment", None, "Deployment", "CronJob"]
        assert [kind for kind, _ in IN_SHELL].count("livenessProbe") == 2
        assert len(PROBES) == len(IN_SHELL) + len(WITH_PYTHON) == 7

    def test_each_deployment_selects_its_own_pods_and_has_its_volumes(self):
        for each in DOCUMENTS:
            if each.get("kind") != "Deployment":
                continue
            pod = each["spec"]["template"]
            assert each["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
            named = {volume["name"] for volume in pod["spec"]["volumes"]}
            (container,) = pod["spec"]["containers"]
            assert {mount["name"] for mount in container["volumeMounts"]} == named

    def test_its_file_is_what_beat_writes(self, file, path):
        (shown,) = map(json.loads, blocks("json"))
        file.write(shown["node"], shown["problems"], shown["at"])
        assert {**json.loads(path.read_text()), "pid": shown["pid"]} == shown

    @pytest.mark.skipif(sys.platform != "linux", reason="containers run Linux")
    @pytest.mark.parametrize(("kind", "script"), IN_SHELL)
    @pytest.mark.parametrize("shell", ["sh", "bash"])
    def test_probes_without_python_tell_the_living_from_the_dead(
        self, file, path, kind, script, shell
    ):
        require(shell, has_program(shell))
        needs_ready = kind == "readinessProbe"

        def is_green():
            words = [shell, "-c", script.replace("/run/beat/health", str(path))]
            return subprocess.run(words, capture_output=True, check=False).returncode == 0

        assert not is_green()
        file.write("one", [], NOW)
        assert is_green()
        file.write("one", ["away"], NOW + 1)
        assert is_green() is not needs_ready
        file.write("one", [], NOW + 2)
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 60))
        assert not is_green()

    @pytest.mark.parametrize(("kind", "command"), WITH_PYTHON)
    def test_the_command_tells_them_apart_as_well(self, file, path, kind, command):
        words = [str(path) if each == "/run/beat/health" else each for each in command[2:]]
        assert command[:2] == ["celery", "redlock"]

        def exits():
            return run_redlock(*words).exit_code

        assert exits() == 1
        file.write("one", [], time.time() - 60)
        assert exits() == 1
        file.write("one", ["away"], time.time() - 2)
        assert exits() == (0 if "--live" in words else 1)
        file.write("one", [], time.time())
        assert exits() == 0
        assert ("--live" in words) == (kind == "livenessProbe")
