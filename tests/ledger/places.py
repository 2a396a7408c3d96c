"""Where the ledger is kept, memory or a real server, behind one face: no test and no judgement.

A place makes nodes, lets ledger time pass, does what operators and disasters do, and shows records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from threading import Barrier
from typing import TYPE_CHECKING, Any, Protocol

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger import (
    Answer,
    Ask,
    Command,
    Grant,
    Ledger,
    Pause,
    Record,
    Registration,
    Verdict,
)
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.ledger.memory_server import MemoryServer
from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ledger.redis_steering import RedisSteering
from celery_redlock_beat.ledger.steering import (
    Definition,
    Ending,
    Kind,
    Look,
    Remainder,
    Removal,
    Steered,
    Steering,
)
from celery_redlock_beat.ledger.testimony import Memory, Recovery, Testimony
from celery_redlock_beat.testing.server import Server, wait_until
from celery_redlock_beat.ticks import SECOND, Micros, Reason, Tick

if TYPE_CHECKING:
    from redis import Redis

MINUTE: Micros = 60 * SECOND
MOMENT: Micros = 1000
HOLD_DOWN = 200 * MOMENT
NAMESPACE = "tests"
QUEUE = "celery"
PAUSE = '7 0 {"note": "by a test", "who": "ann", "since": 5}'
PAUSED = Pause("tidy", 7, "by a test", "ann", 5)
"""What a pause of ``tidy`` by hand reads as."""
KEEPER = b""
LIMIT = 20.0


class Node(Ledger, Protocol):
    """A ledger and what it carries from call to call."""

    node: str
    epoch: str
    fence: int


class Operator(Steering, Protocol):
    """An operator's hold on a ledger, and what it carries from call to call."""

    node: str
    fence: int


class Place(Protocol):
    """One server, its nodes, and what can happen to it."""

    kind: str

    def node(self, *, joined: bool = True, **options: Any) -> Node: ...
    def operator(self, who: str = "ann@ops", **options: Any) -> Operator: ...
    def now(self) -> Micros: ...
    def pass_time(self, span: Micros) -> None: ...
    def pause(self, entry: str) -> None: ...
    def unpause(self, entry: str) -> None: ...
    def flush(self) -> None: ...
    def lose_marks(self) -> None: ...
    def lose_grants(self) -> None: ...
    def lose_open(self) -> None: ...
    def lose_pauses(self) -> None: ...
    def lose_entries(self) -> None: ...
    def lose_changes(self) -> None: ...
    def write_by_hand(self, entry: str, text: bytes) -> None: ...
    def delete_by_hand(self, entry: str) -> None: ...
    def fill_gone(self, number: int) -> None: ...
    def pauses(self) -> dict[str, str]: ...
    def stored(self) -> dict[str, bytes]: ...
    def revisions(self) -> dict[str, int]: ...
    def gone(self) -> dict[str, int]: ...
    def beats(self) -> dict[str, str]: ...
    def history(self) -> list[dict[str, str]]: ...
    def audit(self) -> list[dict[str, str]]: ...
    def set_lease(self, tick: Tick, ends: Micros) -> None: ...
    def restart(self) -> None: ...
    def snapshot(self) -> Any: ...
    def restore(self, snapshot: Any) -> None: ...
    def set_heartbeat(self, node: str, at: Micros) -> None: ...
    def set_present(self, entry: str, at: Micros) -> None: ...
    def occupy(self, key: str) -> None: ...
    def listen(self, channel: str) -> Callable[[], list[bytes]]: ...
    def queue(self, key: str = QUEUE) -> list[bytes]: ...
    def totals(self) -> dict[str, int]: ...
    def record(self, entry: str) -> Record | None: ...
    def last_fence(self) -> int: ...
    def identity(self) -> str | None: ...
    def hold_down_ends(self) -> Micros: ...
    def open_ticks(self) -> dict[Tick, Micros]: ...
    def kept_until(self) -> dict[Tick, Micros]: ...
    def kept(self) -> dict[Tick, str]: ...
    def heartbeats(self) -> dict[str, Micros]: ...
    def records(self) -> Any: ...
    def close(self) -> None: ...


