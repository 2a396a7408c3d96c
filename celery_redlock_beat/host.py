"""What a node asks of the scheduler that it runs in, as a value; it asks nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.ledger.steering import Change
    from celery_redlock_beat.ticks import Event, Micros


@dataclass(frozen=True, slots=True)
class LastRun:
    """When another scheduler sent an entry last; ``again``: it may do so in turns with this one.

    Without that, it counts only as long as no tick of the entry was claimed.
    """

    at: Micros
    again: bool = False


def _nothing(_change: Change) -> None:
    """Take in no stored entries."""


def _ignore(_name: str, _taken: bool | None) -> None:  # noqa: FBT001 - as it is told
    """Do nothing about it."""


def _pass_over(_settled: Callable[[], Mapping[str, Micros]]) -> None:
    """Do nothing when a step is over."""


def _never(_name: str) -> LastRun | None:
    """Know of no other scheduler."""
    return None


@dataclass(frozen=True, slots=True)
class Host:
    """The other side of a node.

    ``entry_of`` returns an entry that can be sent, ``observe`` is told each outcome, ``take`` each
    change of a stored entry, and ``tell`` returns what the node tells of itself, if that is news.
    ``last_run`` returns when another scheduler sent an entry last, if one did, and ``seeded`` is
    told whether it begins there (``None``: it did, and has gone on); ``may_send`` tells whether it
    is this fleet's turn. ``stepped`` is called when a step is over, with what tells up to which
    instant all ticks of each entry are settled.
    """

    entry_of: Callable[[str], RedlockEntry | None]
    observe: Callable[[Event], None]
    take: Callable[[Change], None] = _nothing
    tell: Callable[[], str] = str
    last_run: Callable[[str], LastRun | None] = _never
    seeded: Callable[[str, bool | None], None] = _ignore
    may_send: Callable[[], bool] = lambda: True
    stepped: Callable[[Callable[[], Mapping[str, Micros]]], None] = _pass_over
