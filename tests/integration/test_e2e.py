"""From `celery beat -S redlock` to the task, with real servers, nodes and workers; in short.

What happens when things fail for longer is shown by the tests of chaos.
"""

from __future__ import annotations

from contextlib import ExitStack

from support.every_second import FIVE, RECORD, RUNS, every_second
from support.nodes import WorkerNode
from support.servers import Server
from support.trial import Trial

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2}
RECORDED = {"schedule": every_second(FIVE, "proj.record"), "extra": RECORD, "queue": RUNS}


def test_a_worker_executes_each_tick_once_although_a_node_is_killed(shared_redis, tmp_path):
    with (
        Trial(tmp_path, shared_redis, config=QUICK, nodes=2, **RECORDED) as trial,
        WorkerNode(tmp_path),
    ):
        trial.go_on(1)
        trial.next_burst()
        trial.nodes.pop().kill()
        trial.go_on(2)
        account = trial.conclude(exact=False)
    assert account.faults == {}


def test_a_unix_socket_and_a_key_prefix_serve_beat_and_worker_alike(tmp_path):
    prefix = "shop:"
    config = {**QUICK, "broker_transport_options": {"global_keyprefix": prefix}}
    with ExitStack() as stack:
        server = stack.enter_context(Server(unixsocket="redis.sock"))
        url = f"redis+socket://{server.unixsocket}"
        trial = Trial(tmp_path, server, url=url, config=config, prefix=prefix, nodes=1, **RECORDED)
        stack.enter_context(trial)
        stack.enter_context(WorkerNode(tmp_path))
        trial.go_on(1)
        account = trial.conclude(exact=False)
        with server.client() as client:
            strays = [key for key in client.scan_iter() if not key.startswith(prefix.encode())]
    assert account.faults == {}
    assert strays == []


def test_a_broker_behind_sentinels_is_found(sentinels, tmp_path):
    config = {**QUICK, "broker_transport_options": sentinels.transport_options}
    with Trial(tmp_path, sentinels.master, url=sentinels.url, config=config, nodes=1) as trial:
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}
