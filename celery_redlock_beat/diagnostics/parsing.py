"""Read the raw fields of the ledger's keys; what cannot be read is kept as it is, never guessed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import name_of, raw_text
from celery_redlock_beat.store.contents import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.ticks import Micros

LARGEST = 1 << 53
"""The scripts compute in doubles: a larger number is none that they wrote."""
RECORD = re.compile(rb"(\d{1,16}) (\d{1,16}) (\d{1,16}) (\d{1,16}) (.*)", re.DOTALL)
MEMBER = re.compile(rb"(\d{1,16}):(.*)", re.DOTALL)
OPEN = re.compile(rb"open (\S+) (\d{1,16}) (\d{1,16}) (\d{1,16}) (\d)")
DONE = re.compile(rb"done (\d{1,16}) (.+)", re.DOTALL)
NUMBER = re.compile(rb"\d{1,16}")
SKIPS = re.compile(rb"(?: \d{1,16})+ ")
PAUSE = re.compile(rb"\d{1,16} (\d{1,16}) (.*)", re.DOTALL)
NUMBERS = (b"fence", b"hold_down", b"revision", b"pruned", b"began")


@dataclass(frozen=True, slots=True)
class Marked:
    """The two instants of an entry's record that a clock can spoil."""

    mark: Micros
    since: Micros


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A field that means nothing: its key's short name, the field, the value."""

    key: str
    field: bytes
    value: bytes

    @property
    def kind(self) -> str:
        """What it should be: an ``entry``, its ``skips``, or what else stands in its key."""
        named = {b"e:": "entry", b"s:": "skips"} if self.key == "marks" else {}
        return named.get(self.field[:2], self.key)

    def __str__(self) -> str:
        entry = self.field[2:] if self.kind in ("entry", "skips") else self.field
        return f"{name_of(entry)}: {raw_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Paused:
    """Until when an entry is paused, ``None`` for ever; and whether that could be read at all."""

    until: Micros | None = None
    is_readable: bool = True


@dataclass(frozen=True, slots=True)
class Marks:
    """The key of the marks: entries by raw name, what else stands there, what cannot be read."""

    entries: Mapping[bytes, Marked] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)
    unreadable: tuple[Unreadable, ...] = ()

    def number(self, name: str) -> int | None:
        """Return a number that stands beside the marks, if it is there and one."""
        value = self.meta.get(name, "")
        return int(value) if value.isdecimal() else None


def read_mark(text: bytes) -> Marked | None:
    """Read the record of an entry, or answer ``None`` where it is none."""
    found = RECORD.fullmatch(text)
    if not found:
        return None
    numbers = [int(number) for number in found.groups()[:4]]
    return Marked(numbers[0], numbers[1]) if max(numbers) < LARGEST else None


def read_marks(fields: Mapping[bytes, bytes]) -> Marks:
    """Read all fields of the key of the marks."""
    entries: dict[bytes, Marked] = {}
    meta: dict[str, str] = {}
    unreadable: list[Unreadable] = []
    for name, text in fields.items():
        if name.startswith(b"e:"):
            mark = read_mark(text)
            if mark:
                entries[name[2:]] = mark
            else:
                unreadable.append(Unreadable("marks", name, text))
        elif (name in NUMBERS and not NUMBER.fullmatch(text)) or (
            name.startswith(b"s:") and not SKIPS.fullmatch(text)
        ):
            unreadable.append(Unreadable("marks", name, text))
        elif b":" not in name:
            meta[name.decode("utf-8", "replace")] = text.decode("utf-8", "replace")
    return Marks(entries, meta, tuple(unreadable))


def read_pause(text: bytes) -> Paused:
    """Read a pause; one that cannot be read holds its entry back for ever."""
    found = PAUSE.fullmatch(text)
    if not found:
        return Paused(is_readable=False)
    return Paused(int(found[1]) or None, is_object(found[2]))


def is_object(text: bytes) -> bool:
    """Answer whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def tick_of(member: bytes) -> tuple[Micros, bytes] | None:
    """Read a tick's instant and entry, or answer ``None`` where the member is no tick."""
    found = MEMBER.fullmatch(member)
    return (int(found[1]), found[2]) if found else None


def is_open(text: bytes) -> bool:
    """Answer whether the text of a grant is that of an open tick."""
    return OPEN.fullmatch(text) is not None


def odd_fields(contents: Contents) -> Iterator[Unreadable]:
    """Yield what cannot be read outside of the key of the marks."""
    for member, text in contents.hash("grants").items():
        is_grant = OPEN.fullmatch(text) or DONE.fullmatch(text)
        if member != SENTINEL and not (is_grant and tick_of(member)):
            yield Unreadable("grants", member, text)
    for member, score in contents.zset("open").items():
        if member != SENTINEL and not tick_of(member):
            yield Unreadable("open", member, repr(score).encode())
    for name, text in contents.hash("totals").items():
        if not NUMBER.fullmatch(text):
            yield Unreadable("totals", name, text)
    for name, text in contents.hash("beats").items():
        if not is_object(text):
            yield Unreadable("beats", name, text)
