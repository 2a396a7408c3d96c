"""Real beats on the tables of django-celery-beat in a real PostgreSQL, which fails now and then."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise

import pytest

from celery_redlock_beat.testing.children import wait_until
from celery_redlock_beat.ticks import SECOND
from support.collector import Collector
from support.django_site import ENV, SCHEDULER, Admin, rewrite_settings, write_site
from support.nodes import BeatNode, WorkerNode
from support.postgres import PostgreSQL

pytestmark = [pytest.mark.needs_postgres, pytest.mark.slow]
LIMIT = 30.0
EVERY_SECOND = '{"code": {"task": noop.name, "schedule": 1.0}}'


@pytest.fixture
def server():
    """Start a server for one test, which may end it."""
    with PostgreSQL() as server:
        yield server


@pytest.fixture
def site(tmp_path, server, shared_redis):
    write_site(tmp_path, shared_redis.url, server.database(), EVERY_SECOND)
    return tmp_path


@pytest.fixture
def collector(shared_redis):
    with Collector(shared_redis.url) as collector:
        yield collector


def beat(directory, name="beat", **options):
    return BeatNode(directory, name, scheduler=SCHEDULER, env=ENV, **options)


def came(collector, entry, number=1):
    return collector.wait_until(lambda it: len(it.of(entry)) >= number, LIMIT)


def more(collector, entry, number):
    return came(collector, entry, len(collector.of(entry)) + number)


def test_nodes_that_start_at_once_on_empty_tables_write_each_entry_once(
    tmp_path, server, shared_redis, collector
):
    entries = {
        f"entry {number}": {"task": "proj.noop", "schedule": 1.0 if number < 3 else 60 + number}
        for number in range(20)
    }
    write_site(tmp_path, shared_redis.url, server.database(), repr(entries))
    with ExitStack() as stack, Admin(tmp_path) as admin:
        nodes = [stack.enter_context(beat(tmp_path, f"node {number}")) for number in range(4)]
        for number in range(3):
            came(collector, f"entry {number}", 4)
        names = admin.do("result = sorted(PeriodicTask.objects.values_list('name', flat=True))")
        assert names == sorted(entries)
        assert admin.do("result = IntervalSchedule.objects.count()") == 18
        for node in nodes:
            node.stop()
            assert "ERROR" not in node.log
        ticks = Counter(each.tick for each in collector.arrivals)
        assert set(ticks.values()) == {1}
        runs = [admin.shown(f"entry {number}")["runs"] for number in range(3)]
        assert runs == [len(collector.of(f"entry {number}")) for number in range(3)]


def test_a_database_that_is_killed_stops_no_tick_and_is_followed_again_when_it_is_back(
    site, server, collector
):
    with beat(site) as node:
        came(collector, "code", 2)
        server.kill()
        node.wait_for_log("The tables cannot be read")
        more(collector, "code", 5)
        server.start()
        node.wait_for_log("The tables can be read again", 40)
        with Admin(site) as admin:
            admin.add("new")
            came(collector, "new")
            node.stop()
            assert node.log.count("The tables cannot be read") == 1
            assert admin.shown("code")["runs"] == len(collector.of("code"))
        assert node.troubles() == []
        assert {each.passed_over for each in collector.of("code")} == {0}


def test_a_database_that_stands_still_stops_no_tick_and_is_told(site, server, collector):
    with beat(site) as node, server.connect() as other, other.transaction():
        came(collector, "code", 2)
        # Who looks at them waits; a stopped server would still have backends that answer.
        other.execute(
            "LOCK TABLE django_celery_beat_periodictask, django_celery_beat_periodictasks"
        )
        seen = len(collector.of("code"))
        began = time.monotonic()
        more(collector, "code", 5)
        assert time.monotonic() - began < 8
        late = max(each.at - each.tick.at for each in collector.of("code")[seen:])
        assert late < SECOND
        node.wait_for_log("The tables cannot be read.* database has not answered for 5 s")
        began = time.monotonic()
        assert node.stop() < 5
        assert "last runs of rows are not written to the tables, 1 of them: code" in node.log


def test_rows_are_followed_where_a_transaction_would_show_old_ones_for_ever(
    site, server, collector
):
    database = server.database()
    options = {**database["OPTIONS"], "isolation_level": 3}  # REPEATABLE READ
    rewrite_settings(site, {**database, "AUTOCOMMIT": False, "OPTIONS": options})
    with beat(site) as node, Admin(site) as admin:
        came(collector, "code")
        admin.add("new")
        came(collector, "new", 2)
        node.stop()
        assert admin.shown("new")["runs"] == len(collector.of("new"))


def test_a_beat_within_a_worker_has_a_connection_of_its_own(tmp_path, server, shared_redis):
    extra = """
from django.db import connection

@signals.worker_init.connect
def connect(**kwargs):
    import django
    django.setup()
    connection.ensure_connection()


@signals.worker_shutdown.connect
def ask(**kwargs):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 41 + 1")
        print("the worker was told %d" % cursor.fetchone(), flush=True)
"""
    write_site(tmp_path, shared_redis.url, server.database(), EVERY_SECOND, extra=extra)
    args = ["--pool=prefork", "-Q", "third"]
    worker = WorkerNode(tmp_path, beat=True, scheduler=SCHEDULER, env=ENV, args=args)
    with Collector(shared_redis.url) as collector, Admin(tmp_path) as admin, worker:
        came(collector, "code", 2)
        admin.add("new")
        came(collector, "new", 2)
        worker.stop()
        assert "the worker was told 42" in worker.log
    assert "protocol" not in server.log


STOCK = "django_celery_beat.schedulers:DatabaseScheduler"


def test_from_django_celery_beat_and_back_nothing_is_sent_twice_or_lost(
    site, server, shared_redis, collector
):
    stock = BeatNode(site, "stock", scheduler=STOCK, env=ENV, args=["--max-interval", "1"])
    with Admin(site) as admin:
        admin.add("slow", 4)
        with stock:
            wait_until(lambda: len(told(collector, "slow")) >= 2, LIMIT, "two of stock")
            stock.stop()
        last = admin.shown("slow")["last"]
        with beat(site) as ours:
            first = came(collector, "slow") and collector.of("slow")[0]
            assert first.tick.at == round((last + 4) * SECOND), "its phase goes on"
            came(collector, "slow", 2)
            ours.stop()
        assert admin.shown("slow")["last"] == collector.of("slow")[-1].tick.at / SECOND
        before = len(told(collector, "slow"))
        with stock:
            wait_until(lambda: len(told(collector, "slow")) > before, LIMIT, "one of stock")
            stock.stop()
        last = admin.shown("slow")["last"]
        with beat(site) as ours:
            ahead = len(collector.of("slow"))
            came(collector, "slow", ahead + 1)
            assert collector.of("slow")[ahead].tick.at > last * SECOND
            ours.stop()
    times = [each.at / SECOND for each in told(collector, "slow")]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) > 2, gaps


def told(collector, entry):
    """Return the messages of an entry, whichever scheduler sent them."""
    return [e for e in collector.arrivals if e.headers.get("periodic_task_name") == entry]
