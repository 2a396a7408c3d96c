"""A TCP proxy that behaves as networks do on a bad day: lost replies, cuts, silence, delay.

It knows nothing of the protocol that passes through it, and never changes a byte.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Self

from celery_redlock_beat.testing.server import free_port

CHUNK = 1 << 16
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


class Proxy:
    """Forward 127.0.0.1:``port`` to a server until told otherwise; a context manager.

    ``dropped`` counts the replies that were lost, ``accepted`` the connections.
    """

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        self.target: Address = (target_host, target_port)
        self.port = 0
        self.dropped = 0
        self.accepted = 0
        self.silent = False
        self.reply_delay = 0.0
        self.request_delay = 0.0
        self._loss: _Loss | None = None
        self._listener: socket.socket | None = None
        self._accepting: threading.Thread | None = None
        self._pipes: set[_Pipe] = set()
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
            loss = _Loss(probability, Random(seed), matching, limit)
            self._loss = loss if probability else None

    def cut(self) -> None:
        """Close every connection and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            _shut(listener)
        if self._accepting is not None:
            self._accepting.join(5)
        self.close_connections()

    def half_open(self) -> None:
        """Accept connections, and swallow all that arrives on them and on those already open."""
        self.silent = True

    def delay(self, seconds: float = 0.0, *, requests: float = 0.0) -> None:
        """Hold back each reply, and if asked each request, for so many seconds."""
        self.reply_delay, self.request_delay = seconds, requests

    def restore(self) -> None:
        """Forward again, on the same port.

        Connections that were swallowed stay silent for ever, as in a network that forgot them.
        """
        with self._lock:
            self.silent = False
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

    def forget(self, pipe: _Pipe) -> None:
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
                    pipe = _Pipe(self, client)
                    self._pipes.add(pipe)
                    pipe.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.cut()


class _Pipe:
    """One connection of a client, with the server's end of it unless the proxy was silent."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server: socket.socket | None = None
        self._request = b""
        self._swallowed = proxy.silent
        self._closed = threading.Event()

    def start(self) -> None:
        """Connect to the server and let bytes through, until either end closes."""
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Close both ends at once, whatever is still on its way."""
        self._closed.set()
        for end in (self._client, self._server):
            if end is not None:
                _shut(end)
        self._proxy.forget(self)

    def _run(self) -> None:
        with suppress(OSError):
            if not self._swallowed:
                self._server = server = socket.create_connection(self._proxy.target, timeout=5)
                server.settimeout(None)
                threading.Thread(target=self._replies, args=(server,), daemon=True).start()
                for end in (self._client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._closed.is_set():
                self._pump(self._client, lambda: self._server, self._on_request)
        self.close()

    def _replies(self, server: socket.socket) -> None:
        self._pump(server, lambda: self._client, self._on_reply)

    def _pump(
        self,
        source: socket.socket,
        sink: Callable[[], socket.socket | None],
        passes: Callable[[bytes], bool],
    ) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK):
                if not passes(chunk):
                    break
                self._swallowed = self._swallowed or self._proxy.silent
                end = sink()
                if end is not None and not self._swallowed:
                    end.sendall(chunk)
        if not self._swallowed or source is self._client:
            self.close()  # the end of a server that was swallowed is no news for the client

    def _on_request(self, chunk: bytes) -> bool:
        self._request += chunk
        return not self._closed.wait(self._proxy.request_delay)

    def _on_reply(self, chunk: bytes) -> bool:
        request, self._request = self._request, b""
        if not self._swallowed and self._proxy.loses_reply_to(request):
            return False
        return not self._closed.wait(self._proxy.reply_delay)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        end.close()
