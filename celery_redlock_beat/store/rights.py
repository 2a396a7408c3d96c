"""Try what our scripts need of a server without any effect: commands are queued, then discarded.

A server looks at rights, and at whether it takes writes at all, when a command is queued.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.errors import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from redis import Redis

    from celery_redlock_beat.errors import LedgerUnavailable

# What follows the key, so that the number of arguments is right; none of it is ever executed.
WITH_A_KEY: Mapping[str, tuple[str, ...]] = {
    "DEL": (),
    "EXISTS": (),
    "HDEL": ("f",),
    "HEXISTS": ("f",),
    "HGET": ("f",),
    "HGETALL": (),
    "HINCRBY": ("f", "1"),
    "HKEYS": (),
    "HLEN": (),
    "HMGET": ("f",),
    "HSET": ("f", "v"),
    "PEXPIRE": ("1",),
    "SADD": ("m",),
    "SISMEMBER": ("m",),
    "TYPE": (),
    "XADD": ("*", "f", "v"),
    "ZADD": ("1", "m"),
    "ZCARD": (),
    "ZRANGE": ("0", "0"),
    "ZRANGEBYSCORE": ("0", "0"),
    "ZREM": ("m",),
    "ZREMRANGEBYSCORE": ("0", "0"),
    "ZREVRANGE": ("0", "0"),
    "ZSCORE": ("m",),
}
WITHOUT_A_KEY: Mapping[str, tuple[str, ...]] = {"TIME": (), "INFO": ("replication",)}
CALL = re.compile(r"redis\.p?call\(\s*'([A-Z]+)'")


@dataclass(frozen=True, slots=True)
class Rights:
    """What the server would refuse: commands, keys, and every write for a reason of its own.

    ``tried`` is false where the server does not let us try. ``user`` is empty if it is not told.
    """

    user: str = ""
    tried: bool = True
    commands: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    no_writes: LedgerUnavailable | None = None
    no_writes_code: str = ""


@cache
def our_commands() -> frozenset[str]:
    """Return the commands that our scripts call by name."""
    folder = resources.files("celery_redlock_beat.ledger") / "lua"
    scripts = [each for place in (folder, folder / "parts") for each in place.iterdir()]
    texts = (each.read_text("utf-8") for each in scripts if each.is_file())
    return frozenset(name for text in texts for name in CALL.findall(text))


def try_rights(
    client: Redis, commands: Iterable[str], keys: Sequence[str], queue: str | None
) -> Rights:
    """Try the commands on the first key, scripts on every key, and a push to the queue if any."""
    wanted = [*_asked(commands, keys[0]), ("EVALSHA", "0" * 40, "1", keys[0])]
    wanted += [("EVAL", "return 1", "1", key) for key in (*keys, *filter(None, [queue]))]
    if queue:
        wanted.append(("LPUSH", queue, "v"))
    try:
        answers = _queued(client, wanted)
        user = _user(client)
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc
    return Rights(user, tried=False) if answers is None else _sorted(user, wanted, answers)


def _asked(commands: Iterable[str], key: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in sorted(commands):
        if name in WITH_A_KEY:
            found.append((name, key, *WITH_A_KEY[name]))
        elif name in WITHOUT_A_KEY:
            found.append((name, *WITHOUT_A_KEY[name]))
    return found


def _sorted(
    user: str, wanted: Sequence[tuple[str, ...]], answers: Sequence[ResponseError | None]
) -> Rights:
    commands: dict[str, None] = {}
    keys: dict[str, None] = {}
    refusal: ResponseError | None = None
    for (name, *args), answer in zip(wanted, answers, strict=True):
        if answer is None:
            continue
        if not _is_about_rights(answer):
            refusal = refusal or answer
        elif re.search(r"\bkeys?\b", str(answer)):
            keys[args[2] if name in ("EVAL", "EVALSHA") else args[0]] = None
        else:
            commands["|".join([name, *WITHOUT_A_KEY.get(name, ())])] = None
    return Rights(
        user,
        commands=tuple(commands),
        keys=tuple(keys),
        no_writes=unavailable(refusal) if refusal else None,
        no_writes_code=_code(refusal) if refusal else "",
    )


def _queued(client: Redis, wanted: Sequence[tuple[str, ...]]) -> list[ResponseError | None] | None:
    """Return what is answered when the commands are queued, or ``None`` if nothing can be."""
    own: Any = client.client  # it has no types
    with own() as one:
        connection: Any = one.connection
        if _refusal(connection, "MULTI"):
            return None
        answers = [_refusal(connection, *command) for command in wanted]
        if _refusal(connection, "DISCARD"):
            connection.disconnect()  # which discards as well
        return answers


def _refusal(connection: Any, *command: str) -> ResponseError | None:
    connection.send_command(*command)
    try:
        connection.read_response()
    except ResponseError as exc:
        return exc
    return None


def _user(client: Redis) -> str:
    try:
        execute: Any = client.execute_command  # it has no types
        told = execute("ACL WHOAMI")
    except ResponseError:
        return ""
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)


def _is_about_rights(answer: ResponseError) -> bool:
    return "permission" in str(answer) or "NOPERM" in str(answer)


def _code(answer: ResponseError) -> str:
    kind = type(answer).__name__
    named = {"ReadOnlyError": "READONLY", "OutOfMemoryError": "OOM"}
    return named.get(kind, str(answer).split(" ", 1)[0])
