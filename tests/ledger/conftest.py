"""One suite for the ledger in memory and in Redis, so that the double cannot drift."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from celery_redlock_beat.testing.server import Server, ServerNotFound, find_server
from ledger.places import MemoryPlace, Place, RedisPlace
from support.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

BINARIES = {"redis": ("environment", "path"), "valkey": ("bundled",)}


@pytest.fixture(scope="session")
def server_of() -> Iterator[Callable[[str], Server]]:
    """Start at most one server of each kind, when a test first asks for it."""
    started: dict[str, Server] = {}
    with ExitStack() as stack:

        def start(kind: str) -> Server:
            if kind not in started:
                require(f"a {kind} server", binary := _binary(kind))
                started[kind] = stack.enter_context(Server(binary=binary))
            return started[kind]

        yield start


def _binary(kind: str) -> Path | None:
    try:
        return find_server(BINARIES[kind])
    except ServerNotFound:
        return None


@pytest.fixture(params=["memory", *BINARIES])
def ledgers(request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty ledger, in memory or on a server, and its nodes."""
    if request.param == "memory":
        yield MemoryPlace()
    else:
        yield from _place(request)


@pytest.fixture(params=BINARIES)
def served(request: pytest.FixtureRequest) -> Iterator[RedisPlace]:
    """An empty ledger on a server, and its nodes."""
    yield from _place(request)


def _place(request: pytest.FixtureRequest) -> Iterator[RedisPlace]:
    place = RedisPlace(request.getfixturevalue("server_of")(request.param), request.param)
    yield place
    place.close()


@pytest.fixture
def a(ledgers: Place):
    """A node that has pushed, with a lease that does not end by itself within a test."""
    return ledgers.node()


@pytest.fixture
def b(ledgers: Place, a):
    """A second such node."""
    return ledgers.node()


@pytest.fixture
def op(ledgers: Place, a):
    """An operator of a ledger that a node has been at."""
    return ledgers.operator()
