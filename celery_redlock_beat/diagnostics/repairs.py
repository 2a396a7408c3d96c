"""Set marks on behalf of an operator: first a plan, then the deed, which is audited.

A plan only reads. What it will not do is a value; only what could not be asked is raised.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.diagnostics.findings import instant, name_of, raw_text, span
from celery_redlock_beat.diagnostics.marks import ahead_of
from celery_redlock_beat.diagnostics.parsing import read_mark, read_marks
from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.ledger import SETTLED_KEPT
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.audit import AuditRecord
from celery_redlock_beat.store.client import locate
from celery_redlock_beat.store.reader import reading
from celery_redlock_beat.ticks import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery import Celery

    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.ticks import Micros

LOGGED = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a repair is not going to be done, and what to do instead."""

    text: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A mark that is going to be set, as seen at the server's ``now``.

    ``before`` is ``None`` where the record cannot be read; ``raw`` is its text.
    """

    entry: str
    before: Micros | None
    after: Micros
    now: Micros
    raw: bytes = b""

    def consequences(self) -> Iterator[str]:
        """Yield in words what comes of it."""
        if self.before is None:
            yield f"the record cannot be read, and is written anew: {raw_text(self.raw)}"
            yield "what was due after the new mark may be sent again"
            return
        if self.before > self.now:
            yield f"it runs again with its next tick, instead of after {instant(self.before)}"
            yield "what was sent while the clock was ahead is not sent again"
            if self.after == self.now:
                yield "what was due since the clock was set back is not sent"
        passed = min(self.before, self.now)
        if self.after < passed:
            yield (
                f"what was due after {instant(self.after)} and until {instant(passed)} may be sent "
                "again, as catch_up says; not what was settled within the last "
                f"{span(SETTLED_KEPT)}"
            )
        elif self.after > self.before:
            yield (
                f"what was due after {instant(self.before)} and until {instant(self.after)} and is "
                "not sent yet is not sent, and not counted"
            )


class Repairs:
    """The repairs of one app's ledger.

    Making it raises ``ConfigurationError``; each method may raise ``LedgerError``.
    """

    def __init__(self, app: Celery, settings: Settings | None = None) -> None:
        settings = settings or Settings.from_app(app)
        self._server = locate(app, settings)
        self._names = ledger_keys(settings.namespace, self._server.prefix)
        self._clock = LedgerClock()
        self._ledger = RedisLedger(
            self._server.connect, self._clock, settings.namespace, prefix=self._server.prefix
        )

    def plan(self, entry: str, mark: Micros | Literal["now"] | None = None) -> Repair | Refusal:
        """Return what setting the mark of an entry would do.

        Without a mark it is the server's now, except where the record cannot be read.
        """
        with reading(self._server, self._names) as reader:
            raw = reader.record(entry)
            if raw is None:
                return _unknown(reader.contents(), entry)
            now = reader.now()
        known = read_mark(raw)
        if known is None and mark is None:
            return Refusal(
                f"the record of {name_of(entry.encode())} cannot be read ({raw_text(raw)}): say "
                "with --mark where it shall begin; --mark now sends nothing of the past"
            )
        after = mark if isinstance(mark, int) else now
        if not 0 <= after < LATEST:
            return Refusal("a mark lies between 1970 and 2255: name an instant in between")
        if after > now:
            return Refusal(
                f"{instant(after)} is ahead of the server's clock, which is {instant(now)}: a mark "
                "may not be in the future"
            )
        before = max(known.mark, known.since if known.since > now else 0) if known else None
        return Repair(entry, before, after, now, raw)

    def plan_future(self) -> list[Repair]:
        """Return what sets back to now each mark that is ahead of the server's clock."""
        with reading(self._server, self._names) as reader:
            contents = reader.contents()
        if "HSCAN" in contents.unread:
            raise LedgerUnavailable(
                f"our user may not look at the marks: {contents.unread['HSCAN']}",
                "allow it +hscan, or name the ENTRY",
            )
        marks = read_marks(contents.hash("marks"))
        return [
            Repair(entry.decode(), max(record.mark, record.since), contents.now, contents.now)
            for entry, record in sorted(ahead_of(marks, contents.now).items())
        ]

    def carry_out(self, planned: Sequence[Repair], who: str, why: str) -> list[AuditRecord]:
        """Set the marks, and return what is kept of it in the audit.

        What was planned as now is set to the now of the deed: the plan may have been looked at for
        long, and what was settled meanwhile must not be due again.
        """
        marks = {each.entry: None if each.after == each.now else each.after for each in planned}
        done = self._ledger.repair(marks, who, why)
        at = self._clock.now()
        return [
            AuditRecord(at, who, entry, before.encode(), mark, why)
            for entry, (before, mark) in done.items()
        ]

    def log(self, most: int = LOGGED) -> list[AuditRecord]:
        """Return the audit records, the newest first."""
        with reading(self._server, self._names) as reader:
            return reader.audit(most)


def _unknown(contents: Contents, entry: str) -> Refusal:
    names = [name_of(name) for name in read_marks(contents.hash("marks")).entries]
    near = difflib.get_close_matches(entry, names, n=1)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return Refusal(f"the ledger has no entry {name_of(entry.encode())!r}{hint}")
