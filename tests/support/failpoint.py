"""Points in a node's work at which a test has it die, stand still, or dawdle.

They are in the project of the test: the product has none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.servers import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from celery_redlock_beat.ticks import Micros

DAWDLE = "dawdle"
LIMIT = 40.0
# Of all nodes, the first that comes by and finds the file "armed" takes it away, and fails.
SOURCE = """
import json
import os
import signal
import time
from pathlib import Path

from celery.beat import BeatLazyFunc
from celery.signals import after_task_publish, before_task_publish


def fail_if_armed(headers=None, **kwargs):
    try:
        os.rename("armed", "taken")
    except FileNotFoundError:
        return
    how = Path("taken").read_text().partition(" ")[0]
    reached = [int(os.environ["NODE"]), time.time_ns() // 1000, (headers or {}).get("id", "")]
    Path("taken").write_text(json.dumps(reached))
    os.rename("taken", "reached")
    if how == "dawdle":
        time.sleep(60)
    else:
        os.kill(os.getpid(), signal.Signals[how])


"""
BEFORE_PUBLISHING = f"{SOURCE}before_task_publish.connect(fail_if_armed)\n"
AFTER_PUBLISHING = f"{SOURCE}after_task_publish.connect(fail_if_armed)\n"
# Around each call of the ledger; the file says which one is meant, as in "SIGKILL after claim".
AROUND_VERBS = f"""{SOURCE}
from celery_redlock_beat.ledger.redis import RedisLedger

call = RedisLedger._call


def fail_if_armed_at(point):
    try:
        how, _, meant = Path("armed").read_text().partition(" ")
    except FileNotFoundError:
        return
    if meant == point:
        fail_if_armed()


def around(self, verb, *args, **kwargs):
    fail_if_armed_at(f"before {{verb}}")
    told = call(self, verb, *args, **kwargs)
    fail_if_armed_at(f"after {{verb}}")
    return told


RedisLedger._call = around
"""
IN_A_LAZY_ARGUMENT = f"""{SOURCE}
for fields in app.conf.beat_schedule.values():
    fields["args"] = [BeatLazyFunc(fail_if_armed)]
"""


@dataclass(frozen=True, slots=True)
class Reached:
    """Which node was there first, when, and with which message, where that is known there."""

    place: int
    at: Micros
    task_id: str


def fail_one(directory: Path, how: str) -> Reached:
    """Have the next node that comes by get a signal by its name, or dawdle for a minute.

    With ``AROUND_VERBS`` the point follows the signal, as in "SIGKILL after claim".

    Returns once that is so.
    """
    reached = directory / "reached"
    reached.unlink(missing_ok=True)
    (directory / "arming").write_text(how)
    (directory / "arming").rename(directory / "armed")
    wait_until(reached.exists, LIMIT, "a node at the failpoint")
    return Reached(*json.loads(reached.read_text()))
