"""The corner of a Redis that one run uses: keys of one prefix, all deleted at the end.

It never touches a key that does not begin with that prefix.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.verify.rig import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis import Redis

NAME = "redlock-verify"
SETTLING = 0.2  # seconds for what a killed node had asked for and the server has not yet done
ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Corner:
    """A prefix that nobody else has; ``outer`` is the user's own, behind which it stays."""

    name: str
    outer: str = ""

    @classmethod
    def random(cls, outer: str = "") -> Corner:
        """Return a corner that nobody has ever used."""
        return cls(f"{NAME}-{token_hex(5)}", outer)

    @property
    def prefix(self) -> str:
        """What each of its keys begins with."""
        return f"{self.outer}{self.name}:"

    @property
    def place(self) -> Place:
        """The ledger's namespace, the prefix and the queue in it."""
        return Place(self.name, self.prefix, "queue")

    def keys(self, client: Redis) -> list[Any]:
        """Return the keys that there are."""
        pattern = "".join(f"\\{char}" if char in "*?[]\\^" else char for char in self.prefix)
        return list(client.scan_iter(match=f"{pattern}*", count=1000))

    def clear(self, connect: Callable[[], Redis]) -> int:
        """Delete all of its keys; return how many they were.

        Looks again until there are none, since a command of a killed node may still be on its way.
        """
        deleted: set[Any] = set()
        with connect() as client:
            for _ in range(ATTEMPTS):
                found = self.keys(client)
                for key in found:
                    client.unlink(key)
                deleted.update(found)
                time.sleep(SETTLING)
                if not found:
                    break
        return len(deleted)
