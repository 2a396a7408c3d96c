"""The verbs that nodes and operators share: to look, and to end pauses; it decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import MOST_PER_CALL, SETTLED_KEPT, wire, wire_steering
from celery_redlock_beat.ledger.redis_scripts import Scripts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from celery_redlock_beat.ledger.steering import Look, Resumption, Steered
    from celery_redlock_beat.ticks import Micros


class RedisLooks(Scripts):
    """Looks at entries, and what depends on what was seen; ``_keep`` is for settled grants."""

    _keep: Micros = SETTLED_KEPT

    def look(self, entries: Sequence[str]) -> list[Look]:
        """Tell all that is known of entries, in the same order; this changes nothing."""
        looks: list[Look] = []
        for chunk in wire.chunks(entries, MOST_PER_CALL):
            (told,) = self._call("look", chunk)
            looks += [
                wire_steering.look(entry, each, self._told)
                for entry, each in zip(chunk, told, strict=True)
            ]
        return looks

    def resume(self, resumptions: Sequence[Resumption]) -> list[Steered]:
        """End pauses, also those whose time is over."""
        return wire_steering.steered(
            resumptions, wire_steering.resumption, self._steer("resume", "gone")
        )

    def _steer(self, verb: str, *keys: str) -> Callable[[list[Any]], list[Any]]:
        """Return how a verb is called that takes only what is as it was seen."""
        names = [self._named[key] for key in keys]
        return lambda fields: self._call(verb, [self._keep, *fields], names)
