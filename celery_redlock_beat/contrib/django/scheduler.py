"""The scheduler whose entries are rows of django-celery-beat; it claims and sends nothing itself.

What it does otherwise than django-celery-beat's own ``DatabaseScheduler``:

- All nodes run it, and each tick is sent once.
- A bad row is left out and told, with its column; it is never disabled or deleted for that. Nor is
  one disabled whose ``expires`` is over: nothing of it is sent.
- An interval goes on from its last run where it is first seen, and keeps to multiples of its period
  from there. One that has never run counts from its ``start_time``, or else from the Unix epoch;
  so does one of which the period is changed.
- A crontab that has never run begins with its first instant from its ``start_time`` on.
- A row that was enabled again catches up nothing from before, if a node saw it disabled. If none
  did, that is so only of one that ``save()`` enabled, without an interval and ``start_time``.
- A row that has never run begins when it was saved, but for one with an interval.
- A row that runs once is due at one instant, which counts from when the row was saved: saving it is
  to have it run again. When it has run, it is disabled.
- An entry of ``beat_schedule`` that has what no column can hold (a cron string, ``catch_up``, an
  argument that is computed for each message) stays in code.
- ``Entry`` is made of fields, not of a model; ``enabled_models`` is called in another thread.
- Its admin shows a banner which says that this is the wrong scheduler. It does not know this one.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, InterfaceError

from celery_redlock_beat.contrib.django.drafts import drafted, entries_of
from celery_redlock_beat.contrib.django.follower import Follower, Heard
from celery_redlock_beat.contrib.django.moving import unreadable_tables
from celery_redlock_beat.contrib.django.reading import Reader
from celery_redlock_beat.contrib.django.rows import KINDS
from celery_redlock_beat.contrib.django.setting_up import SettingUp
from celery_redlock_beat.contrib.django.tables import Lazily, about, rows_in
from celery_redlock_beat.contrib.django.taken import TakenRows
from celery_redlock_beat.contrib.django.visits import Visits
from celery_redlock_beat.contrib.django.writing import Writer
from celery_redlock_beat.errors import LedgerError
from celery_redlock_beat.ledger import MOST_PER_CALL
from celery_redlock_beat.scheduler import RedlockScheduler
from celery_redlock_beat.ticks import SECOND, SENT

if TYPE_CHECKING:
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.contrib.django.drafts import Draft
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.node import Node
    from celery_redlock_beat.ticks import Event, Micros, Tick

SWEEP_EVERY = 30.0
"""Seconds between two looks for rows that have run for good, whose node died before it said so."""
LONG_OVER: Micros = 60 * SECOND

logger = logging.getLogger(__name__)


class DatabaseScheduler(RedlockScheduler):
    """Run the rows of django-celery-beat on every node: each is sent once.

    A change is in force within a second. While the database is away, the rows go on as they were
    last known. A subclass may have a ``Model`` and ``Changes`` of its own, and say in
    ``enabled_models_qs`` or ``enabled_models`` which rows there are.
    """

    Model: Any = Lazily("django_celery_beat.models", "PeriodicTask")
    Changes: Any = Lazily("django_celery_beat.models", "PeriodicTasks")
    # What is written to the tables is never more than the ledger knows. Where they have more, it is
    # django-celery-beat that sent since: somebody had gone back to it.
    in_turns = True
    reads_elsewhere = True

    def __init__(self, app: Celery, *args: Any, lazy: bool = False, **kwargs: Any) -> None:
        self._lazy = lazy
        self._reader = Reader(
            app, self.enabled_models, self.enabled_models_qs, self._disabled_names, self._make
        )
        self._follower = Follower(
            Visits(
                self._reader,
                Writer(lambda: self.Model, lambda: self.Changes),
                SettingUp(lambda: self.Model, lambda: self.Changes),
                lambda: self.Changes,
            )
        )
        self._taken = TakenRows(self)
        self._sweep_at = 0.0
        self._noted: Tick | None = None
        super().__init__(app, *args, lazy=lazy, **kwargs)

    def enabled_models(self) -> list[Any]:
        """Return the rows that are enabled, with their schedules."""
        return list(self.enabled_models_qs())

    def enabled_models_qs(self) -> Any:
        """Return a query for the rows that are enabled."""
        kinds = [kind for kind in KINDS if hasattr(self.Model, kind)]
        return self.Model.objects.enabled().prefetch_related(None).select_related(*kinds)

    def setup_schedule(self) -> None:
        """Write ``beat_schedule`` into the tables, as far as it differs, and take all rows.

        Where the schedule is only looked at, nothing is written.
        """
        columns = {each.name for each in about(self.Model).get_fields()}
        drafts, rest = drafted(self.app, columns, self.roster.fault)
        self._taken.stay_in_code(rest)
        self.update_from_dict(rest)
        if self._lazy:
            self._look(drafts)
            return
        self.roster.compare(self.schedule)
        self.roster.starting = False  # what others typed into the tables never ends the start
        self._hear(self._follower.begin(drafts))

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; return the seconds until the next look. No error leaves it."""
        return min(super().tick(*args, **kwargs), self._follower.wait)

    def last_run_elsewhere(self, name: str) -> datetime | None:
        """Return the last run of a row as the tables have it, or what stands for it."""
        return self._taken.begins.get(name) or super().last_run_elsewhere(name)

    def close(self) -> None:
        """Give back what this node holds, and write last runs if that is quick."""
        tried = self.node.dispatcher.hand.trying if self.node else None
        try:
            super().close()
            if self.node and tried:
                self._note_tried(self.node, tried.tick)
        finally:
            self._follower.close()

    def _disabled_names(self) -> Any:
        return rows_in(self.Model).filter(enabled=False).values_list("name", flat=True)

    def _put(self, slot: Slot) -> None:
        super()._put(slot)
        self._taken.tell_again(slot.name)

    def _pass(self) -> Micros:
        self._hear(self._follower.follow())
        if self.node and time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP_EVERY
            self._sweep()
        wait = super()._pass()
        self._taken.let_go()
        return wait

    def _observe(self, event: Event) -> None:
        self._note_sent(event)  # first: the node may be asked to end at any moment
        super()._observe(event)

    def _note_sent(self, event: Event) -> None:
        row = self._taken.rows.get(event.tick.entry)
        if row is None or event.outcome != SENT:
            return
        if row.at is None:
            self._follower.sent(event.tick.entry, event.tick.instant)
            self._noted = event.tick
        elif row.at == event.tick.at and row.saved:
            self._follower.ended(event.tick.entry, row.saved)

    def _note_tried(self, node: Node, tick: Tick) -> None:
        """Note a run of which the end of this node kept the answer.

        Whoever goes back to django-celery-beat would have it sent again.
        """
        row = self._taken.rows.get(tick.entry)
        if row is None or row.at is not None or self._noted == tick:
            return
        try:
            settled = node.settled_by_now([tick.entry])
        except LedgerError as exc:
            logger.warning("%s: its last run may be missing in its row: %s", tick, exc)
            return
        if settled.get(tick.entry, -1) >= tick.at:
            self._follower.sent(tick.entry, tick.instant)

    def _hear(self, heard: Heard) -> None:
        for error in heard.faults:
            self.roster.fault(error)
        if heard.news:
            self._taken.take(heard.news)
            for name, saved in heard.news.spent:
                self._follower.ended(name, saved)
            self.vitals.changed()

    def _sweep(self) -> None:
        """Have rows disabled that have run for good, whoever ran them."""
        if not (self.node and self.node.dispatcher.clock.is_known):
            return
        dispatcher = self.node.dispatcher
        over = self._taken.over(dispatcher.clock.now() - LONG_OVER, dispatcher.witness.marks)
        if not over:
            return
        try:
            looks = dispatcher.ledger.look(list(over)[:MOST_PER_CALL])
        except LedgerError as exc:
            logger.debug("Rows that are over are looked for later: %s", exc)
            return
        for look in looks:
            row = over[look.entry]
            if look.record and look.record.mark >= (row.at or 0) and not look.open and row.saved:
                self._follower.ended(look.entry, row.saved)

    def _look(self, drafts: list[Draft]) -> None:
        """Read the tables here and now; entries that the next start would write are there, too."""
        try:
            news = self._reader.read()
            named = rows_in(self.Model).filter(name__in=[each.name for each in drafts])
            present = set(named.values_list("name", flat=True))
        except (DatabaseError, InterfaceError) as exc:
            raise unreadable_tables(exc) from exc
        self._hear(Heard(news, ()))
        self._taken.go_on()
        configured = entries_of(self.app)
        missing = {each.name: configured[each.name] for each in drafts if each.name not in present}
        self.update_from_dict(missing)