class MemoryPlace:
    """A ledger in this process, with a clock that stands until it is told to move."""

    kind = "memory"

    def __init__(self, start: Micros = 1_900_000_000 * SECOND) -> None:
        self._now = start
        self.server = MemoryServer(self.now)

    def node(self, *, joined: bool = True, **options: Any) -> MemoryLedger:
        options = {"lease": MINUTE, "hold_down": 0, **options}
        ledger = MemoryLedger(self.server, clock=LedgerClock(self.now), **options)
        return join(ledger) if joined else ledger

    def operator(self, who: str = "ann@ops", **options: Any) -> MemorySteering:
        options = {"lease": MINUTE, "hold_down": 0, **options}
        return MemorySteering(self.server, who=who, clock=LedgerClock(self.now), **options)

    def now(self) -> Micros:
        return self._now

    def pass_time(self, span: Micros) -> None:
        self._now += span

    def pause(self, entry: str) -> None:
        self.server.paused[entry] = PAUSE.encode()

    def unpause(self, entry: str) -> None:
        self.server.paused.pop(entry, None)

    def flush(self) -> None:
        self.server.flush()

    def lose_grants(self) -> None:
        self.server.grants.clear()
        self.server.keepers.discard("grants")

    def lose_open(self) -> None:
        self.server.open.clear()
        self.server.keepers.discard("open")

    def lose_pauses(self) -> None:
        self.server.paused.clear()
        self.server.keepers.discard("paused")

    def lose_entries(self) -> None:
        self.server.entries.clear()
        self.server.keepers.discard("entries")

    def lose_changes(self) -> None:
        self.server.changes.clear()

    def write_by_hand(self, entry: str, text: bytes) -> None:
        self.server.entries[entry] = text

    def delete_by_hand(self, entry: str) -> None:
        del self.server.entries[entry]

    def fill_gone(self, number: int) -> None:
        self.server.gone |= {(Kind.ENTRY, f"old {at}"): at for at in range(1, number + 1)}

    def set_lease(self, tick: Tick, ends: Micros) -> None:
        self.server.open[tick] = ends

    def lose_marks(self) -> None:
        server = self.server
        server.marks.clear()
        server.identity = server.epoch = server.recovering = None
        server.fence = server.hold_down = 0
        server.began = server.revision = server.pruned = 0
        server.repairs.clear()
        server.unwanted.clear()

    def restart(self) -> None:
        self.server.restart()

    def snapshot(self) -> Any:
        return self.server.snapshot()

    def restore(self, snapshot: Any) -> None:
        self.server.restore(snapshot)

    def set_heartbeat(self, node: str, at: Micros) -> None:
        self.server.nodes[node] = at

    def set_present(self, entry: str, at: Micros) -> None:
        self.server.present[entry] = at

    def occupy(self, key: str) -> None:
        self.server.not_lists.add(key)

    def listen(self, channel: str) -> Callable[[], list[bytes]]:
        start = len(self.server.published)
        return lambda: [
            _as_bytes(text) for to, text in self.server.published[start:] if to == channel
        ]

    def queue(self, key: str = QUEUE) -> list[bytes]:
        return [_as_bytes(value) for value in self.server.lists.get(key, [])]

    def totals(self) -> dict[str, int]:
        return dict(self.server.totals)

    def record(self, entry: str) -> Record | None:
        found = self.server.marks.get(entry)
        return Record(entry, **asdict(found)) if found else None

    def last_fence(self) -> int:
        return self.server.fence

    def identity(self) -> str | None:
        return self.server.identity

    def hold_down_ends(self) -> Micros:
        return self.server.hold_down

    def open_ticks(self) -> dict[Tick, Micros]:
        return dict(self.server.open)

    def pauses(self) -> dict[str, str]:
        return {entry: text.decode() for entry, text in self.server.paused.items()}

    def stored(self) -> dict[str, bytes]:
        return dict(self.server.entries)

    def revisions(self) -> dict[str, int]:
        return {f"{kind}:{name}": at for (kind, name), at in self.server.changes.items()}

    def gone(self) -> dict[str, int]:
        return {f"{kind}:{name}": at for (kind, name), at in self.server.gone.items()}

    def beats(self) -> dict[str, str]:
        return dict(self.server.beats)

    def history(self) -> list[dict[str, str]]:
        return list(self.server.history)

    def audit(self) -> list[dict[str, str]]:
        return list(self.server.audit)

    def kept_until(self) -> dict[Tick, Micros]:
        return dict(self.server.settled)

    def kept(self) -> dict[Tick, str]:
        grants = self.server.grants.items()
        return {tick: getattr(held, "outcome", "open") for tick, held in grants}

    def heartbeats(self) -> dict[str, Micros]:
        return dict(self.server.nodes)

    def records(self) -> Any:
        return vars(self.server.snapshot())

    def close(self) -> None:
        pass


