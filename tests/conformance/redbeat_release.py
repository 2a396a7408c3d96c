"""RedBeat's release: its own tests, from the source archive, and what they need beside our own.

Nothing of them is in this repository: pip fetches both, from whatever index it is configured with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from conformance.outcomes import VARIABLE
from conformance.redbeat_redis import VARIABLE as SERVER
from conformance.releases import LIMIT, FetchError, Release, _pip

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
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            unfinished = Path(name)
            if not self.sources.exists():
                self._unpack(unfinished).rename(self.sources)
            if not self.packages.exists():
                _pip("install", f"--target={unfinished / 'packages'}", "pytz")
                (unfinished / "packages").rename(self.packages)

    def run(self, celery: Release, *plugins: str) -> dict[str, str]:
        """Run the tests on a release of Celery; return the failure of each, ``""`` for none."""
        options = [option for each in ("outcomes", *plugins) for option in ("-p", each)]
        options += ["-p", "no:cacheprovider", f"--timeout={LIMIT}", "-q", "--no-header"]
        # Without these pytest would take our own configuration, if the archive lies in a checkout.
        options += ["-c", os.devnull, f"--rootdir={self.sources}"]
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            outcomes = Path(name) / "outcomes.json"
            env = celery.environment(**{VARIABLE: str(outcomes), SERVER: self.server})
            env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(self.packages)])
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, "tests"],
                cwd=self.sources,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            if not outcomes.exists() or done.returncode > 1:
                raise AssertionError(f"pytest ended with {done.returncode}:\n{done.stdout}")
            return dict(json.loads(outcomes.read_text()))

    def _unpack(self, folder: Path) -> Path:
        name = "celery-redbeat"
        wanted = ("--no-deps", f"--no-binary={name}", f"{name}=={VERSION}")
        _pip("download", f"--dest={folder}", *wanted)
        archives = list(folder.glob("celery?redbeat-*.tar.gz"))
        if len(archives) != 1:
            raise FetchError(f"pip brought {archives}, and no source archive")
        with tarfile.open(archives[0]) as archive:
            # Not the package: what is tested is ours, or the installed one.
            tests = [each for each in archive if "/tests/" in each.name]
            archive.extractall(folder / "unpacked", members=tests, filter="data")
        return next((folder / "unpacked").iterdir())
