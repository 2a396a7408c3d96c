"""Certificates of a test's own authority, and servers that show and want them.

They are made with openssl, and nothing trusts them but that test.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from celery_redlock_beat.testing.server import ServerNotStarted
from support.servers import Server, free_port

if TYPE_CHECKING:
    from pathlib import Path

SIGNS = "keyUsage=critical,keyCertSign,cRLSign"
# What Python 3.13 misses in a certificate without it.
STRICT = "basicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def has_openssl() -> bool:
    """Tell whether certificates can be made here."""
    return shutil.which("openssl") is not None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; ``certificate`` is what others must trust."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = name
        self.certificate = directory / f"{name}.crt"
        self._key = directory / f"{name}.key"
        directory.mkdir(parents=True, exist_ok=True)
        new = ("req", "-x509", *KEY, "-days", "2", "-subj", f"/CN={name}", "-addext", SIGNS)
        self._openssl(*new, "-keyout", self._key, "-out", self.certificate)

    def issue(self, name: str, *names: str) -> Certificate:
        """Return a new certificate for hosts, written such as ``DNS:a`` or ``IP:127.0.0.1``."""
        stem = self._directory / f"{self._name}-{name}"
        request, extensions = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        made = Certificate(stem.with_suffix(".crt"), stem.with_suffix(".key"))
        new = ("req", *KEY, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
        self._openssl(*new)
        extensions.write_text(f"subjectAltName={','.join(names or [f'DNS:{name}'])}\n{STRICT}")
        signer = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        sign = ("x509", "-req", "-in", request, *signer, "-extfile", extensions)
        self._openssl(*sign, "-out", made.certificate)
        return made

    def _openssl(self, *words: str | Path) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class TlsServer(Server):
    """A server that has a port for TLS beside its other one, and wants a client's certificate."""

    def __init__(self, *, authority: Authority, shown: Certificate, **options: Any) -> None:
        super().__init__(**options)
        self.tls_port = 0
        self._files = ("--tls-cert-file", shown.certificate, "--tls-key-file", shown.key)
        self._authority = authority

    def command(self, binary: Path, port: int) -> list[str]:
        """Return the command line of the server, with another port for TLS at each attempt."""
        self.tls_port = self.tls_port or free_port()
        tls = ("--tls-port", self.tls_port, *self._files)
        trust = ("--tls-ca-cert-file", self._authority.certificate)
        return [*super().command(binary, port), *map(str, (*tls, *trust))]

    def tls_url(
        self,
        own: Certificate | None,
        authority: Authority | None = None,
        host: str = "127.0.0.1",
        db: int = 0,
    ) -> str:
        """Return the URL for TLS: with the certificate to show, and the authority to trust."""
        query = tls_query(authority or self._authority, own)
        return f"rediss://{host}:{self.tls_port}/{db}?{query}"


def tls_query(authority: Authority, own: Certificate | None) -> str:
    """Return the options of TLS as a URL has them."""
    told = {"ssl_cert_reqs": "required", "ssl_ca_certs": str(authority.certificate)}
    if own is not None:
        told |= {"ssl_certfile": str(own.certificate), "ssl_keyfile": str(own.key)}
    return urlencode(told)


def speaks_tls(binary: Path, authority: Authority, shown: Certificate) -> bool:
    """Tell whether a server was built with TLS."""
    with suppress(ServerNotStarted), TlsServer(authority=authority, shown=shown, binary=binary):
        return True
    return False
