"""What nodes push after a loss of data, and what they are answered, as values; no I/O here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.ledger import Grant, Settlement
    from celery_redlock_beat.ticks import Micros, Tick


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node remembers of an entry, to push after a loss of data.

    All ticks up to ``closed`` are settled, but those ``still_open``. Up to ``sure`` all are, and
    their messages did not leave with what the ledger may have lost last. ``runs`` is what it was
    told together with the mark.
    """

    entry: str
    mark: Micros
    since: Micros = 0
    fingerprint: str = ""
    closed: Micros = 0
    sure: Micros = 0
    still_open: tuple[Micros, ...] = ()
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Testimony:
    """All that a node vouches for.

    ``settled`` are outcomes that it knows, and ticks that it tried without an answer as in doubt;
    ``held`` are grants that it never tried.
    """

    memories: Sequence[Memory] = ()
    settled: Sequence[Settlement] = ()
    held: Sequence[Grant] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """The ticks of an entry after ``floor`` and up to ``mark``: nobody vouched for them."""

    entry: str
    floor: Micros
    mark: Micros


@dataclass(frozen=True, slots=True)
class Recovery:
    """The state of a recovery: over when ``wait`` is 0 and there are no ``doubts``.

    ``refused`` marks were too far ahead; ``repaired`` has the marks that an operator set;
    ``lost`` names the keys that were missing; ``in_doubt`` are ticks that this push closed so;
    ``not_in_force`` are those held grants that are not (any more). ``revision`` is that up to which
    the ledger has the feed; ``began`` when it was empty and nobody remembered anything, or 0.
    """

    wait: Micros
    refused: list[str] = field(default_factory=list)
    repaired: dict[str, Micros] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    in_doubt: list[Tick] = field(default_factory=list)
    not_in_force: list[Tick] = field(default_factory=list)
    revision: int = 0
    began: Micros = 0