class RedisPlace:
    """A ledger on a real server, emptied first; time passes there as it does."""

    def __init__(self, server: Server, kind: str) -> None:
        self.kind = kind
        self.server = server
        self.keys = ledger_keys(NAMESPACE)
        self._clients: list[Redis] = []
        self.client = self.connect()
        self.client.flushall()

    def connect(self, **options: Any) -> Redis:
        client = self.server.client(**options)
        self._clients.append(client)
        return client

    def node(
        self, *, joined: bool = True, user: dict[str, str] | None = None, **options: Any
    ) -> RedisLedger:
        options = {"lease": MINUTE, "hold_down": 0, **options}
        ledger = RedisLedger(
            lambda: self.connect(**(user or {})), LedgerClock(), NAMESPACE, **options
        )
        return join(ledger) if joined else ledger

    def operator(
        self, who: str = "ann@ops", user: dict[str, str] | None = None, **options: Any
    ) -> RedisSteering:
        options = {"lease": MINUTE, "hold_down": 0, **options}
        return RedisSteering(
            lambda: self.connect(**(user or {})), LedgerClock(), NAMESPACE, who=who, **options
        )

    def now(self) -> Micros:
        seconds, micros = self.client.time()
        return seconds * SECOND + micros

    def pass_time(self, span: Micros) -> None:
        end = self.now() + span
        wait_until(lambda: self.now() >= end, LIMIT, f"{span} µs of the server's time", 0.001)

    def pause(self, entry: str) -> None:
        self.client.hset(self.keys["paused"], entry, PAUSE)

    def unpause(self, entry: str) -> None:
        self.client.hdel(self.keys["paused"], entry)

    def flush(self) -> None:
        self.client.flushall()

    def lose_grants(self) -> None:
        self.client.delete(self.keys["grants"])

    def lose_open(self) -> None:
        self.client.delete(self.keys["open"])

    def lose_pauses(self) -> None:
        self.client.delete(self.keys["paused"])

    def lose_entries(self) -> None:
        self.client.delete(self.keys["entries"])

    def lose_changes(self) -> None:
        self.client.delete(self.keys["changes"])

    def write_by_hand(self, entry: str, text: bytes) -> None:
        self.client.hset(self.keys["entries"], entry, text)

    def delete_by_hand(self, entry: str) -> None:
        self.client.hdel(self.keys["entries"], entry)

    def fill_gone(self, number: int) -> None:
        self.client.zadd(self.keys["gone"], {f"e:old {at}": at for at in range(1, number + 1)})

    def set_lease(self, tick: Tick, ends: Micros) -> None:
        self.client.zadd(self.keys["open"], {f"{tick.at}:{tick.entry}": ends})

    def lose_marks(self) -> None:
        self.client.delete(self.keys["marks"])

    def restart(self) -> None:
        # To follow nobody and lead again changes the identity, and keeps the data.
        before = self.client.info("replication")["master_replid"]
        self.client.replicaof("127.0.0.1", "1")
        self.client.replicaof("NO", "ONE")
        assert self.client.info("replication")["master_replid"] != before

    def snapshot(self) -> Any:
        return {key: self.client.dump(key) for key in self.client.scan_iter()}

    def restore(self, snapshot: Any) -> None:
        self.client.flushall()
        for key, dumped in snapshot.items():
            self.client.restore(key, 0, dumped)

    def set_heartbeat(self, node: str, at: Micros) -> None:
        self.client.zadd(self.keys["nodes"], {node: at})

    def set_present(self, entry: str, at: Micros) -> None:
        self.client.zadd(self.keys["present"], {entry: at})

    def occupy(self, key: str) -> None:
        self.client.set(key, "not a list")

    def listen(self, channel: str) -> Callable[[], list[bytes]]:
        hearing = self.client.pubsub()
        hearing.subscribe(channel)
        assert hearing.get_message(timeout=LIMIT)["type"] == "subscribe"

        def heard() -> list[bytes]:
            messages = []
            while message := hearing.get_message(timeout=0.1):
                messages.append(message["data"])
            hearing.close()
            return messages

        return heard

    def queue(self, key: str = QUEUE) -> list[bytes]:
        return self.client.lrange(key, 0, -1)

    def totals(self) -> dict[str, int]:
        found = self.client.hgetall(self.keys["totals"])
        return {name.decode(): int(count) for name, count in found.items()}

    def record(self, entry: str) -> Record | None:
        text = self.client.hget(self.keys["marks"], f"e:{entry}")
        if text is None:
            return None
        *numbers, fingerprint = text.decode().split(" ", 4)
        return Record(entry, *map(int, numbers), fingerprint)

    def last_fence(self) -> int:
        return int(self.client.hget(self.keys["marks"], "fence") or 0)

    def identity(self) -> str | None:
        found = self.client.hget(self.keys["marks"], "identity")
        return found and found.decode()

    def hold_down_ends(self) -> Micros:
        return int(self.client.hget(self.keys["marks"], "hold_down") or 0)

    def open_ticks(self) -> dict[Tick, Micros]:
        return self._scores("open")

    def pauses(self) -> dict[str, str]:
        found = self.client.hgetall(self.keys["paused"])
        return {entry.decode(): text.decode() for entry, text in found.items() if entry != KEEPER}

    def stored(self) -> dict[str, bytes]:
        found = self.client.hgetall(self.keys["entries"])
        return {entry.decode(): text for entry, text in found.items() if entry != KEEPER}

    def revisions(self) -> dict[str, int]:
        return self._revisions("changes")

    def gone(self) -> dict[str, int]:
        return self._revisions("gone")

    def beats(self) -> dict[str, str]:
        found = self.client.hgetall(self.keys["beats"])
        return {node.decode(): text.decode() for node, text in found.items()}

    def history(self) -> list[dict[str, str]]:
        return self._stream("history")

    def audit(self) -> list[dict[str, str]]:
        return self._stream("audit")

    def kept_until(self) -> dict[Tick, Micros]:
        return self._scores("settled")

    def kept(self) -> dict[Tick, str]:
        grants = self.client.hgetall(self.keys["grants"])
        return {
            _tick(member): _outcome(text.decode())
            for member, text in grants.items()
            if member != KEEPER
        }

    def heartbeats(self) -> dict[str, Micros]:
        found = self.client.zrange(self.keys["nodes"], 0, -1, withscores=True)
        return {node.decode(): int(at) for node, at in found}

    def records(self) -> Any:
        return {key: self._content(key) for key in self.client.scan_iter()}

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _scores(self, name: str) -> dict[Tick, Micros]:
        found = self.client.zrange(self.keys[name], 0, -1, withscores=True)
        return {_tick(member): int(score) for member, score in found if member != KEEPER}

    def _revisions(self, name: str) -> dict[str, int]:
        found = self.client.zrange(self.keys[name], 0, -1, withscores=True)
        return {member.decode(): int(score) for member, score in found}

    def _stream(self, name: str) -> list[dict[str, str]]:
        told = self.client.xrange(self.keys[name])
        return [{key.decode(): text.decode() for key, text in each.items()} for _, each in told]

    def _content(self, key: bytes) -> Any:
        readers: dict[bytes, Callable[[], Any]] = {
            b"hash": lambda: self.client.hgetall(key),
            b"zset": lambda: self.client.zrange(key, 0, -1, withscores=True),
            b"set": lambda: self.client.smembers(key),
            b"list": lambda: self.client.lrange(key, 0, -1),
            b"stream": lambda: self.client.xrange(key),
            b"string": lambda: self.client.get(key),
        }
        return readers[self.client.type(key)]()


