"""The scheduler that Celery's beat runs: the glue to ``celery.beat``, and nothing else."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from celery.beat import ScheduleEntry, Scheduler

from celery_redlock_beat.assembly import assemble, check, delivery_name
from celery_redlock_beat.entries import RedlockEntry, canonical_name, check_fields, check_keys
from celery_redlock_beat.errors import (
    ConfigurationError,
    EntryError,
    LedgerError,
    SettingError,
)
from celery_redlock_beat.observers.log import OutcomeLog
from celery_redlock_beat.roster import Roster
from celery_redlock_beat.settings import SHORTEST_POLL, Settings
from celery_redlock_beat.store.client import check_broker_url, locate
from celery_redlock_beat.ticks import SECOND, SENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery import Celery
    from kombu import Producer

    from celery_redlock_beat.node import Node
    from celery_redlock_beat.ticks import Event, Micros

DEFAULT_FILENAME = "celerybeat-schedule"
SILENCE = 60.0
"""Seconds before a failure of the same kind, in the same place, is logged again."""

logger = logging.getLogger(__name__)


class RedlockScheduler(Scheduler):  # type: ignore[misc]
    """Run beat on every node: each periodic task is sent once.

    Used as ``celery beat -S redlock``. Creating it, ``info`` and ``repr`` touch no network; the
    node that does the work connects in its first ``tick``, in the process that runs it.
    """

    Entry = RedlockEntry
    max_interval = 0.5
    _heap: list[Any] | None
    _in_pass = False
    _closed_in_pass = False

    def __init__(self, app: Celery, *args: Any, lazy: bool = False, **kwargs: Any) -> None:
        self.settings = Settings.from_app(app)
        self.node: Node | None = None
        overridden: Any = None if type(self).is_due is Scheduler.is_due else self.is_due
        self.roster = Roster(app, self.settings, self._put, self._discard, overridden)
        self._follows_conf = False
        self._log = OutcomeLog()
        self._from_conf: dict[str, Any] = {}
        self._conf_names: dict[str, str] = {}
        self._refused: Any = object()  # what was refused may be None
        self._complained: dict[tuple[Any, ...], float] = {}
        filename = kwargs.get("schedule_filename")
        check_broker_url(app)  # here, since the banner would quote a part of its password
        if not lazy:
            check(app, self.settings)
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
        self._in_pass = True
        try:
            wait = self._pass() / SECOND
        except Exception as exc:  # noqa: BLE001 - whatever it is, beat goes on
            self._complain(exc)
        finally:
            self._in_pass = False
        if self._closed_in_pass:
            # The SystemExit of beat's signal handler was lost in what it interrupted: kombu's and
            # redis-py's clean-up may put an error of their own in its place.
            raise SystemExit
        # Celery's own setting may be anything, and must not make the loop spin.
        longest = max(SHORTEST_POLL, min(self.settings.poll, self.max_interval))
        return min(wait, longest)

    def _complain(self, exc: Exception) -> None:
        """Log what failed a pass, but not in each pass: the next one comes in half a second."""
        last = traceback.extract_tb(exc.__traceback__)[-1]
        kind, now = (type(exc), last.filename, last.lineno), time.monotonic()
        if now < self._complained.get(kind, now):
            logger.debug("This pass failed as before: %r", exc)
            return
        self._complained[kind] = now + SILENCE
        logger.error("This pass failed; the next one goes on", exc_info=exc)

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
        try:
            self.node.leave()
        except LedgerError as exc:
            logger.warning("What this node holds becomes free when its lease ends: %s", exc)

    def add(self, **kwargs: Any) -> RedlockEntry:
        """Add an entry; it is taken in with the next pass."""
        self.roster.must_compare_all = True
        entry: RedlockEntry = super().add(**kwargs)
        return entry

    def update_from_dict(self, dict_: Mapping[str, Any]) -> None:
        """Add or replace entries; they are taken in with the next pass. A bad one is left out."""
        self.roster.must_compare_all = True
        for name, fields in dict_.items():
            entry = self._entry_from(name, fields, check_keys)
            if entry:
                self.schedule[entry.name] = entry

    def merge_inplace(self, b: Mapping[str, Any]) -> None:
        """Make the schedule equal to ``b``; entries that stay keep their identity."""
        wanted = [self._entry_from(name, fields, check_keys) for name, fields in b.items()]
        entries = {entry.name: entry for entry in wanted if entry}
        for name in set(self.schedule) - set(entries):
            del self.schedule[name]
        for name, entry in entries.items():
            self._set(name, entry)

    def set_schedule(self, schedule: dict[str, RedlockEntry]) -> None:
        """Take another dict as the schedule."""
        self.roster.must_compare_all = True
        self.data = schedule

    schedule = property(Scheduler.get_schedule, set_schedule)

    def send(self, entry: ScheduleEntry, producer: Producer) -> None:
        """Send through Celery's own ``apply_entry``, and raise what that only logs."""
        failures: list[Exception] = []
        own = self.__dict__
        replaced = own.get("apply_async")
        apply_async = self.apply_async

        def apply_and_tell(*args: Any, **kwargs: Any) -> Any:
            try:
                return apply_async(*args, **kwargs)
            except Exception as exc:
                failures.append(exc)
                raise

        # On the instance and for this one call: apply_entry itself may be wrapped or overridden.
        own["apply_async"] = apply_and_tell
        try:
            self.apply_entry(entry, producer=producer)
        finally:
            del own["apply_async"]
            if replaced:
                own["apply_async"] = replaced
        if failures:
            raise failures[0]

    def _assemble(self) -> Node:
        node = assemble(
            self.app,
            self.settings,
            send=self.send,
            entry_of=self.roster.entry_of,
            observe=self._observe,
        )
        for slot in self.roster.slots():
            node.put(slot)
        return node

    def _put(self, slot: Any) -> None:
        if self.node:
            self.node.put(slot)

    def _discard(self, name: str) -> None:
        if self.node:
            self.node.discard(name)

    def _observe(self, event: Event) -> None:
        entry = self.roster.entry_of(event.tick.entry)
        if entry and event.outcome == SENT:
            entry.last_run_at = event.tick.instant
            entry.total_run_count += 1
        self._log(event)

    def _merge_conf(self) -> None:
        """Follow ``beat_schedule``, to which ``add_periodic_task`` adds at any time."""
        configured = self.app.conf.beat_schedule
        if self._from_conf == configured or not self._can_follow(configured):
            return
        self.roster.must_compare_all = True
        for name in set(self._from_conf) - set(configured):
            self.roster.faults.pop(name, None)
            self.schedule.pop(self._conf_names.pop(name, name), None)
        for name, fields in configured.items():
            if self._from_conf.get(name) is not fields:
                entry = self._entry_from(name, fields, check_fields)
                if entry:
                    self._conf_names[name] = entry.name
                    self._set(entry.name, entry)
                else:
                    self.schedule.pop(self._conf_names.pop(name, name), None)
        self._from_conf = dict(configured)

    def _can_follow(self, configured: Any) -> bool:
        """Answer whether it is a schedule; if not, end the start, or leave all as it was."""
        if isinstance(configured, Mapping):
            return True
        problem = SettingError(
            "beat_schedule must be a dict of entries by name, as in "
            "{'pulse': {'task': 'proj.pulse', 'schedule': 30}}, and is of type "
            f"{type(configured).__name__}"
        )
        if self.roster.starting:
            raise problem
        if self._refused is not configured:
            self._refused = configured
            logger.error("The schedule stays as it was: %s", problem)
        return False

    def _set(self, name: str, entry: RedlockEntry) -> None:
        self.roster.must_compare_all = True
        if name in self.schedule:
            self.schedule[name].update(entry)
        else:
            self.schedule[name] = entry

    def _entry_from(
        self, name: str, fields: Any, check: Callable[[str, Any], None]
    ) -> RedlockEntry | None:
        try:
            if isinstance(fields, ScheduleEntry):
                return cast("RedlockEntry", self._maybe_entry(name, fields))
            name = canonical_name(name, fields)
            check(name, fields)
            return cast("RedlockEntry", self._maybe_entry(name, fields))
        except EntryError as exc:
            self.roster.fault(exc)
        except Exception as exc:  # noqa: BLE001 - one bad entry does not stop the others
            self.roster.fault(EntryError(name, str(exc)))
        return None
