"""A pytest plugin for RedBeat's own tests: our shim stands where RedBeat stood.

Loaded with ``-p``, before the tests import ``redbeat``. What the shim does not have, and whole
modules of RedBeat's tests ask for by name, is there as a name and fails when it is used.
"""

from __future__ import annotations

import os
import sys

from celery.app.defaults import DEFAULTS
from redbeat_redis import VARIABLE

from celery_redlock_beat.contrib import redbeat
from celery_redlock_beat.contrib.redbeat import decoder, schedulers, schedules

DEFAULTS["redlock_beat_url"] = os.environ[VARIABLE]
DEFAULTS["redlock_beat_socket_timeout"] = 0.2  # so that a ledger that is new is soon whole
DEFAULTS["redlock_beat_poll"] = 0.05
DEFAULTS["redlock_beat_hold_down"] = 0.3


def acquire_distributed_beat_lock(*_args):
    raise NotImplementedError("the shim takes no lock")


class RetryingConnection:
    def __init__(self, *_args):
        raise NotImplementedError("the shim has no such connection")


schedulers.acquire_distributed_beat_lock = acquire_distributed_beat_lock
schedulers.RetryingConnection = RetryingConnection
sys.modules["redbeat"] = redbeat
for module in (decoder, schedulers, schedules):
    sys.modules[f"redbeat.{module.__name__.rpartition('.')[2]}"] = module
