"""RedBeat's release: its own tests, from the source archive, and what they need beside our own.

Nothing of them is in this repository: pip fetches both, from whatever index it is configured with.
"""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.redbeat_redis import VARIABLE as SERVER
from conformance.releases import FetchError, Release, fetch, outcomes_of, pip

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "2.4.2"
"""What the deviations were reviewed against."""


@dataclass(frozen=True)
class RedBeatRelease:
    """The release, in a folder that is kept between runs; ``server`` is the URL of a server.

    Its tests empty that server.
    """

    folder: Path
    server: str

    @property
    def sources(self) -> Path:
        """Its tests, without the package itself."""
        return self.folder / f"celery_redbeat-{VERSION}"

    @property
    def packages(self) -> Path:
        """What its tests import and we do not need."""
        return self.folder / "packages"

    def fetch(self) -> None:
        """Fetch what is not there yet; raise ``FetchError`` if pip cannot."""
        fetch(self.folder, {self.sources: self._unpack, self.packages: _install})

    def run(self, celery: Release, *plugins: str) -> dict[str, str]:
        """Run the tests on a release of Celery; return the failure of each, ``""`` for none."""
        env = celery.environment(**{SERVER: self.server})
        env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(self.packages)])
        # Without these pytest would take our own configuration, if the archive lies in a checkout.
        options = ("-c", os.devnull, f"--rootdir={self.sources}")
        return outcomes_of(self.sources, ["tests"], plugins, env, self.folder, options)

    def _unpack(self, folder: Path) -> Path:
        name = "celery-redbeat"
        wanted = ("--no-deps", f"--no-binary={name}", f"{name}=={VERSION}")
        pip("download", f"--dest={folder}", *wanted)
        archives = list(folder.glob("celery?redbeat-*.tar.gz"))
        if len(archives) != 1:
            raise FetchError(f"pip brought {archives}, and no source archive")
        with tarfile.open(archives[0]) as archive:
            # Not the package: what is tested is ours, or the installed one.
            tests = [each for each in archive if "/tests/" in each.name]
            archive.extractall(folder / "unpacked", members=tests, filter="data")
        return next((folder / "unpacked").iterdir())


def _install(folder: Path) -> Path:
    pip("install", f"--target={folder / 'packages'}", "pytz")
    return folder / "packages"
