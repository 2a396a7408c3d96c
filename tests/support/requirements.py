"""What a test needs and may not find: skipped by name on a laptop, a failure in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
SEARCHED = os.pathsep.join((os.environ.get("PATH", os.defpath), *SBIN))


def in_ci() -> bool:
    """Whether everything that tests need must be there."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}


def require(name: str, found: object) -> None:
    """Go on if ``found`` is true; otherwise skip the test by name, or fail it in CI."""
    if found:
        return
    if in_ci():
        pytest.fail(f"CI must have what this test needs: {name}", pytrace=False)
    pytest.skip(f"needs {name}")


def has_program(*names: str) -> bool:
    """Whether one of these programs is installed, also where only root's PATH looks."""
    return any(shutil.which(name, path=SEARCHED) for name in names)


def has_cc() -> bool:
    """Whether there is a C compiler."""
    return has_program("cc", "gcc", "clang")


def has_postgres() -> bool:
    """Whether there is a PostgreSQL server, also where Debian hides it."""
    return has_program("initdb") or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@cache
def has_netns() -> bool:
    """Whether network namespaces can be made and used: root on Linux, and iproute2."""
    unshare = shutil.which("unshare", path=SEARCHED)
    if not (unshare and has_program("ip")):
        return False
    tried = subprocess.run([unshare, "--net", "true"], capture_output=True, check=False)
    return tried.returncode == 0
