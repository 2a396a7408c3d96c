"""The feed of a ledger in this process: what the scripts' ``feed`` and ``changes.lua`` do.

It knows nothing of what the entries and pauses say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger.steering import Change, Changes, Kind
from celery_redlock_beat.ledger.wire_steering import MOST_CHANGES
from celery_redlock_beat.ticks import LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.ledger.memory_records import Thing
    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ticks import Micros

MOST_GONE = 10_000


@dataclass(frozen=True, slots=True)
class Feed:
    """The feed of a server, at one instant."""

    server: MemoryServer
    now: Micros

    def next_revision(self) -> int:
        """Return the revision of one more change."""
        self.server.revision = self.server.next_fence(self.now)
        return self.server.revision

    def raise_revision(self, revision: int) -> None:
        """Have no later change at a revision up to this one."""
        server = self.server
        server.revision = max(server.revision, revision)
        if server.fence < revision < LATEST:
            server.fence = revision

    def revision_of(self, kind: Kind, name: str) -> int:
        """Return the revision at which something became what it is, 0 if it is not there."""
        return self.server.changes.get((kind, name), 0)

    def put(self, kind: Kind, name: str, revision: int, text: bytes) -> None:
        """Keep a stored entry or a pause."""
        self._kept(kind)[name] = text
        self.server.changes[kind, name] = revision
        self.server.gone.pop((kind, name), None)

    def drop(self, kind: Kind, name: str, revision: int) -> None:
        """Take one away, and remember for a while that it is gone."""
        self._kept(kind).pop(name, None)
        self.server.changes.pop((kind, name), None)
        self.server.gone[kind, name] = revision
        for thing, at in _ordered(self.server.gone)[:-MOST_GONE]:
            self.server.pruned = at
            del self.server.gone[thing]

    def restore(self, change: Change) -> None:
        """Have it as a node remembers it, unless something later is known of it."""
        kind, name, revision = change.kind, change.name, change.revision
        known = max(self.revision_of(kind, name), self.server.gone.get((kind, name), 0))
        if revision > max(known, self.server.pruned):
            if change.text is None:
                self.drop(kind, name, revision)
            else:
                self.put(kind, name, revision, change.text)
        self.raise_revision(revision)

    def forget(self, lost: list[str]) -> None:
        """Have all told again where a key was lost; what was in a lost one is not there."""
        server = self.server
        server.revision = server.pruned = 0
        kinds = {kind for kind, key in (("e", "entries"), ("p", "paused")) if key in lost}
        server.changes = {each: at for each, at in server.changes.items() if each[0] not in kinds}

    def find_end(self) -> None:
        """Know the revision of what nobody told again, and is there all the same."""
        known = [*self.server.changes.values(), *self.server.gone.values()]
        self.raise_revision(max(known, default=0))

    def is_stirred(self) -> bool:
        """Tell whether somebody wrote to the texts past the feed."""
        server = self.server
        return len(server.entries) + len(server.paused) != len(server.changes)

    def tell(self, since: int, *, going_on: bool) -> Changes:
        """Tell what changed after a revision, and first adopt what somebody did by hand."""
        if self.is_stirred():
            self._adopt_all()
        is_whole = going_on or since < self.server.pruned
        since = since if going_on or not is_whole else 0
        there = _after(self.server.changes, since)
        away = _after(self.server.gone, since)
        ends = min(_end_of(there), _end_of(away))
        told = [
            Change(kind, name, at, self._kept(kind).get(name))
            for (kind, name), at in there
            if at <= ends
        ]
        told += [Change(kind, name, at, None) for (kind, name), at in away if at <= ends]
        upto = ends if ends < LATEST else max(self.server.revision, since)
        return Changes(upto, sorted(told, key=lambda each: each.revision), ends < LATEST, is_whole)

    def _adopt_all(self) -> None:
        for kind, name in list(self.server.changes):
            if name not in self._kept(kind):
                self.drop(kind, name, self.next_revision())
        for kind in Kind:
            for name in [each for each in self._kept(kind) if not self.revision_of(kind, each)]:
                self.put(kind, name, self.next_revision(), self._kept(kind)[name])

    def _kept(self, kind: Kind) -> dict[str, bytes]:
        return self.server.entries if kind is Kind.ENTRY else self.server.paused


def _ordered(revisions: Mapping[Thing, int]) -> list[tuple[Thing, int]]:
    return sorted(revisions.items(), key=lambda each: (each[1], each[0][0], each[0][1].encode()))


def _after(revisions: Mapping[Thing, int], since: int) -> list[tuple[Thing, int]]:
    later = {thing: at for thing, at in revisions.items() if at > since}
    return _ordered(later)[:MOST_CHANGES]


def _end_of(told: list[tuple[Thing, int]]) -> int:
    """Return where a list that may be cut off ends: of two, only up to the first end is told."""
    return told[-1][1] if len(told) == MOST_CHANGES else LATEST
