"""An app's way to its ledger for operators: what is needed is made once; it decides nothing."""

from __future__ import annotations

import getpass
import os
import socket
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.assembly import micros
from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.control.checks import check_text
from celery_redlock_beat.errors import ConfigurationError, LedgerRecovering
from celery_redlock_beat.ledger import wire
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ledger.redis_steering import RedisSteering
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import locate
from celery_redlock_beat.store.history import oldest_record, read_history
from celery_redlock_beat.store.registry import Registry
from celery_redlock_beat.ticks import LATEST, SECOND, to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.ledger.steering import Look, Steered
    from celery_redlock_beat.store.history import HistoryRow
    from celery_redlock_beat.ticks import Micros

T = TypeVar("T")
Row = TypeVar("Row")
LONGEST_RECOVERY = 15.0
"""Seconds that a deed waits while nodes tell what they remember."""
LOOK_EVERY = 0.2
TRIES = 20
PER_CALL = 50


class Access:
    """Everything of one app that operators need; connects when it is first asked."""

    def __init__(self, app: Celery, who: str | None = None) -> None:
        if who is not None:
            check_text("who", who)
        self.app = app
        self.settings = Settings.from_app(app)
        self.server = locate(app, self.settings)
        self.who = who or whoever()
        self.names = ledger_keys(self.settings.namespace, self.server.prefix)
        self._clients: list[Any] = []

    @cached_property
    def client(self) -> Any:
        """A client for reading; raises ``ConfigurationError`` for a ledger in memory."""
        return self._connect()

    @cached_property
    def steering(self) -> RedisSteering:
        """The verbs; raises ``ConfigurationError`` for a ledger in memory."""
        self._check_place()
        return RedisSteering(
            self._connect,
            LedgerClock(),
            self.settings.namespace,
            who=self.who,
            prefix=self.server.prefix,
            history=self.settings.history,
            hold_down=micros(self.settings.hold_down),
        )

    @cached_property
    def registry(self) -> Registry:
        """What is kept as a whole."""
        return Registry(self.client, self.names)

    def history(self) -> Iterator[HistoryRow]:
        """Yield the records, newest first."""
        return read_history(self.client, self.names["history"])

    def history_begins(self) -> Micros | None:
        """Return the instant of the oldest record, or ``None`` where there is none."""
        return oldest_record(self.client, self.names["history"])

    def looks(self, names: Sequence[str]) -> list[Look]:
        """Return what is known of entries, in the same order."""
        return self.steering.look(names)

    def now(self) -> Micros:
        """Return the ledger's time."""
        (look,) = self.steering.look([""])
        return look.now

    def patiently(self, ask: Callable[[], T]) -> T:
        """Return the answer; while a recovery runs, take part in it and wait, 15 seconds at most.

        Raises:
            LedgerRecovering: It took longer.
        """
        until = time.monotonic() + LONGEST_RECOVERY
        while True:
            try:
                return ask()
            except LedgerRecovering:
                wait = self.steering.begin() / SECOND
                if time.monotonic() + wait > until:
                    raise
                time.sleep(max(min(wait, LOOK_EVERY), LOOK_EVERY / 10))

    def await_whole(self) -> None:
        """Wait while nodes tell what they remember: until then, what is stored may not be there.

        Raises:
            LedgerRecovering: It took longer than 15 seconds.
        """
        self.patiently(lambda: self.steering.skip(()))

    def carry_out(
        self,
        names: Sequence[str],
        prepare: Callable[[Look], Iterator[Row]],
        ask: Callable[[list[Row]], list[Steered]],
    ) -> list[str]:
        """Ask for what ``prepare`` makes of each look, and look again where it changed meanwhile.

        Returns the names that changed each of 20 times.
        """
        changing: list[str] = []
        for chunk in wire.chunks(names, PER_CALL):
            waiting = list(chunk)
            for _ in range(TRIES):
                rows = [row for look in self.looks(waiting) for row in prepare(look)]
                answers = self.patiently(partial(ask, rows)) if rows else []
                waiting = [answer.entry for answer in answers if not answer.done]
                if not waiting:
                    break
            changing += waiting
        return changing

    def close(self) -> None:
        """Let go of the connections."""
        for client in self._clients:
            client.close()

    def _connect(self) -> Any:
        self._check_place()
        client = self.server.connect()
        self._clients.append(client)
        return client

    def _check_place(self) -> None:
        if self.server.is_memory:
            raise ConfigurationError(
                "redlock_beat_url is memory://: such a ledger is in the process of its one node, "
                "and cannot be looked at or changed from another; name a Redis"
            )


def moment(micros: Micros) -> datetime:
    """Return an instant as an aware datetime, whatever somebody wrote."""
    return to_datetime(min(max(micros, 0), LATEST))


def whoever() -> str:
    """Return who runs this process, and where, as a text that can be kept."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in containers
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    # Either may have odd bytes, from the environment.
    return f"{user}@{socket.gethostname()}".encode(errors="replace").decode()
