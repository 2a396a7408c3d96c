"""Three nodes on the tables of django-celery-beat, while an admin edits them and nodes die."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from celery_redlock_beat.ticks import SECOND
from support.django_site import ENV, SCHEDULER, Admin, rewrite_settings, run_here
from support.judge import grid
from support.lengths import times
from support.nodes import BeatNode
from support.postgres import PostgreSQL
from support.servers import Server
from support.trial import LEASE, Trial

pytestmark = pytest.mark.needs_postgres

UNTOUCHED = dict.fromkeys(("one", "two", "three", "four", "five"), "all")
EDITED = [f"edited {number}" for number in range(5)]
SWITCHED = [f"switched {number}" for number in range(3)]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Edit:
    """What an admin saved, and when, by the ledger's clock: it was in the tables in between."""

    name: str
    version: int
    begun: int
    done: int
    enabled: bool = True


def node(directory, name, env=None, **options):
    return BeatNode(directory, name, scheduler=SCHEDULER, env={**ENV, **(env or {})}, **options)


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def database():
    with PostgreSQL() as database:
        yield database


class Fleet(Trial):
    """A trial whose entries are rows, some of which an admin edits."""

    def __init__(self, directory, server, database):
        directory.mkdir(exist_ok=True)
        rewrite_settings(directory, database.database())
        run_here(directory, "-m", "django", "migrate", "-v", "0")
        schedule = {name: {"task": "proj.noop", "schedule": 1.0} for name in UNTOUCHED}
        config = {"redlock_beat_catch_up": "all", "result_expires": None}
        super().__init__(
            directory,
            server,
            policies=UNTOUCHED,
            schedule=repr(schedule),
            config=config,
            make_node=node,
        )
        self.edits: list[Edit] = []

    def edit(self, admin, name, *, enabled=True):
        """Save a row as the admin does, with a new version in its headers."""
        version, begun = len(self.edits) + 1, self.now()
        admin.save(name, headers=json.dumps({"version": version}), enabled=enabled)
        self.edits.append(Edit(name, version, begun, self.now(), enabled))

    def add_rows(self, admin):
        for name in (*EDITED, *SWITCHED):
            admin.add(name, 0.5, headers='{"version": 0}')
        self.wait_for(lambda came: {*EDITED, *SWITCHED} <= {e.tick.entry for e in came if e.tick})

    def of(self, name):
        """Return tick and version of each message of a row, by tick."""
        own = self.collector.of(name)
        return sorted((each.tick.at, each.headers["version"]) for each in own)

    def doubled(self):
        counted = Counter(each.tick for each in self.collector.arrivals if each.tick)
        return [tick for tick, number in counted.items() if number > 1]

    def lost(self, name):
        """Return the instants at which nothing came, between the first and the last message."""
        came = [at for at, _ in self.of(name)]
        return sorted(set(grid(0.5, came[0], came[-1])) - set(came))

    def slowest(self):
        """Return for how long after it was saved an edit was not yet in force, at most."""
        late = [0]
        for edit in self.edits:
            for at, version in self.of(edit.name):
                is_old = version < edit.version or not edit.enabled
                until = self.next_edit(edit)
                if is_old and edit.done < at <= until:
                    late.append(at - edit.done)
        return max(late) / SECOND

    def next_edit(self, edit):
        """Return when the next edit of the same row began."""
        later = [each.begun for each in self.edits if each.name == edit.name]
        return min((at for at in later if at > edit.done), default=self.now())


