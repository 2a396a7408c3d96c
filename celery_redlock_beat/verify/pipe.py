"""One connection through the proxy: two ends and a thread each way; it chooses no fault itself."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery_redlock_beat.verify.proxy import Proxy

CHUNK = 1 << 16


class Pipe:
    """One connection of a client, with the server's end of it unless the proxy was silent."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server: socket.socket | None = None
        self._request = b""
        # For good: a network that forgot a connection does not remember it.
        self._lost_requests = self._lost_replies = False
        self._closed = threading.Event()

    def start(self) -> None:
        """Connect to the server and let bytes through, until either end closes."""
        threading.Thread(target=self._run, daemon=True).start()

    def say(self, words: bytes) -> None:
        """Send to the client what it did not ask for."""
        with suppress(OSError):
            self._client.sendall(words)

    def close(self) -> None:
        """Close both ends at once, whatever is still on its way."""
        self._closed.set()
        for end in (self._client, self._server):
            if end is not None:
                shut(end)
        self._proxy.forget(self)

    def _run(self) -> None:
        with suppress(OSError):
            if not self._is_silent():
                self._server = server = socket.create_connection(self._proxy.target, timeout=5)
                server.settimeout(None)
                threading.Thread(target=self._pump_replies, args=(server,), daemon=True).start()
                for end in (self._client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._closed.is_set():
                self._pump_requests()
        self.close()

    def _is_silent(self) -> bool:
        self._lost_requests = self._lost_requests or self._proxy.swallows_requests
        self._lost_replies = self._lost_replies or self._proxy.swallows_replies
        return self._lost_requests and self._lost_replies

    def _pump_requests(self) -> None:
        with suppress(OSError):
            while chunk := self._client.recv(CHUNK):
                noise = self._proxy.noise
                if noise.reply is not None:
                    self.say(noise.reply)
                    if noise.ends:
                        break
                    continue
                self._request += chunk
                if self._closed.wait(self._proxy.request_delay):
                    break
                self._is_silent()
                if self._server is not None and not self._lost_requests:
                    self._server.sendall(chunk)
        self.close()

    def _pump_replies(self, server: socket.socket) -> None:
        with suppress(OSError):
            while chunk := server.recv(CHUNK):
                request, self._request = self._request, b""
                if not self._lost_replies and self._proxy.loses_reply_to(request):
                    break
                if self._closed.wait(self._proxy.reply_delay):
                    break
                self._is_silent()
                if self._lost_replies:
                    continue
                most = self._proxy.noise.most
                self._client.sendall(chunk[:most])
                if most is not None and len(chunk) > most:
                    break
        if not self._lost_replies:
            self.close()  # the end of a server that is not heard is no news for the client


def shut(end: socket.socket) -> None:
    """Close a socket at once, whatever its other end does."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        end.close()
