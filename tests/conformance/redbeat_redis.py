"""A pytest plugin for RedBeat's own tests: a real server stands where fakeredis stood."""

from __future__ import annotations

import os
import sys
from types import ModuleType

import redis

VARIABLE = "REDBEAT_TESTS_REDIS"


class FakeServer:
    """What a client is given that is to be cut off: the server itself is the same for all."""

    connected = True


class FakeRedis(redis.Redis):
    """A client of the server that was started for these tests."""

    def __init__(self, *, decode_responses: bool, server: FakeServer):
        url = os.environ[VARIABLE]
        pool = redis.ConnectionPool.from_url(url, decode_responses=decode_responses)
        super().__init__(connection_pool=pool)
        self.server = server

    def execute_command(self, *args, **options):
        if not self.server.connected:
            raise redis.ConnectionError("the test says that there is no connection")
        return super().execute_command(*args, **options)


fakeredis = ModuleType("fakeredis")
fakeredis.FakeServer, fakeredis.FakeRedis = FakeServer, FakeRedis
sys.modules["fakeredis"] = fakeredis
