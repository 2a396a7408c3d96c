"""RedBeat's lock, held by a whole fleet as one; it takes it from nobody.

A RedBeat waits for it as it does for another RedBeat. Which of our nodes hold it is kept beside it:
the last one that leaves lets it go; if all are killed, it ends by itself. So is whether its turn
has begun: a RedBeat that is stopped in the middle of its work goes on for seconds without a lock.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from celery_redlock_beat.store.asking import asked

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros

OURS = "celery-redlock-beat"
ALIVE = 5000
"""Milliseconds after which a node that has not extended the lock does not count as holding it."""
SHARED = """
local lock, nodes, begun = KEYS[1], KEYS[2], KEYS[3]
local fleet, node, span = ARGV[1], ARGV[2], tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local token = redis.call('GET', lock)
local is_ours = token and string.sub(token, 1, #fleet) == fleet
"""
HOLD = f"""{SHARED}
if token and not is_ours then return {{'', redis.call('PTTL', lock), 0}} end
if token then
  redis.call('PEXPIRE', lock, span)
else
  token = fleet .. ARGV[4]
  redis.call('SET', lock, token, 'PX', span)
end
redis.call('ZADD', nodes, now, node)
redis.call('PEXPIRE', nodes, span)
redis.call('PEXPIRE', begun, span)
return {{token, span, redis.call('GET', begun) == token and 1 or 0}}
"""
BEGIN = f"""{SHARED}
if token == ARGV[4] then redis.call('SET', begun, token, 'PX', span) end
return 0
"""
LEAVE = f"""{SHARED}
redis.call('ZREM', nodes, node)
redis.call('ZREMRANGEBYSCORE', nodes, '-inf', now - {ALIVE})
if not is_ours or redis.call('ZCARD', nodes) > 0 then return 0 end
redis.call('PEXPIRE', lock, span)
return 1
"""
LET_GO = f"""{SHARED}
if is_ours and redis.call('ZCARD', nodes) == 0 then redis.call('DEL', lock) end
return 0
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Who has the lock: the fleet with its ``token``, or, if that is empty, somebody else.

    ``left`` is for how long, in microseconds, unless it is extended; negative without an end.
    ``has_begun`` tells that a node of the fleet has seen that nobody else sends any more.
    """

    token: str
    left: Micros
    has_begun: bool = False


class Lock:
    """One node's part in holding the lock ``key`` for the fleet of a ``namespace``.

    ``client`` answers with bytes. Each extension holds for ``span`` microseconds. Every method
    raises ``LedgerUnavailable`` where the server could not be asked.
    """

    def __init__(self, client: Any, key: str, namespace: str, span: Micros) -> None:
        self._client = client
        # A hash tag of the whole lock's key: a Cluster keeps both together.
        beside = f"{{{key}}}:{OURS}:{namespace}"
        self._keys = (key, beside, f"{beside}:begun")
        self._fleet = f"{OURS}:{namespace}:"
        self._node = uuid4().hex
        self._span = span // 1000

    def over(self, client: Any) -> Lock:
        """Return the same part over another client."""
        twin = copy(self)
        vars(twin)["_client"] = client
        return twin

    def hold(self) -> Held:
        """Take the lock if nobody has it, extend it if the fleet has; tell who has it then."""
        token, left, begun = self._ask(HOLD, uuid4().hex)
        return Held(token.decode("utf-8", "replace"), left * 1000, bool(begun))

    def begin(self, token: str) -> None:
        """Note that the turn under this token has begun."""
        self._ask(BEGIN, token)

    def leave(self) -> bool:
        """Hold it no longer for this node; return whether it was the last: it still has to let go.

        Until then the fleet has it.
        """
        return bool(self._ask(LEAVE))

    def let_go(self) -> None:
        """Let the next one have it, unless another node of the fleet has come meanwhile."""
        self._ask(LET_GO)

    def _ask(self, script: str, *more: str) -> Any:
        args = (*self._keys, self._fleet, self._node, self._span, *more)
        return asked(partial(self._client.eval, script, len(self._keys), *args))
