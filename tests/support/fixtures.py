"""The fixtures of real servers: each asks for what it needs by name, and ends what it started.

No fixture is used without being named by a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.control_case import Case
from support.patient import Patient
from support.proxy import Proxy
from support.rabbitmq import RabbitMQ, find_rabbitmq
from support.requirements import require
from support.servers import SentinelTrio, Server, have_server

if TYPE_CHECKING:
    from pathlib import Path

    from celery_redlock_beat import Control


@pytest.fixture
def redis_server() -> Iterator[Server]:
    """Start a fresh server for one test, which may kill it; it keeps its data in an AOF."""
    require("redis-server", have_server())
    with Server(appendonly=True) as server:
        yield server


@pytest.fixture(scope="session")
def session_redis() -> Iterator[Server]:
    """Start the server behind ``shared_redis``; tests use that."""
    require("redis-server", have_server())
    with Server() as server:
        yield server


@pytest.fixture
def shared_redis(session_redis: Server) -> Server:
    """Give one test the shared server, emptied; it must not be stopped or reconfigured."""
    with session_redis.client() as client:
        client.flushall()
    return session_redis


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Give a command a directory for what is temporary, by which its processes are known too."""
    path = tmp_path / "temporary"
    path.mkdir()
    return path


@pytest.fixture
def proxy(redis_server: Server) -> Iterator[Proxy]:
    """Put a proxy in front of ``redis_server``."""
    with Proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def sentinels() -> Iterator[SentinelTrio]:
    """Start a master, a replica and three Sentinels for one test."""
    require("redis-server", have_server())
    with SentinelTrio() as trio:
        yield trio


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """Start the one broker of the run; give each test queues of its own."""
    require("rabbitmq-server", find_rabbitmq() is not None)
    with RabbitMQ() as broker:
        yield broker


@pytest.fixture
def case(shared_redis: Server) -> Iterator[Case]:
    """Give an app, its control and a node on a ledger that is empty."""
    case = Case(shared_redis)
    yield case
    case.close()


@pytest.fixture
def control(case: Case) -> Control:
    """Give the control of ``case``."""
    return case.control


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    """Start a server with which there is nothing wrong, for a module; it must not be stopped."""
    require("redis-server", have_server())
    with Server(appendonly=True, fsync="everysec") as server:
        yield server


@pytest.fixture
def patient(durable: Server) -> Iterator[Patient]:
    """Give a ledger as one node leaves it, for doctor to look at."""
    patient = Patient(durable)
    yield patient
    patient.place.close()