def patient_nodes(place: Place) -> list[Node]:
    """Return three nodes that have pushed, and wait for a while in the next recovery."""
    nodes = [place.node(hold_down=HOLD_DOWN, joined=False) for _ in range(3)]
    push(nodes[0])
    place.pass_time(HOLD_DOWN)
    for node in nodes:
        join(node)
        node.claim([])
    return nodes


def push(ledger: Any, memories: Sequence[Memory] = (), **more: Any) -> Recovery:
    """Push, and resolve what is in doubt as a node that knows no timetable: only the marks."""
    told = recovery = ledger.recover(Testimony(memories, **more))
    while recovery.doubts:
        ledger.resolve({doubt: [doubt.mark] for doubt in recovery.doubts})
        recovery = ledger.recover(Testimony(memories, **more))
    return Recovery(recovery.wait, told.refused)


def join(ledger: Any, memories: Sequence[Memory] = (), **more: Any) -> Any:
    """Push at once, where no recovery holds the node up; return the ledger."""
    assert push(ledger, memories, **more) == Recovery(0)
    return ledger


def register(ledger: Ledger, entry: str, fingerprint: str = "every µs", **options: bool) -> Record:
    """Register one entry."""
    (record,) = ledger.register([Registration(entry, fingerprint, **options)])
    return record


