"""A TCP proxy that behaves as networks do on a bad day: lost replies, cuts, silence, delay, noise.

It knows nothing of the protocol that passes through it, and changes nothing unless told to.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Self

from celery_redlock_beat.testing.server import free_port
from celery_redlock_beat.verify.pipe import Pipe, shut

Address = tuple[str, int]


@dataclass
class _Loss:
    """Which replies are to be lost: by chance, to which requests, and how many at most."""

    probability: float
    random: Random
    matching: bytes
    limit: int | None

    def hits(self, request: bytes) -> bool:
        if self.limit == 0 or self.matching not in request:
            return False
        if self.random.random() >= self.probability:
            return False
        self.limit = None if self.limit is None else self.limit - 1
        return True


@dataclass(frozen=True)
class Noise:
    """What is answered in the server's place, or how much of its replies gets through."""

    reply: bytes | None = None
    most: int | None = None
    ends: bool = False


class Proxy:
    """Forward 127.0.0.1:``port`` to a server until told otherwise; a context manager.

    ``dropped`` counts the replies that were lost, ``accepted`` the connections.
    """

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        self.target: Address = (target_host, target_port)
        self.port = 0
        self.dropped = 0
        self.accepted = 0
        self.swallows_requests = False
        self.swallows_replies = False
        self.noise = Noise()
        self.reply_delay = 0.0
        self.request_delay = 0.0
        self._loss: _Loss | None = None
        self._listener: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._pipes: set[Pipe] = set()
        self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The URL of a Redis server behind this proxy (database 0, no password)."""
        return f"redis://127.0.0.1:{self.port}/0"

    def drop_replies(
        self,
        probability: float = 1.0,
        seed: int = 0,
        *,
        matching: bytes = b"",
        limit: int | None = None,
    ) -> None:
        """Lose replies: the request reached the server, then the connection is closed.

        ``matching`` spares replies to requests without these bytes; ``limit`` ends it after so
        many. A probability of 0 ends it as well.
        """
        with self._lock:
            loss = _Loss(probability, Random(seed), matching, limit)  # noqa: S311  no secret
            self._loss = loss if probability else None

    def cut(self) -> None:
        """Close every connection and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            shut(listener)
        if self._accepting is not None:
            self._accepting.join(5)
        self.close_connections()

    def half_open(self, *, requests: bool = True, replies: bool = True) -> None:
        """Accept connections, and swallow all that arrives on them and on those already open.

        With only ``requests`` the server hears nothing more, and what it says still gets through;
        with only ``replies`` it does all that it is asked, and nobody learns of it.
        """
        self.swallows_requests, self.swallows_replies = requests, replies

    def answer(self, reply: bytes, *, ends: bool = False) -> None:
        """Answer requests in the place of the server, which sees none; ``ends``: then hang up."""
        self.noise = Noise(reply, ends=ends)

    def truncate_replies(self, most: int) -> None:
        """Let so many bytes of a reply through, and close the connection where it is longer."""
        self.noise = Noise(most=most)

    def say(self, words: bytes) -> int:
        """Send these bytes to every client, unasked; return how many there are."""
        with self._lock:
            pipes = list(self._pipes)
        for pipe in pipes:
            pipe.say(words)
        return len(pipes)

    def delay(self, seconds: float = 0.0, *, requests: float = 0.0) -> None:
        """Hold back each reply, and if asked each request, for so many seconds."""
        self.reply_delay, self.request_delay = seconds, requests

    def restore(self) -> None:
        """Forward again, on the same port.

        Connections that were swallowed stay silent for ever, as in a network that forgot them.
        """
        with self._lock:
            self.swallows_requests = self.swallows_replies = False
            self.noise = Noise()
            self._loss = None
            self.delay()
            if self._listener is None:
                self._listen()

    def close_connections(self) -> None:
        """Close every open connection; new ones are welcome."""
        with self._lock:
            pipes = list(self._pipes)
        for pipe in pipes:
            pipe.close()

    def start(self) -> Self:
        """Listen, on a port that stays the same until the end."""
        self.port = self.port or free_port()
        self.restore()
        return self

    def loses_reply_to(self, request: bytes) -> bool:
        """Decide whether the reply to ``request`` is lost, and count it."""
        with self._lock:
            lost = self._loss is not None and self._loss.hits(request)
            self.dropped += lost
            return lost

    def forget(self, pipe: Pipe) -> None:
        """Take a closed connection off the list."""
        with self._lock:
            self._pipes.discard(pipe)

    def _listen(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self._listener = listener
        self._accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._accepting.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = listener.accept()
                with self._lock:
                    self.accepted += 1
                    if self._listener is not listener:
                        client.close()
                        return
                    pipe = Pipe(self, client)
                    self._pipes.add(pipe)
                    pipe.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.cut()
