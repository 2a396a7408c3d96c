"""RedBeat's keys as they are, in chunks that hold no server up; it understands and writes nothing.

``<prefix><name>`` is a hash with the fields ``definition`` and ``meta``, ``<prefix>:schedule`` a
sorted set of these keys by when they are due next, ``<prefix>:statics`` a set of the names of
entries that come from code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.entry_checks import is_storable
from celery_redlock_beat.store.asking import asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings

CHUNK = 500
SCHEDULE = ":schedule"
NO_PREFIX = "RedBeat's schedule has it without the prefix of its key"
NO_DEFINITION = "it has no definition, only when it ran last"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one RedBeat; ``lock`` is ``None`` where it has none."""

    prefix: str
    lock: str | None = None

    @classmethod
    def of(cls, settings: RedBeatSettings, prefix: str | None = None) -> Keys:
        """Return those of an app's RedBeat, or, of another ``prefix``, those it has by default."""
        if prefix is None or prefix == settings.key_prefix:
            return cls(settings.key_prefix, settings.lock_key)
        return cls(prefix, f"{prefix}:lock")

    @property
    def schedule(self) -> str:
        """The sorted set."""
        return f"{self.prefix}{SCHEDULE}"

    @property
    def statics(self) -> str:
        """The set of names."""
        return f"{self.prefix}:statics"

    def of_entry(self, name: str) -> str:
        """Return the key of an entry."""
        return f"{self.prefix}{name}"


@dataclass(frozen=True, slots=True)
class Raw:
    """What is kept of one entry; ``problem`` tells why there is nothing to read.

    ``is_planned``: RedBeat would come to it. ``is_gone``: there is nothing that it could send.
    """

    name: str
    definition: bytes | None = None
    meta: bytes | None = None
    score: float | None = None
    is_planned: bool = False
    is_static: bool = False
    is_gone: bool = False
    problem: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Place:
    """Where an entry may be, in the order in which it is looked for."""

    keys: list[bytes]
    score: float | None = None
    is_planned: bool = False


def look(client: Any, keys: Keys) -> Iterator[Raw]:
    """Yield what is kept of each entry.

    Raises:
        LedgerUnavailable: The server could not be asked.

    """
    yield from asked(lambda: list(_look(client, keys)))


def held_by(client: Any, keys: Keys) -> tuple[bytes, float] | None:
    """Return the token of the lock and the seconds until it ends, or ``None`` if nobody has it.

    Raises:
        LedgerUnavailable: The server could not be asked.

    """
    if keys.lock is None:
        return None
    lock = keys.lock
    token, left = asked(lambda: (client.get(lock), client.pttl(lock)))
    return None if token is None else (token, max(left, 0) / 1000)


def hashes(client: Any, keys: Sequence[bytes | str]) -> list[Any]:
    """Return definition and meta of each key, or the error of one that is no hash."""
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.hmget(key, ["definition", "meta"])
    told = list(pipe.execute(raise_on_error=False))
    for each in told:
        if isinstance(each, Exception) and "WRONGTYPE" not in str(each):
            raise each
    return told


def _look(client: Any, keys: Keys) -> Iterator[Raw]:
    places = _places(client, keys)
    statics = {_text(each) for each in _members(client, keys.statics, b"set")}
    names = list(places)
    for start in range(0, len(names), CHUNK):
        chunk = names[start : start + CHUNK]
        wanted = [key for name in chunk for key in places[name].keys]
        told = dict(zip(wanted, hashes(client, wanted), strict=True))
        for name in chunk:
            raw = _raw(name, places[name], [told[key] for key in places[name].keys])
            if raw is not None:
                yield _named(raw, statics)


def _named(raw: Raw, statics: set[str]) -> Raw:
    raw = replace(raw, is_static=raw.name in statics)
    if is_storable(raw.name):
        return raw
    name = raw.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return replace(raw, name=name, problem="its name is no UTF-8; give it another one")


def _places(client: Any, keys: Keys) -> dict[str, _Place]:
    """Return where each entry may be, by name: of the schedule, and of hashes beside it."""
    prefix = keys.prefix.encode()
    places: dict[str, _Place] = {}
    for member, score in _members(client, keys.schedule, b"zset"):
        name = member.removeprefix(prefix)
        wanted = [member] if member.startswith(prefix) else [member, prefix + member]
        places.setdefault(_text(name), _Place(wanted, score, is_planned=True))
    for key in _others(client, keys):
        name = _text(key.removeprefix(prefix))
        places.setdefault(name, _Place([key]))
    return places


def _others(client: Any, keys: Keys) -> list[bytes]:
    """Return the keys with the prefix that may be entries, but those of a longer prefix."""
    own = {key.encode() for key in (keys.schedule, keys.statics, keys.lock) if key}
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", keys.prefix) + "*"
    found = {*client.scan_iter(match=pattern, count=CHUNK)} - own
    ends = SCHEDULE.encode()
    schedules = (key for key in found if key.endswith(ends) and client.type(key) == b"zset")
    longer = tuple(key.removesuffix(ends) for key in schedules)
    return sorted(key for key in found if not key.startswith(longer))


def _members(client: Any, key: str, kind: bytes) -> Iterable[Any]:
    """Return what is in a set or a sorted set; nothing where it is missing, or something else."""
    if client.type(key) != kind:
        return []
    scan = client.sscan_iter if kind == b"set" else client.zscan_iter
    return dict.fromkeys(scan(key, count=CHUNK))  # a scan may tell one twice


def _raw(name: str, place: _Place, told: list[Any]) -> Raw | None:
    """Return what was found at the places of an entry; nothing of what is none of RedBeat's."""
    pairs = [each if isinstance(each, list) else [None, None] for each in told]
    definition = next((each[0] for each in pairs if each[0] is not None), None)
    meta = next((each[1] for each in reversed(pairs) if each[1] is not None), None)
    raw = Raw(name, definition, meta, place.score)
    if definition is not None:
        # RedBeat asks for the key as its schedule has it, and for no other one.
        comes = place.is_planned and pairs[0][0] is not None and (place.score or 0) >= 0
        remarks = (NO_PREFIX,) if len(pairs) > 1 else ()
        return replace(raw, is_planned=comes, remarks=remarks)
    if not place.is_planned and meta is None:
        return None
    if any(isinstance(each, Exception) for each in told):
        return replace(raw, problem="its key holds another type than a hash")
    gone = "it is in RedBeat's schedule, and its key is gone" if meta is None else NO_DEFINITION
    return replace(raw, is_gone=True, problem=gone)


def _text(name: bytes) -> str:
    """Decode a name so that it can be encoded again, whatever somebody wrote."""
    return name.decode("utf-8", "surrogateescape")