def due_ticks(place: Place, ledger: Ledger, entry: str = "tidy", count: int = 1) -> list[Tick]:
    """Register an entry and wait until that many ticks, one per µs, are due."""
    record = register(ledger, entry)
    place.pass_time(count)
    return [Tick(entry, record.mark + number) for number in range(1, count + 1)]


def claim(
    ledger: Ledger,
    tick: Tick,
    due_at: Micros | None = None,
    expected: Micros | None = None,
    limit: int | None = None,
    revision: int | None = None,
) -> Answer:
    """Claim one tick."""
    ask = Ask(tick, tick.at if due_at is None else due_at, expected, limit, revision)
    (answer,) = ledger.claim([ask]).answers
    return answer


def grant(ledger: Ledger, tick: Tick, limit: int | None = None) -> Grant:
    """Claim one tick, which must be granted."""
    answer = claim(ledger, tick, limit=limit)
    assert answer.verdict is Verdict.GRANTED, answer
    assert answer.grant is not None
    return answer.grant


def changes_nothing(place: Place, ask: Callable[[], Answer]) -> Answer:
    """Return the answer to an ask, which must change no record but heartbeats."""
    before = _without_heartbeats(place)
    answer = ask()
    assert _without_heartbeats(place) == before
    return answer


def _without_heartbeats(place: Place) -> dict[Any, Any]:
    place.set_heartbeat("-", 0)  # the record is there, whoever asked before
    records = place.records()
    return {key: held for key, held in records.items() if "nodes" not in str(key)}


def stored(
    operator: Operator, entry: str = "tidy", fingerprint: str = "every µs", **options: bool
) -> int:
    """Store one new entry; return its revision."""
    registration = Registration(entry, fingerprint, **options)
    (told,) = operator.store([Definition('{"task": "t"}', registration)])
    assert told.done
    return told.revision


def remainder_of(look: Look, passed: Mapping[Reason, int] | None = None) -> Remainder:
    """Count what of an entry remains as one who has looked, with all of its open ticks."""
    endings = [Ending(each.tick.at, each.fence) for each in look.open]
    return Remainder(look.record.mark, look.now, passed or {}, endings)


def remove(operator: Operator, entry: str = "tidy", note: str = "") -> Steered:
    """Remove a stored entry with its open ticks."""
    (found,) = operator.look([entry])
    (told,) = operator.remove([Removal(entry, found.revision, remainder_of(found), note)])
    return told


def all_at_once(nodes: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Run ``work(node)`` in a thread for each node, and return what they answered."""
    start = Barrier(len(nodes))

    def run(node: Any) -> Any:
        start.wait(LIMIT)
        return work(node)

    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(run, nodes))


def message(tick: Tick, queue: str = QUEUE) -> Command:
    """Return the command that pushes a message which tells its tick."""
    return Command("LPUSH", queue, f"{tick.at}:{tick.entry}".encode())


def messages(place: Place, queue: str = QUEUE) -> Counter[Tick]:
    """Count the messages in a queue by tick."""
    return Counter(map(_tick, place.queue(queue)))


@contextmanager
def reply_lost(ledger: Any) -> Iterator[None]:
    """Have the node learn nothing from the calls within: they were done, but went unanswered."""
    fence, epoch = ledger.fence, ledger.epoch
    yield
    ledger.fence, ledger.epoch = fence, epoch


def _tick(member: bytes) -> Tick:
    at, entry = member.decode().split(":", 1)
    return Tick(entry, int(at))


def _outcome(grant: str) -> str:
    kind, *_, last = grant.split(" ")
    return last if kind == "done" else kind


def _as_bytes(value: str | bytes | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
