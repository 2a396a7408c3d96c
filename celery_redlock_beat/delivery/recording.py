"""Record the final commands of a message instead of sending them; declares and routing still run.

kombu does all it ever does (routing tables, priorities, body encoding, its own key names), and
only while it puts the finished message is its client exchanged for one that writes down. Knows
kombu's Redis transports by their shape, and no Redis client.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.errors import DeliveryImpossible
from celery_redlock_beat.ledger import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kombu import Connection

SEAMS = ("_put", "_put_fanout", "conn_or_acquire")


class Tape:
    """The commands recorded since they were last taken, and how many puts recorded none."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.unrecorded = 0

    def take(self) -> list[Command]:
        """Return what was recorded, and begin anew."""
        commands, self.commands, self.unrecorded = self.commands, [], 0
        return commands

    def __len__(self) -> int:
        return len(self.commands)


class Recorder:
    """Stands in for a Redis client, and for its pipeline, while a message is put."""

    def __init__(self, tape: Tape, prefix: str, prefixed: frozenset[str]) -> None:
        self._tape = tape
        self._prefix = prefix
        self._prefixed = prefixed

    def lpush(self, key: str, *values: str | bytes) -> Self:
        """Record a push to a list."""
        for value in values:
            self._record("LPUSH", key, value)
        return self

    def publish(self, channel: str, message: str | bytes) -> Self:
        """Record a message to subscribers."""
        return self._record("PUBLISH", channel, message)

    def pexpire(self, key: str, milliseconds: int) -> Self:
        """Record how long a key may live."""
        return self._record("PEXPIRE", key, int(milliseconds))

    def pipeline(self, *_args: Any, **_kwargs: Any) -> Self:
        """Be one's own pipeline: nothing is sent anyway."""
        return self

    def execute(self, *_args: Any, **_kwargs: Any) -> list[Any]:
        """Execute nothing."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        return None

    def _record(self, name: str, key: str, argument: str | bytes | int) -> Self:
        # kombu prefixes in the client that we stand in for, and not every command in every version.
        key = f"{self._prefix}{key}" if name in self._prefixed else key
        self._tape.commands.append(Command(name, key, argument))
        return self


class RecordingChannel:
    """Mixed into a Redis channel: puts messages on the tape of its class."""

    _tape: Tape
    _recorder: Recorder | None = None
    # kombu 5.7 would collect a batch in a pipeline of its own, which it then executes.
    supports_batch_publish = False

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        with self._recording():
            parent: Any = super()
            parent._put(queue, message, **kwargs)  # noqa: SLF001  kombu's own seam

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **kwargs: Any) -> None:
        with self._recording():
            parent: Any = super()
            parent._put_fanout(exchange, message, routing_key, **kwargs)  # noqa: SLF001

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Yield the recorder while a message is put, and a real client otherwise."""
        if self._recorder is not None:
            yield self._recorder
        else:
            parent: Any = super()
            with parent.conn_or_acquire(client) as real:
                yield real

    @contextmanager
    def _recording(self) -> Iterator[None]:
        prefix = getattr(self, "global_keyprefix", "")
        before = len(self._tape)
        self._recorder = Recorder(self._tape, prefix, _prefixed_commands())
        try:
            yield
        finally:
            self._recorder = None
        # An overridden _put that has its own way to the server: its message is out already.
        self._tape.unrecorded += len(self._tape) == before


def refusal(connection: Connection) -> str:
    """Return why the messages of a broker connection cannot be recorded, or an empty text."""
    transport = connection.get_transport_cls()
    channel = getattr(transport, "Channel", None)
    if getattr(transport, "driver_type", None) != "redis":
        return f"the broker is {getattr(transport, 'driver_type', 'unknown')}, not Redis"
    missing = [name for name in SEAMS if not callable(getattr(channel, name, None))]
    if missing:
        return f"{transport.__module__}.{transport.__qualname__} has no {' and no '.join(missing)}"
    return ""


def install(connection: Connection, tape: Tape) -> None:
    """Make a broker connection, not connected yet, record its messages on a tape.

    Raises ``DeliveryImpossible`` for a transport that cannot record.
    """
    if reason := refusal(connection):
        msg = f"messages cannot be recorded: {reason}"
        raise DeliveryImpossible(msg)
    current = connection.get_transport_cls
    made: dict[type, type] = {}

    def get_transport_cls() -> type:
        # Asked anew at each failover: the next URL may have another scheme.
        base = current()
        if base not in made:
            made[base] = recording_transport(base, tape)
        return made[base]

    connection.get_transport_cls = get_transport_cls


def recording_transport(transport: Any, tape: Tape) -> type:
    """Return a subclass of a Redis transport whose channels record on a tape."""
    channel = type(
        f"Recording{transport.Channel.__name__}",
        (RecordingChannel, transport.Channel),
        {"_tape": tape, "__module__": __name__},
    )
    return type(
        f"Recording{transport.__name__}", (transport,), {"Channel": channel, "__module__": __name__}
    )


def _prefixed_commands() -> frozenset[str]:
    from kombu.transport.redis import GlobalKeyPrefixMixin  # noqa: PLC0415  optional until used

    return frozenset(GlobalKeyPrefixMixin.PREFIXED_SIMPLE_COMMANDS)
