"""SIGTERM, as on a deploy: a node ends within two seconds, and nobody waits for its lease."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest

from celery_redlock_beat.ticks import SECOND
from support.every_second import FIVE, RECORD, RUNS, every_second
from support.failpoint import BEFORE_PUBLISHING, DAWDLE, fail_one
from support.nodes import EmbeddedBeat
from support.servers import wait_until
from support.trial import LIMIT, Trial

logger = logging.getLogger(__name__)

LONG_LEASE = 20.0  # a wait for it cannot be mistaken for anything else
OWN_PID = """
import os
from pathlib import Path

from celery.signals import beat_embedded_init


@beat_embedded_init.connect
def tell_own_pid(**kwargs):
    Path(f"beat-{os.environ['NODE']}.pid").write_text(str(os.getpid()))
"""


def test_a_beat_ends_at_once_and_the_others_do_its_work(redis_server, tmp_path):
    with Trial(tmp_path, redis_server, config={"redlock_beat_lease": LONG_LEASE}) as trial:
        for node in trial.nodes[:2]:
            trial.go_on(1)
            trial.next_burst()
            assert trial.end(node) < 2
        trial.go_on(2)
        trial.begin(trial.nodes[:2])
        account = trial.conclude()
    assert account.faults == {}
    assert max(verdict.latest for verdict in account.verdicts.values()) < 1.5 * SECOND


@pytest.mark.parametrize("delivery", ["enqueue", "publish", "at_most_once"])
def test_a_beat_that_is_publishing_ends_at_once_and_gives_back_what_it_holds(
    redis_server, shared_redis, tmp_path, delivery
):
    config = {"redlock_beat_lease": LONG_LEASE}
    if delivery != "enqueue":
        config["redlock_beat_url"] = redis_server.url
        config["redlock_beat_delivery"] = delivery.replace("publish", "auto")
    broker = redis_server if delivery == "enqueue" else shared_redis
    with Trial(
        tmp_path, redis_server, broker_url=broker.url, config=config, extra=BEFORE_PUBLISHING
    ) as trial:
        trial.go_on(1)
        node = trial.nodes[fail_one(tmp_path, DAWDLE).place]
        assert trial.end(node) < 2
        trial.go_on(2)
        trial.begin([node])
        trial.wait_for_quiet()
        account = trial.conclude(patience=2)
    kinds = {name.rpartition(" ")[2]: found for name, found in account.faults.items()}
    if delivery == "at_most_once":
        # Settled before it was published, and not published: that is what the name says.
        assert (len(kinds.pop("lost", ())), kinds.pop("uncounted", 0)) == (1, -1)
    assert kinds == {}
    assert max(verdict.latest for verdict in account.verdicts.values()) < 2 * SECOND


def test_a_beat_ends_at_once_although_the_ledger_does_not_answer(redis_server, tmp_path):
    with Trial(tmp_path, redis_server, extra=BEFORE_PUBLISHING) as trial:
        trial.go_on(1)
        node = trial.nodes[fail_one(tmp_path, DAWDLE).place]
        idle = trial.nodes[trial.nodes.index(node) - 1]
        redis_server.freeze()
        assert trial.end(node) < 2
        assert trial.end(idle) < 2
        redis_server.thaw()
        trial.begin([node, idle])
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}


def test_a_beat_within_a_worker_ends_at_once_even_while_it_is_publishing(redis_server, tmp_path):
    with Trial(
        tmp_path,
        redis_server,
        schedule=every_second(FIVE, "proj.record"),
        config={"redlock_beat_lease": LONG_LEASE},
        extra=RECORD + BEFORE_PUBLISHING + OWN_PID,
        queue=RUNS,
        make_node=EmbeddedBeat,
    ) as trial:
        trial.go_on(1)
        idle = trial.nodes[0]
        seen = len(idle.log)
        os.kill(idle.pid, signal.SIGTERM)
        idle.wait_for_log("beat: Shutting down", LIMIT, since=seen)  # Celery stops its pool first
        assert _end_of_embedded_beat(trial, 0) < 2
        assert idle.wait_for_exit(LIMIT) == 0
        trial.begin([idle])

        place = fail_one(tmp_path, DAWDLE).place
        dawdler = trial.nodes[place]
        for pid in (_embedded_beat(trial, place), dawdler.pid):  # both at once, as systemd does
            os.kill(pid, signal.SIGTERM)
        assert _end_of_embedded_beat(trial, place) < 2
        assert dawdler.wait_for_exit(LIMIT) == 0
        trial.go_on(2)
        trial.begin([dawdler])
        account = trial.conclude(exact=False)
    assert account.faults == {}
    assert max(verdict.latest for verdict in account.verdicts.values()) < LONG_LEASE / 2 * SECOND


def _embedded_beat(trial: Trial, place: int) -> int:
    return int((trial.directory / f"beat-{place}.pid").read_text())


def _end_of_embedded_beat(trial: Trial, place: int) -> float:
    """Wait for the end of a beat within a worker; return how many seconds that took."""
    began = time.monotonic()
    beat = _embedded_beat(trial, place)
    wait_until(lambda: not _runs(beat), LIMIT, "the end of the embedded beat")
    seconds = time.monotonic() - began
    logger.info("the beat of %s has ended in %.3f s", trial.nodes[place].name, seconds)
    return seconds


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
