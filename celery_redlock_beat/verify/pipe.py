"""One connection through the proxy: two ends and a thread each way; it chooses no fault itself."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.verify.proxy import Proxy

CHUNK = 1 << 16


class Pipe:
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
                shut(end)
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

    def _on_reply(self, _: bytes) -> bool:
        request, self._request = self._request, b""
        if not self._swallowed and self._proxy.loses_reply_to(request):
            return False
        return not self._closed.wait(self._proxy.reply_delay)


def shut(end: socket.socket) -> None:
    """Close a socket at once, whatever its other end does."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        end.close()
