"""Take stored entries in as a node does, to see what becomes of them; it judges nothing.

It needs no server: the texts are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.diagnostics.schedules.hearing import heard
from celery_redlock_beat.diagnostics.schedules.loading import load
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ledger import wire_steering
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.stored import IN_CODE, StoredEntries

if TYPE_CHECKING:
    from collections.abc import Collection

    from celery import Celery

    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.settings import Settings

MOST = 100_000
"""How many stored entries are taken in: some take a sixth of a millisecond."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What became of entries, by raw name.

    What is wrong with the ``bad`` ones, those that are ``hidden`` by one from code, and the
    ``slots`` that were asked for. ``partial`` tells that there were too many to look at.
    """

    bad: Mapping[bytes, str] = field(default_factory=dict)
    hidden: tuple[bytes, ...] = ()
    slots: Mapping[bytes, Slot] = field(default_factory=dict)
    partial: bool = False

    @property
    def left_out(self) -> frozenset[bytes]:
        """The names of all that are left out."""
        return frozenset({*self.bad, *self.hidden})


def taken_in(
    app: Celery, settings: Settings, texts: Mapping[bytes, bytes], wanted: Collection[bytes]
) -> TakenIn:
    """Take in the entries from code, then the stored ones; return also the slots of ``wanted``.

    Where the schedule from code cannot be loaded, the stored ones are judged alone: ``check`` tells
    of the other.
    """
    code = _from_code(app)
    with heard():
        problems = _problems(app, settings, texts, code)
        slots = {**code, **_slots(app, settings, {n: texts[n] for n in wanted if n in texts})}
    hidden = tuple(name for name, problem in problems.items() if problem == IN_CODE)
    return TakenIn(
        {name: problem for name, problem in problems.items() if problem != IN_CODE},
        hidden,
        {name: slot for name in wanted if (slot := slots.get(name))},
        partial=len(texts) > MOST,
    )


def _from_code(app: Celery) -> dict[bytes, Slot | None]:
    """Return the entries from code, and ``None`` for a bad one."""
    try:
        schedule = load(app)
    except ConfigurationError:
        return {}
    return {_raw(name): schedule.slots.get(name) for name in schedule.names}


def _problems(
    app: Celery, settings: Settings, texts: Mapping[bytes, bytes], code: Collection[bytes]
) -> dict[bytes, str]:
    entries = _entries(app, settings, code, {})
    problems: dict[bytes, str] = {}
    for raw, text in islice(texts.items(), MOST):
        name = wire_steering.name(raw)
        entries.take(Change(Kind.ENTRY, name, 0, text))
        if name in entries.roster.faults:
            problems[raw] = entries.roster.faults[name]
        entries.take(Change(Kind.ENTRY, name, 0, None))  # so that it takes no room
    return problems


def _slots(app: Celery, settings: Settings, texts: Mapping[bytes, bytes]) -> dict[bytes, Slot]:
    slots: dict[str, Slot] = {}
    entries = _entries(app, settings, (), slots)
    for raw, text in texts.items():
        entries.take(Change(Kind.ENTRY, wire_steering.name(raw), 0, text))
    return {_raw(name): slot for name, slot in slots.items()}


def _entries(
    app: Celery, settings: Settings, code: Collection[bytes], slots: dict[str, Slot]
) -> StoredEntries:
    def make(name: str, fields: Any) -> RedlockEntry:
        return RedlockEntry(name=name, app=app, **fields)

    def put(slot: Slot) -> None:
        slots[slot.name] = slot

    return StoredEntries(
        app,
        settings,
        make=make,
        has_code=lambda name: _raw(name) in code,
        put=put,
        discard=lambda _: None,
        forget=lambda _: None,
    )


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
