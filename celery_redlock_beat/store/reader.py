"""All that diagnostics reads of one server, over one client; it writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from celery_redlock_beat.store.audit import read_audit, read_now, read_record
from celery_redlock_beat.store.contents import read_contents
from celery_redlock_beat.store.facts import read_facts
from celery_redlock_beat.store.neighbours import read_neighbours
from celery_redlock_beat.store.rights import our_commands, try_rights

if TYPE_CHECKING:
    from redis import Redis

    from celery_redlock_beat.store.audit import AuditRecord
    from celery_redlock_beat.store.client import Server
    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.store.facts import ServerFacts
    from celery_redlock_beat.store.neighbours import Neighbour
    from celery_redlock_beat.store.rights import Rights
    from celery_redlock_beat.ticks import Micros


class Reader:
    """Read a server and the ledger's keys there; each method may raise ``LedgerUnavailable``."""

    def __init__(self, client: Redis, names: Mapping[str, str]) -> None:
        self._client = client
        self._names = names

    def facts(self) -> ServerFacts:
        """Return what the server tells about itself."""
        return read_facts(self._client)

    def rights(self, queue: str | None) -> Rights:
        """Return what the server would refuse our scripts, and a push to the queue, if any."""
        return try_rights(self._client, our_commands(), list(self._names.values()), queue)

    def contents(self) -> Contents:
        """Return what stands in the ledger's keys."""
        return read_contents(self._client, self._names)

    def neighbours(self) -> list[Neighbour]:
        """Return the other ledgers in the same database, as far as we may look."""
        return read_neighbours(self._client, self._names["marks"])

    def now(self) -> Micros:
        """Return the server's time."""
        return read_now(self._client)

    def record(self, entry: str) -> bytes | None:
        """Return the raw text of an entry's record, if there is one."""
        return read_record(self._client, self._names["marks"], entry)

    def audit(self, most: int) -> list[AuditRecord]:
        """Return the newest repairs, the newest first."""
        return read_audit(self._client, self._names["audit"], most)


@contextmanager
def reading(server: Server, names: Mapping[str, str]) -> Iterator[Reader]:
    """Read a server with the ledger's keys of these full names, by short name."""
    with server.connect() as client:
        yield Reader(client, names)
