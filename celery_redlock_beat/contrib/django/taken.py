"""Rows as entries of the schedule: it puts them in and takes them out, and reads no table."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.ticks import shown, to_micros

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from celery_redlock_beat.contrib.django.reading import News, Row
    from celery_redlock_beat.scheduler import RedlockScheduler
    from celery_redlock_beat.ticks import Micros

logger = logging.getLogger(__name__)


class TakenRows:
    """Keep the schedule in step with the rows.

    ``begins`` tells from when on a row counts that the ledger does not know, ``again`` which rows
    were disabled until now, and catch up nothing from before.
    """

    def __init__(self, scheduler: RedlockScheduler) -> None:
        self.rows: dict[str, Row] = {}
        self.begins: Mapping[str, datetime] = {}
        self.again: set[str] = set()
        self._scheduler = scheduler
        self._code: set[str] = set()
        self._leaving: set[str] = set()

    def stay_in_code(self, names: Collection[str]) -> None:
        """Let entries of the code run also where there are rows of their names."""
        for name in self._code - set(names):
            self._scheduler.schedule.pop(name, None)
        self._code = set(names)

    def take(self, news: News) -> None:
        """Take in what changed."""
        self.begins = news.begins
        self.again -= news.gone
        bad = {error.entry for error in news.faults}
        for name in news.gone:
            self._withdraw(name, is_bad=name in bad)
        for name, row in news.rows.items():
            if name in self._code:
                self._tell_of_code(name)
            else:
                self._leaving.discard(name)
                self.rows[name], self._scheduler.schedule[name] = row, row.entry
                if name in news.again and row.at is None:
                    self.again.add(name)
        changed = {*news.gone, *news.rows}
        self._scheduler.roster.compare_some(self._scheduler.schedule, changed)
        for error in news.faults:
            self._scheduler.roster.fault(error)

    def tell_again(self, name: str) -> None:
        """Have the ledger told of a row that was disabled: what it knows may be from before."""
        node = self._scheduler.node
        if node and name in self.again:
            unregistered = node.dispatcher.claims.unregistered
            unregistered[name] = replace(unregistered[name], again=True)

    def go_on(self) -> None:
        """Have intervals go on with their phase, as the ledger will, where that is not asked."""
        for slot in self._scheduler.roster.slots():
            last = self._scheduler.last_run_elsewhere(slot.name)
            if last:
                slot.go_on_from(to_micros(last))

    def let_go(self) -> None:
        """Forget rows that were withdrawn, once the ledger has heard of it."""
        node = self._scheduler.node
        if node:
            self.again &= node.dispatcher.claims.unregistered.keys()
        if node and self._leaving:
            heard = self._leaving - node.dispatcher.claims.unregistered.keys()
            self._leaving -= heard
            for name in heard:
                self._scheduler.schedule.pop(name, None)

    def over(self, until: Micros, marks: Mapping[str, Micros]) -> dict[str, Row]:
        """Return the rows that were to run once until an instant, and were claimed."""
        return {
            name: row
            for name, row in self.rows.items()
            if row.at is not None and row.at <= until and marks.get(name, -1) >= row.at
        }

    def _withdraw(self, name: str, *, is_bad: bool) -> None:
        """Take a row out that is disabled, deleted or bad.

        The ledger is told that it is disabled: when it is back, on whatever node, nothing of
        meanwhile is caught up. Not so of a bad one, which nobody has switched off.
        """
        row = self.rows.pop(name, None)
        self._scheduler.roster.faults.pop(name, None)
        if row is None:
            return
        if row.at is None and self._scheduler.node and not is_bad:
            self._scheduler.schedule[name] = shallow_copy(row.entry, enabled=False)
            self._leaving.add(name)
        else:
            self._scheduler.schedule.pop(name, None)

    def _tell_of_code(self, name: str) -> None:
        logger.warning(
            "entry %s: it has a row, and beat_schedule has what no column can hold, so that the "
            "one in code runs: remove one of them",
            shown(name),
        )
