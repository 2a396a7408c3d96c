"""What the README and the documentation say: snippets run, links lead somewhere, names exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from celery import Celery
from kombu.utils.imports import symbol_by_name

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.policies import PARSERS
from celery_redlock_beat.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SCHEDULES = ROOT / "docs" / "schedules.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
RUN = [README, ROOT / "docs" / "quickstart.md"]


def name_of(path):
    return str(path.relative_to(ROOT))


def snippets(page):
    """The Python snippets of a page, also those that are indented under a tab."""
    blocks = re.findall(
        r"^( *)```python\n(.*?)^\1```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(text) for _, text in blocks]


def anchors(page):
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_snippet_compiles(page):
    for snippet in snippets(page):
        compile(snippet, name_of(page), "exec")


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_python_snippet_runs_in_the_order_of_the_page(page, tmp_path):
    assert snippets(page)
    for number, snippet in enumerate(snippets(page)):
        named = re.match(r"# (\w+\.py)\n", snippet)
        script = tmp_path / (named[1] if named else f"snippet{number}.py")
        script.write_text(snippet)
        done = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_every_entry_of_the_readme_is_one_that_can_be_sent():
    (config,) = [each for each in snippets(README) if each.startswith("# celeryconfig.py")]
    found: dict[str, object] = {}
    exec(config, found)
    app = Celery("shop")
    app.conf.update({name: found[name] for name in ("broker_url", "beat_schedule")})
    scheduler = RedlockScheduler(app)
    assert not scheduler.roster.faults
    assert found["beat_schedule"].keys() <= scheduler.schedule.keys()
    for slot in scheduler.roster.slots():
        assert slot.timetable.next_after(0)


def test_every_entry_of_the_page_on_schedules_is_one_that_can_be_sent():
    pytest.importorskip("ephem")
    (config,) = [each for each in snippets(SCHEDULES) if each.startswith("# celeryconfig.py")]
    found: dict[str, object] = {}
    exec(config, found)
    app = Celery("shop", set_as_current=False)
    app.conf.update({name: found[name] for name in ("timezone", "beat_schedule")})
    app.conf.redlock_beat_strict = True
    app.conf.redlock_beat_url = "redis://localhost:6379/0"
    scheduler = RedlockScheduler(app)
    assert found["beat_schedule"].keys() <= {slot.name for slot in scheduler.roster.slots()}


def test_every_policy_is_on_the_page_on_schedules():
    text = SCHEDULES.read_text("utf-8").partition("## Policies")[2]
    keys = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    assert set(re.findall(r"\w+", " ".join(keys))) == PARSERS.keys()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_file_leads_to_one(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_setting_that_is_named_is_one(page):
    known = {PREFIX + each.name for each in fields(Settings)} - {f"{PREFIX}cron_starting_deadline"}
    named = set(re.findall(rf"\b{PREFIX}\w+", page.read_text("utf-8").lower()))
    assert named - known <= {PREFIX}


def test_the_defaults_in_the_readme_are_those_of_the_settings():
    rows = re.findall(rf"^\| `{PREFIX}(\w+)` \| (\S+) \|", README.read_text("utf-8"), re.MULTILINE)
    told = {name: value.strip('`"') for name, value in rows}
    assert {"delivery", "catch_up", "lease"} <= told.keys()
    for name, value in told.items():
        default = getattr(Settings(), name)
        assert value == (f"{default:g}" if isinstance(default, float) else default)


def test_the_names_of_the_scheduler_in_the_readme_lead_to_it():
    text = README.read_text("utf-8")
    assert "celery -A proj beat -S redlock`" in text
    (found,) = entry_points(group="celery.beat_schedulers", name="redlock")
    assert found.load() is RedlockScheduler
    for name in re.findall(r"\bcelery_redlock_beat:\w+", text):
        assert symbol_by_name(name) is RedlockScheduler


def test_the_readme_tells_how_to_run_it_on_a_worker_and_warns_of_the_short_option():
    text = README.read_text("utf-8")
    assert "celery -A proj worker -B --scheduler redlock`" in text
    assert "--statedb" in text


@pytest.mark.parametrize("environment", ["tox -e demo", "tox"])
def test_the_readme_has_its_two_commands(environment):
    command = f"\npython3 -m pip install tox && {environment}\n"
    assert README.read_text("utf-8").count(command) == 1


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    for page in DOCS:
        assert str(page.relative_to(ROOT / "docs")) in navigation


@pytest.mark.parametrize("page", [SCHEDULES, ROOT / "docs" / "time.md"], ids=name_of)
def test_what_the_commands_are_shown_to_print_is_what_they_print(page, tmp_path):
    pytest.importorskip("ephem")
    pytest.importorskip("cron_descriptor")
    (config,) = [each for each in snippets(SCHEDULES) if each.startswith("# celeryconfig.py")]
    (tmp_path / "celeryconfig.py").write_text(config, "utf-8")
    (tmp_path / "proj.py").write_text(
        "from celery import Celery\n"
        "app = Celery('shop', broker='redis://localhost:6379/0')\n"
        "app.config_from_object('celeryconfig')\n"
    )
    shown = re.findall(
        r"^\$ celery (.* redlock .*|redlock .*)\n([^$`]+)", page.read_text("utf-8"), re.MULTILINE
    )
    assert shown
    for command, output in shown:
        done = subprocess.run(
            [sys.executable, "-m", "celery", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == output.strip()