@pytest.mark.timeout(300)
def test_what_an_admin_edits_is_in_force_within_a_second_and_no_tick_is_lost_or_doubled(
    server, database, tmp_path
):
    random = Random(63)
    with Fleet(tmp_path, server, database) as fleet, Admin(tmp_path) as admin:
        fleet.add_rows(admin)
        for place in range(times(3, 9)):
            ends = time.monotonic() + times(5, 15)
            victim = fleet.nodes[place % 3]
            while time.monotonic() < ends:
                fleet.edit(admin, random.choice(EDITED))
                if victim.alive and ends - time.monotonic() < times(3, 10):
                    fleet.next_burst()
                    victim.kill()
                time.sleep(random.random() / 4)
            fleet.begin([victim])
        fleet.go_on(LEASE + 2)
        account = fleet.conclude(law=False)
        lost = {name: fleet.lost(name) for name in EDITED}
        doubled, slowest = fleet.doubled(), fleet.slowest()
        logger.info("%d edits, the slowest in force after %.3f s", len(fleet.edits), slowest)
        assert account.faults == {}
        assert doubled == []
        assert lost == {name: [] for name in EDITED}
        assert len(fleet.edits) > 40
        assert slowest <= 1
        runs = {name: admin.shown(name)["runs"] for name in (*EDITED, *UNTOUCHED)}
        sent = {name: len(fleet.collector.of(name)) for name in runs}
    # What a killed node had sent and not yet written is not counted; that is all.
    assert all(sent[name] - times(12, 36) <= runs[name] <= sent[name] for name in runs)


@pytest.mark.timeout(300)
def test_rows_that_are_switched_off_and_on_stop_and_go_on_within_a_second(
    server, database, tmp_path
):
    random = Random(64)
    with Fleet(tmp_path, server, database) as fleet, Admin(tmp_path) as admin:
        fleet.add_rows(admin)
        for _ in range(times(4, 12)):
            for enabled in (False, True):
                for name in SWITCHED:
                    fleet.edit(admin, name, enabled=enabled)
                    time.sleep(random.random() / 4)
                fleet.go_on(1.5)
        account = fleet.conclude(law=False)
        gaps = [_gap_after(fleet, edit) for edit in fleet.edits if edit.enabled]
        logger.info("sent again %.3f s after it was enabled at the latest", max(gaps))
        assert account.faults == {}
        assert fleet.doubled() == []
        assert fleet.slowest() <= 1
        # In force within a second, and due within half of one.
        assert max(gaps) <= 1.5


def _gap_after(fleet, edit):
    ahead = [at for at, version in fleet.of(edit.name) if version >= edit.version]
    return (min(ahead) - edit.done) / SECOND


@pytest.mark.timeout(300)
def test_a_database_that_comes_and_goes_costs_no_tick_and_no_edit(server, database, tmp_path):
    with Fleet(tmp_path, server, database) as fleet:
        with Admin(tmp_path) as admin:
            fleet.add_rows(admin)
        for _ in range(times(2, 6)):
            database.kill()
            fleet.go_on(4)
            database.start()
            with Admin(tmp_path) as admin:
                fleet.edit(admin, EDITED[0])
            newest = fleet.edits[-1].version
            fleet.wait_for(lambda _, newest=newest: fleet.of(EDITED[0])[-1][1] == newest)
        account = fleet.conclude(law=False)
        assert account.faults == {}
        assert fleet.doubled() == []
        assert {name: fleet.lost(name) for name in EDITED} == {name: [] for name in EDITED}
        with Admin(tmp_path) as admin:
            runs = {name: admin.shown(name)["runs"] for name in UNTOUCHED}
        assert runs == {name: len(fleet.collector.of(name)) for name in UNTOUCHED}


@pytest.mark.timeout(300)
def test_rows_that_run_once_run_once_whoever_dies(server, database, tmp_path):
    with Fleet(tmp_path, server, database) as fleet, Admin(tmp_path) as admin:
        fleet.add_rows(admin)
        rounds = times(3, 9)
        for number in range(rounds):
            for name in [f"once {each}" for each in range(10)]:
                if number:
                    admin.save(name, enabled=True)
                else:
                    admin.add(name, 1, one_off=True)
            victim = fleet.nodes[number % 3]
            fleet.next_burst()
            victim.kill()
            fleet.begin([victim])
            wanted = 10 * (number + 1)
            fleet.wait_for(lambda came, wanted=wanted: _once(came) >= wanted)
            fleet.until(lambda: not admin.do(ENABLED), "all to be disabled", 60)
        account = fleet.conclude(law=False)
        assert account.faults == {}
        assert fleet.doubled() == []
        assert _once(fleet.collector.arrivals) == 10 * rounds


ENABLED = "result = PeriodicTask.objects.filter(one_off=True, enabled=True).count()"


def _once(came):
    return sum(each.tick.entry.startswith("once") for each in came if each.tick)
