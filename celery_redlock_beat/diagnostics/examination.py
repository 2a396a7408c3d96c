"""Read what there is to read, have it judged, and put the findings together; it only reads."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from celery_redlock_beat.assembly import check, delivery_name, micros
from celery_redlock_beat.diagnostics import (
    configuration,
    durability,
    fleet,
    keys,
    losses,
    marks,
    nodes,
    pauses,
    rights,
    server,
    stored_entries,
)
from celery_redlock_beat.diagnostics.findings import (
    Finding,
    Report,
    many,
    name_of,
    sorted_by_severity,
)
from celery_redlock_beat.diagnostics.parsing import Marks, read_marks
from celery_redlock_beat.diagnostics.taking_in import TakenIn, taken_in
from celery_redlock_beat.errors import ConfigurationError, LedgerUnavailable
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import check_broker_url, locate
from celery_redlock_beat.store.reader import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery import Celery

    from celery_redlock_beat.store.client import Server
    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.store.facts import ServerFacts
    from celery_redlock_beat.store.reader import Reader

LONGEST_TOTALS = 12


def examine(app: Celery, settings: Settings | None = None) -> Report:
    """Return what is wrong with the configuration, the server and the ledger of an app.

    It reads in chunks, writes nothing, and raises nothing that it can put into a finding.
    """
    facts: dict[str, str] = {}
    found: list[Finding] = []
    try:
        settings = settings or Settings.from_app(app)
        check_broker_url(app)
        place = locate(app, settings)
        found += configuration.eager(app)
        if not found:  # it warns in the log of what was just found
            check(app, settings)
    except ConfigurationError as exc:
        found.append(configuration.wrong_setting(exc))
        return Report(facts, found)
    facts["ledger"] = f"{place.label} (namespace {settings.namespace})"
    facts["delivery"] = delivery_name(settings, place)
    if place.why_not:
        facts["delivery"] += f": {place.why_not}"
    found += (
        [configuration.memory(place)] if place.is_memory else _examined(app, settings, place, facts)
    )
    return Report(facts, sorted_by_severity(found))


def _examined(
    app: Celery, settings: Settings, place: Server, facts: dict[str, str]
) -> list[Finding]:
    found: list[Finding] = []
    try:
        with reading(place, ledger_keys(settings.namespace, place.prefix)) as reader:
            for finding in _Examination(app, settings, place, reader, facts).findings():
                found.append(finding)  # noqa: PERF402  those before a failure count
    except LedgerUnavailable as exc:
        unwritten = [each for each in found if each.name != "no-writes"]  # it is the same
        return [*unwritten, configuration.unavailable(place, exc)]
    return found


class _Examination:
    """The examination of one server, which notes the facts as it goes."""

    def __init__(
        self, app: Celery, settings: Settings, place: Server, reader: Reader, facts: dict[str, str]
    ) -> None:
        self._app = app
        self._settings = settings
        self._place = place
        self._reader = reader
        self._facts = facts

    def findings(self) -> Iterator[Finding]:
        """Yield the findings as far as the server can be asked."""
        facts = self._reader.facts()
        self._facts["server"] = server.described(facts)
        yield from chain.from_iterable(judge(facts, self._settings) for judge in server.JUDGES)
        if server.mode(facts) == "sentinel":
            return
        yield from chain.from_iterable(judge(facts) for judge in durability.JUDGES)
        yield from self._of_rights(facts)
        contents = self._reader.contents()
        noted = read_marks(contents.hash("marks"))
        self._note(contents, noted)
        taken = self._taken_in(contents)
        yield from self._of_keys(contents, noted)
        yield from self._of_ledger(contents, noted, facts)
        yield from self._of_entries(contents, noted, taken)
        yield from self._of_nodes(contents, noted, taken)

    def _taken_in(self, contents: Contents) -> TakenIn:
        """Load the schedule only where something depends on it: that imports the app's modules."""
        texts, over = stored_entries.stored(contents), pauses.over(contents)
        if not texts and not over:
            return TakenIn()
        return taken_in(self._app, self._settings, texts, over)

    def _of_rights(self, facts: ServerFacts) -> Iterator[Finding]:
        queue = f"{self._place.prefix}{self._app.conf.task_default_queue}"
        told = self._reader.rights(queue if self._place.is_broker else None)
        yield from rights.missing(told)
        yield from rights.no_identity(told, facts.refused)
        yield from rights.no_writes(told)
        yield from rights.untried(told)

    def _of_keys(self, contents: Contents, noted: Marks) -> Iterator[Finding]:
        yield from keys.foreign_types(contents)
        yield from keys.expiring(contents)
        yield from keys.lost(contents, noted)
        yield from keys.other_format(contents, noted)
        yield from keys.unreadable(contents, noted)
        yield from keys.unread(contents)

    def _of_ledger(self, contents: Contents, noted: Marks, facts: ServerFacts) -> Iterator[Finding]:
        lease = micros(self._settings.lease)
        yield from marks.ahead(contents, noted)
        yield from marks.orphans(contents, lease, len(fleet.living(contents)))
        yield from marks.leases_ahead(contents, lease)
        yield from marks.unpaired(contents)
        yield from losses.recovery(contents, noted)
        yield from losses.identity(contents, noted, facts.info.get("master_replid", ""))
        yield from losses.began_empty(contents, noted)
        yield from losses.in_doubt(contents)

    def _of_entries(self, contents: Contents, noted: Marks, taken: TakenIn) -> Iterator[Finding]:
        yield from stored_entries.bad(contents, taken)
        yield from stored_entries.hidden(contents, taken)
        yield from stored_entries.not_noticed(contents, noted)
        yield from stored_entries.by_hand(contents)
        yield from pauses.unreadable(contents)
        yield from pauses.of_nobody(contents, noted)
        yield from pauses.not_ended(contents, noted, taken.slots)
        yield from nodes.gone_entries(contents, noted, taken.left_out)

    def _of_nodes(self, contents: Contents, noted: Marks, taken: TakenIn) -> Iterator[Finding]:
        yield from nodes.nobody(contents)
        yield from nodes.heartbeats_ahead(contents)
        yield from fleet.bad_entries(contents, taken.left_out)
        yield from fleet.not_ready(contents)
        yield from fleet.versions_differ(contents)
        yield from fleet.schedules_differ(contents)
        yield from fleet.clocks(contents)
        others = self._reader.neighbours()
        yield from nodes.neighbours(contents, noted, others, self._settings.namespace)

    def _note(self, contents: Contents, noted: Marks) -> None:
        if contents.unread:
            what = f"not known: our user may not {' or '.join(contents.unread)}"
            self._facts |= dict.fromkeys(("nodes", "entries", "counted"), what)
        if contents.unread or not keys.is_there(contents):
            return
        stored, paused = stored_entries.stored(contents), pauses.pauses(contents)
        totals = sorted(contents.hash("totals").items())[:LONGEST_TOTALS]
        counted = (f"{name_of(name)} {name_of(number)}" for name, number in totals)
        self._facts["nodes"] = f"{len(fleet.living(contents))} alive"
        self._facts["entries"] = (
            f"{len(noted.entries):,}, {len(stored):,} stored, {len(paused):,} paused"
        )
        self._facts["counted"] = ", ".join(counted) or "nothing yet"
        self._facts["history"] = many(contents.history, "outcome", "outcomes")
