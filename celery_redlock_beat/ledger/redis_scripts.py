"""The scripts that are the verbs, and how one process calls them; it knows no answers of theirs."""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.exceptions import NoScriptError, RedisError

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import wire
from celery_redlock_beat.store.disorder import disorder
from celery_redlock_beat.store.errors import NOISE, unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis import Redis

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.ticks import Micros

KEYS = (
    "marks",
    "open",
    "grants",
    "settled",
    "totals",
    "paused",
    "nodes",
    "heard",
    "last",
    "history",
    "entries",
    "changes",
)
"""What every script is given, in this order."""
MORE_KEYS = ("present", "audit", "gone", "beats", "fired")
PARTS = {
    "register": ("registration",),
    "recover": ("feed",),
    "changes": ("feed",),
    "seed": ("registration",),
    "store": ("feed", "registration", "remainder"),
    "remove": ("feed", "remainder"),
    "pause": ("feed",),
    "resume": ("feed", "remainder"),
}
"""What several verbs share, and not all."""


class Script(NamedTuple):
    """A verb's source, as it is sent to the server, and the digest it is called by."""

    text: str
    digest: str


@cache
def load_script(verb: str) -> Script:
    """Read a verb's script, behind what it shares with others."""
    folder = resources.files("celery_redlock_beat.ledger") / "lua"
    files = ["prelude.lua", *(f"parts/{part}.lua" for part in PARTS.get(verb, ())), f"{verb}.lua"]
    text = "\n".join((folder / file).read_text("utf-8") for file in files)
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def ledger_keys(namespace: str, prefix: str = "") -> dict[str, str]:
    """Return the ledger's keys by name; one hash tag keeps them together in a Cluster."""
    return {name: f"{prefix}{{redlock:{namespace}}}:{name}" for name in (*KEYS, *MORE_KEYS)}


class Scripts:
    """One process's way to the scripts, over one client that connects when it is needed.

    Connects anew in every process. ``history`` is how many outcomes are kept, about.
    """

    def __init__(
        self,
        connect: Callable[[], Redis],
        clock: LedgerClock,
        namespace: str,
        *,
        prefix: str = "",
        history: int = 0,
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._named = ledger_keys(namespace, prefix)
        self._keys = [self._named[name] for name in KEYS]
        self._history = history
        self._pid = 0
        self.node = ""
        self.epoch = "-"
        self.fence = 0
        self._told: Micros = 0

    def _new_process(self) -> None:
        """Begin anew: a fork has the parent's memory, and must not have its identity."""

    def _call(
        self, verb: str, args: Sequence[Any], keys: Sequence[str] = (), seen: int | None = None
    ) -> list[Any]:
        """Call a script; return what follows its status, the time and the fence.

        Raises:
            LedgerRecovering: nodes must first tell what they remember.
            LedgerUnavailable: it could not be asked, or found keys that are not ours.
        """
        client = self._own_client()
        script = load_script(verb)
        seen = self.fence if seen is None else seen
        given = [*self._keys, *keys, self.node, self.epoch, seen, self._history, *args]
        count = len(self._keys) + len(keys)
        asked = self._clock.monotonic()
        try:
            try:
                reply = client.evalsha(script.digest, count, *given)
            except NoScriptError:
                asked = self._clock.monotonic()
                reply = client.eval(script.text, count, *given)
            status, told, fence, *rest = wire.reply(reply)
        except (RedisError, OSError) as exc:
            raise unavailable(exc) from exc
        except NOISE as exc:
            # Whoever said that is no Redis, or answered another call: the true answer may follow.
            client.connection_pool.disconnect()
            raise unavailable(exc) from exc
        self._told = int(told)
        self._clock.observe(asked, self._clock.monotonic(), int(told))
        if wire.text(status) == "RECOVERING":
            raise LedgerRecovering(verb)
        if wire.text(status) != "OK":
            raise disorder(*map(wire.text, (status, *rest)))
        self.fence = max(self.fence, int(fence))
        return rest

    def _own_client(self) -> Redis:
        if self._pid != os.getpid():
            self._client = self._connect()
            self._new_process()
            self._pid = os.getpid()
        return self._client
