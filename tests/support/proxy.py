"""The package's TCP proxy, with noise, broken answers, and silence in one direction on top.

It knows nothing of the protocol that passes through it, and changes nothing unless told to.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass

from celery_redlock_beat.verify import proxy
from celery_redlock_beat.verify.pipe import CHUNK, shut


@dataclass(frozen=True)
class _Noise:
    """What is answered in the server's place, or how much of its replies gets through."""

    reply: bytes | None = None
    most: int | None = None
    ends: bool = False


class Proxy(proxy.Proxy):
    """Forward 127.0.0.1:``port`` to a server until told otherwise; a context manager."""

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        super().__init__(target_port, target_host)
        self.swallows_requests = False
        self.swallows_replies = False
        self.noise = _Noise()

    def half_open(self, *, requests: bool = True, replies: bool = True) -> None:
        """Accept connections, and swallow all that arrives on them and on those already open.

        With only ``requests`` the server hears nothing more, and what it says still gets through;
        with only ``replies`` it does all that it is asked, and nobody learns of it.
        """
        self.swallows_requests, self.swallows_replies = requests, replies

    def answer(self, reply: bytes, *, ends: bool = False) -> None:
        """Answer requests in the place of the server, which sees none; ``ends``: then hang up."""
        self.noise = _Noise(reply, ends=ends)

    def truncate_replies(self, most: int) -> None:
        """Let so many bytes of a reply through, and close the connection where it is longer."""
        self.noise = _Noise(most=most)

    def say(self, words: bytes) -> int:
        """Send these bytes to every client, unasked; return how many there are."""
        with self._lock:
            pipes = list(self._pipes)
        for pipe in pipes:
            pipe.say(words)
        return len(pipes)

    def restore(self) -> None:
        """Forward again, on the same port.

        Connections that were swallowed stay silent for ever, as in a network that forgot them.
        """
        with self._lock:
            self.swallows_requests = self.swallows_replies = False
            self.noise = _Noise()
            super().restore()

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


class _Pipe:
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
