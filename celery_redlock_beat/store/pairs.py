"""Read anew what two keys told differently, since nodes wrote in between; it judges nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis import Redis

KEEPER = b""
"""The empty name that some of our keys hold, and that nothing else has."""
REVISION = re.compile(rb"(\d{1,16}) ")


@dataclass(frozen=True, slots=True)
class Pair:
    """A hash and a sorted set that scripts write together: the full names of both.

    ``prefix`` stands before a field in the sorted set; ``agree`` tells whether a text and a score,
    ``None`` where there is none, belong together.
    """

    texts: str
    scores: str
    prefix: bytes
    agree: Callable[[bytes | None, float | None], bool]


def open_together(text: bytes | None, score: float | None) -> bool:
    """Answer whether a grant and an open tick belong together."""
    is_open = text is not None and not text.startswith(b"done ")
    return is_open == (score is not None)


def at_one_revision(text: bytes | None, score: float | None) -> bool:
    """Answer whether a text is there since a revision, as scripts write it.

    Where the sorted set was lost, its revisions are newer than those in the texts.
    """
    if text is None or score is None:
        return False
    revision = revision_of(text)
    return revision is not None and revision <= score


def revision_of(text: bytes) -> int | None:
    """Return the revision before a text of the feed, ``None`` where there is none."""
    found = REVISION.match(text)
    return int(found[1]) if found else None


def look_again(
    client: Redis, pair: Pair, texts: dict[bytes, bytes], scores: dict[bytes, float], size: int
) -> None:
    """Correct what was read of a field before and after somebody wrote to it.

    Both keys change in one step, and no text and no score ever comes back: if one of them was the
    same before and after the other was read, the two belong together. Otherwise it lives, and is
    left out. It asks for ``size`` fields at once.
    """
    fields = texts.keys() | {member.removeprefix(pair.prefix) for member in _own(pair, scores)}
    odd = sorted(
        field
        for field in fields - {KEEPER}
        if not pair.agree(texts.get(field), scores.get(pair.prefix + field))
    )
    for start in range(0, len(odd), size):
        chunk = odd[start : start + size]
        steps = (_scores, _texts, _scores, _texts)
        told = [step(client, pair, chunk) for step in steps]
        for field, *both in zip(chunk, *told, strict=True):
            text, score = _steady(*both)
            _put(scores, pair.prefix + field, score)
            _put(texts, field, text)


def _steady(
    score: float | None, text: bytes | None, later: float | None, last: bytes | None
) -> tuple[bytes | None, float | None]:
    """Return the text and the score that were there at one time, of what was read in turns."""
    if text is not None and text == last:
        return text, later
    if score is not None and score == later:
        return text, score
    return None, None


def _own(pair: Pair, scores: dict[bytes, float]) -> list[bytes]:
    return [member for member in scores if member.startswith(pair.prefix)]


def _texts(client: Redis, pair: Pair, fields: Sequence[bytes]) -> list[Any]:
    found: Any = client.hmget(pair.texts, list(fields))
    return list(found)


def _scores(client: Redis, pair: Pair, fields: Sequence[bytes]) -> list[Any]:
    pipe: Any = client.pipeline(transaction=False)
    for field in fields:
        pipe.zscore(pair.scores, pair.prefix + field)
    return [None if score is None else max(score, 0.0) for score in pipe.execute()]


def _put(target: dict[bytes, Any], member: bytes, value: Any) -> None:
    if value is None:
        target.pop(member, None)
    else:
        target[member] = value
