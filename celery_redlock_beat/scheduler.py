"""The scheduler that Celery's beat runs: the glue to ``celery.beat``, and nothing else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from celery.beat import Scheduler

from celery_redlock_beat.assembly import assemble, check, delivery_name, predecessor_of
from celery_redlock_beat.clock import monotonic_micros
from celery_redlock_beat.complaints import Complaints
from celery_redlock_beat.configured import ConfiguredEntries
from celery_redlock_beat.definitions import Definitions
from celery_redlock_beat.delivery.applying import apply_entry
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import ConfigurationError, LedgerError
from celery_redlock_beat.handover import Handover
from celery_redlock_beat.host import Host
from celery_redlock_beat.observers.group import Group
from celery_redlock_beat.observers.log import OutcomeLog
from celery_redlock_beat.observers.receivers import Receivers
from celery_redlock_beat.roster import Roster
from celery_redlock_beat.setting_values import SHORTEST_POLL
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import check_broker_url, locate
from celery_redlock_beat.stored import StoredEntries
from celery_redlock_beat.ticks import SECOND, SENT
from celery_redlock_beat.vitals import Vitals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from celery import Celery
    from celery.beat import ScheduleEntry
    from kombu import Producer

    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger.steering import Change
    from celery_redlock_beat.node import Node
    from celery_redlock_beat.ticks import Event, Micros

DEFAULT_FILENAME = "celerybeat-schedule"

logger = logging.getLogger(__name__)


class RedlockScheduler(Scheduler):  # type: ignore[misc]
    """Run beat on every node: each periodic task is sent once.

    Used as ``celery beat -S redlock``. Creating it, ``info`` and ``repr`` touch no network; the
    node that does the work connects in its first ``tick``, in the process that runs it.
    """

    Entry = RedlockEntry
    max_interval = 0.5
    in_turns = False
    """Whether ``last_run_elsewhere`` tells of another scheduler that may send between our runs."""
    reads_elsewhere = False
    """Whether there are entries that ``beat_schedule`` does not tell of."""
    lock_key = None  # RedBeat's receiver of beat_init asks every scheduler, once it is imported
    _heap: list[Any] | None
    _in_pass = False
    _closed_in_pass = False

    def __init__(self, app: Celery, *args: Any, lazy: bool = False, **kwargs: Any) -> None:
        self.settings = Settings.from_app(app)
        self.node: Node | None = None
        overridden: Any = None if type(self).is_due is Scheduler.is_due else self.is_due
        self.roster = Roster(
            app, self.settings, self._put_from_code, self._discard_from_code, overridden
        )
        self.stored = StoredEntries(
            app,
            self.settings,
            self._make,
            lambda name: name in self.schedule,
            self._put,
            self._discard,
            self._forget,
        )
        self._definitions = Definitions(self._make, self.roster.fault)
        self._configured = ConfiguredEntries(app, self._definitions, self.roster)
        self._follows_conf = False
        self.vitals = Vitals(self.settings, self.roster.facts, self._bad_names)
        self.roster.changed = self.vitals.changed
        self._tell = Group(OutcomeLog(), Receivers(), self.vitals.observe)
        self._complaints = Complaints()
        self._handover = Handover(
            predecessor_of(app, self.settings, self._names),
            self._put_all,
            self.last_run_elsewhere,
            in_turns=self.in_turns,
        )
        filename = kwargs.get("schedule_filename")
        check_broker_url(app)  # here, since the banner would quote a part of its password
        if not lazy:
            check(app, self.settings)
            self.vitals.check()
            self._handover.check()
            if filename and filename != DEFAULT_FILENAME:
                logger.warning("The schedule file %s is ignored: the state is in Redis.", filename)
        super().__init__(app, *args, lazy=lazy, **kwargs)
        if not lazy:
            self.roster.compare(self.schedule)
            self.roster.starting = False

    @property
    def info(self) -> str:
        """Describe ledger and delivery for beat's banner, without passwords."""
        try:
            server = locate(self.app, self.settings)
        except ConfigurationError as exc:
            return f"    . ledger -> {exc}"
        return (
            f"    . ledger -> {server.label} (namespace {self.settings.namespace})\n"
            f"    . delivery -> {delivery_name(self.settings, server)}"
        )

    def setup_schedule(self) -> None:
        """Take the entries of ``beat_schedule``, from now on, and Celery's own."""
        self._follows_conf = True
        self._merge_conf()
        self.install_default_entries(self.schedule)

    def tick(self, *_args: Any, **_kwargs: Any) -> float:
        """Send what is due; return the seconds until the next look. No error leaves it."""
        wait = self.settings.poll
        began = monotonic_micros()
        self._in_pass = True
        try:
            wait = self._pass() / SECOND
            self.vitals.passed(monotonic_micros() - began, self._handover.problem())
        except Exception as exc:  # noqa: BLE001 - whatever it is, beat goes on
            self._complaints.tell(exc)
            self.vitals.failed(exc)
        finally:
            self._in_pass = False
        if self._closed_in_pass:
            # The SystemExit of beat's signal handler was lost in what it interrupted: kombu's and
            # redis-py's clean-up may put an error of their own in its place.
            raise SystemExit
        # Celery's own setting may be anything, and must not make the loop spin.
        longest = max(SHORTEST_POLL, min(self.settings.poll, self.max_interval))
        return min(wait, longest)

    def _pass(self) -> Micros:
        if self._follows_conf:
            self._merge_conf()
        if self._heap is None:  # as Celery's subclasses set it, to have everything looked at again
            self.roster.must_compare_all = True
            self._heap = []
        if self.node is None:
            self.node = self._assemble()
        self.roster.compare(self.schedule)
        return self.node.run()

    def close(self) -> None:
        """Give back what this node holds, so that nobody waits for its lease. May be called twice.

        Also called inside a signal handler, perhaps in the middle of a publish: it speaks on a
        connection of its own.
        """
        self._closed_in_pass = self._closed_in_pass or self._in_pass
        try:
            super().close()
        finally:
            self._leave()

    def _leave(self) -> None:
        if self.node is None:
            return
        last_words = self.vitals.close()
        try:
            self.node.leave(last_words)
        except LedgerError as exc:
            logger.warning("What this node holds becomes free when its lease ends: %s", exc)
        self._handover.leave(self.node)

    def add(self, **kwargs: Any) -> RedlockEntry:
        """Add an entry; it is taken in with the next pass."""
        self.roster.must_compare_all = True
        entry: RedlockEntry = super().add(**kwargs)
        return entry

    def update_from_dict(self, dict_: Mapping[str, Any]) -> None:
        """Add or replace entries; they are taken in with the next pass. A bad one is left out."""
        self.roster.must_compare_all = True
        for entry in self._definitions.entries(dict_):
            self.schedule[entry.name] = entry

    def merge_inplace(self, b: Mapping[str, Any]) -> None:
        """Make the schedule equal to ``b``; entries that stay keep their identity."""
        entries = {entry.name: entry for entry in self._definitions.entries(b)}
        for name in set(self.schedule) - set(entries):
            del self.schedule[name]
        for name, entry in entries.items():
            self._set(name, entry)

    def set_schedule(self, schedule: dict[str, RedlockEntry]) -> None:
        """Take another dict as the schedule."""
        self.roster.must_compare_all = True
        self.data = schedule

    schedule = property(Scheduler.get_schedule, set_schedule)

    def last_run_elsewhere(self, name: str) -> datetime | None:
        """Return when another scheduler sent an entry last, aware, or ``None``.

        An entry that the ledger does not know begins there: nothing up to then is sent again, and
        what was due since is caught up as its policy says. It is asked at each registration.
        """
        return self._handover.known_last_run(name)

    def send(self, entry: ScheduleEntry, producer: Producer) -> None:
        """Send through Celery's own ``apply_entry``, and raise what that only logs."""
        apply_entry(self, entry, producer)

    def _assemble(self) -> Node:
        node = assemble(
            self.app,
            self.settings,
            send=self.send,
            host=Host(
                self.entry_of,
                self._observe,
                self._take,
                self.vitals.tell,
                self._handover.last_run,
                self._handover.hear,
                self._handover.may_send,
                self._handover.passed,
            ),
        )
        self.vitals.begin(node, delivery_name(self.settings, locate(self.app, self.settings)))
        for slot in self.roster.slots():
            node.put(slot)
        return node

    def entry_of(self, name: str) -> RedlockEntry | None:
        """Return an entry that can be sent, from code or stored, or ``None``."""
        return self.roster.entry_of(name) or self.stored.roster.entry_of(name)

    def _put_from_code(self, slot: Slot) -> None:
        if self.node:
            self.stored.make_way(slot.name, self.node.dispatcher.feed.stored)
        self._put(slot)

    def _discard_from_code(self, name: str) -> None:
        self._discard(name)
        self.stored.come_back(name)

    def _take(self, change: Change) -> None:
        self.vitals.changed()
        self.vitals.forget(change.name)
        self.stored.take(change)

    def _bad_names(self) -> set[str]:
        return {*self.roster.faults, *self.stored.roster.faults}

    def _put_all(self) -> None:
        for slot in (*self.roster.slots(), *self.stored.roster.slots()):
            self._put(slot)

    def _names(self) -> set[str]:
        return {*self.schedule, *(slot.name for slot in self.stored.roster.slots())}

    def _put(self, slot: Slot) -> None:
        if self.node:
            self.node.put(slot)

    def _discard(self, name: str) -> None:
        if self.node:
            self.node.discard(name)

    def _forget(self, name: str) -> None:
        if self.node:
            self.node.forget(name)

    def _observe(self, event: Event) -> None:
        entry = self.entry_of(event.tick.entry)
        if entry and event.outcome == SENT:
            entry.last_run_at = event.tick.instant
            entry.total_run_count += 1
        self._tell(event, self.node.dispatcher.ledger.node if self.node else "")

    def _merge_conf(self) -> None:
        for name, entry in self._configured.changes():
            if entry:
                self._set(name, entry)
            else:
                self.schedule.pop(name, None)

    def _set(self, name: str, entry: RedlockEntry) -> None:
        self.roster.must_compare_all = True
        if name in self.schedule:
            self.schedule[name].update(entry)
        else:
            self.schedule[name] = entry

    def _make(self, name: str, fields: Any) -> RedlockEntry:
        return cast("RedlockEntry", self._maybe_entry(name, fields))
