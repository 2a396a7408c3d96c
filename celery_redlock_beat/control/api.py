"""What operators can do: each deed is done by the ledger, as long as all is as it was seen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.control.editing import Edits
from celery_redlock_beat.control.firing import Gun, Order
from celery_redlock_beat.control.holding import Holding
from celery_redlock_beat.control.selection import Selection
from celery_redlock_beat.control.views import Resumed
from celery_redlock_beat.errors import ControlError, EntryError, EntryPaused

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from celery import Celery

    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.control.views import EntryView, Fired

logger = logging.getLogger(__name__)


class Control(Edits):
    """An operator's hold on the entries of an app, from code and stored.

    Making one touches no network. ``who`` is kept in the history; by default it is user@host.

    Deeds take names or shell patterns, a ``tag``, a ``task``, which narrow what is meant, or
    ``all=True``. An entry that was named and cannot be dealt with is an error; one that a pattern
    matched is left out, told in the log, and does not stop the others. ``note`` is kept in the
    history.

    Besides what they name, all raise ``LedgerUnavailable``; ``LedgerRecovering`` where nodes have
    to tell what they remember, and that took longer than 15 seconds; ``NoSuchEntry``;
    ``NothingSelected``; ``ControlError`` for a note, a key or a ``who`` that cannot be written as
    UTF-8; and ``ConfigurationError`` where beat itself would not start, or the ledger
    is ``memory://``.
    """

    def __init__(self, app: Celery, *, who: str | None = None) -> None:
        super().__init__(app, who=who)
        self._holding = Holding(self._access, self._catalogue)
        self._gun = Gun(self._access, self._catalogue)

    def close(self) -> None:
        """Let go of the connections; it can be asked again, and then connects anew."""
        self._gun.close()
        super().close()

    def pause(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        note: str = "",
        until: datetime | timedelta | None = None,
    ) -> list[EntryView]:
        """Hold entries back until they are resumed, or until an instant; return how they are.

        When it has returned, nothing of them is enqueued. What is paused already is paused anew.

        Raises:
            ControlError: The end is over, too far away, or has no offset from UTC.
        """
        found = self._find(Selection(names, tag, task, all))
        self._holding.pause(found, note, until)
        return self._again(found)

    def resume(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        catch_up: bool = False,
        note: str = "",
    ) -> Resumed:
        """End pauses; return how the entries are, also those that were not paused.

        The ``names`` of the answer are those whose pauses this ended. One that is neither stored
        nor in the code here any more is told as a bad one.

        What was due meanwhile is skipped, or, with ``catch_up``, caught up as the entry's policy
        says.

        Raises:
            EntryError: A timetable failed, so that nobody can count what was due.
        """
        found = self._find(Selection(names, tag, task, all), also_gone=True)
        ended = self._holding.resume(found, note, catch_up=catch_up)
        return Resumed(self._again(found, also_gone=True), ended)

    def fire(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        key: str | None = None,
        force: bool = False,
        note: str = "",
    ) -> list[Fired]:
        """Send the messages of entries now, from this process; their schedules do not move.

        The same ``key`` sends a message once within a day, whoever asks, and how often. Where the
        broker did not say whether it took it, the key may send it again after half a minute, with
        the same task id.

        Raises:
            EntryPaused: It is paused or disabled; ``force`` overrules that.
            EntryError: It is a bad one.
            ControlError: The key is empty, or the entry's options fix its task id.
            DeliveryError: The broker did not take the message.
        """
        order = Order(key, force, note)
        order.check()
        found = self._find(Selection(names, tag, task, all))
        fired: list[Fired] = []
        for each in [each for each in found if self._can_fire(each, order)]:
            try:
                fired.append(self._gun.fire(each, order))
            except EntryPaused as exc:
                _leave_out(each, exc)
        return fired

    def skip(self, name: str, tick: datetime, *, note: str = "") -> EntryView:
        """Have one tick skipped when it is due; return how the entry is.

        Raises:
            TickRefused: The entry has no such tick, or it is being sent, or settled.
            ControlError: The instant has no offset from UTC.
        """
        self._access.await_whole()
        self._holding.skip(self._finder.get(name), tick, note)
        return self.get(name)

    def _can_fire(self, found: Found, order: Order) -> bool:
        try:
            self._gun.check(found, order)
        except (ControlError, EntryError) as exc:
            _leave_out(found, exc)
            return False
        return True


def _leave_out(found: Found, error: ControlError | EntryError) -> None:
    """Raise what stands against an entry that was named; of others it is only told."""
    if found.by_name:
        raise error
    logger.warning("%s", error)
