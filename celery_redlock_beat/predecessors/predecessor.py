"""What a scheduler asks about the one that sent its entries before; by default there was none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import Micros

if TYPE_CHECKING:
    from datetime import datetime

Settled = Mapping[str, Micros]
"""Per entry, an instant up to which all of its ticks are settled."""


class Predecessor:
    """The scheduler that sent the entries before. As it stands here, there was none.

    ``in_turns`` tells that it may send again, when it is its turn, and not only before the first
    start.
    """

    in_turns = False

    def check(self) -> None:
        """Look at what it left behind.

        Raises:
            SettingError: It cannot be read, and never will.
        """

    def last_run(self, _name: str) -> datetime | None:
        """Return when it sent an entry last, aware, or ``None`` if it never did."""
        return None

    def hear(self, _name: str, _taken: bool | None) -> None:  # noqa: FBT001 - as it is told
        """Learn whether an entry begins where it stopped; ``None``: it did, and has gone on."""

    def turn(self) -> str | None:
        """Return which turn of ours it is, ``None`` while it is the other one's; never raises.

        Before each new turn it may have sent.
        """
        return ""

    def problem(self) -> str:
        """Return why it cannot be asked whose turn it is, so that nothing is sent; else nothing."""
        return ""

    def passed(self, _settled: Callable[[], Settled]) -> None:
        """Do what is to be done after each step of a pass; never raises."""

    def leave(self, _settled: Callable[[Collection[str]], Settled]) -> None:
        """Let it have its turn, with what it must know of these entries then; never raises."""
