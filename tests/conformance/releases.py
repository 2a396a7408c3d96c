"""Celery's releases: their own tests, from the source archive, and the packages to run them on.

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
from typing import TYPE_CHECKING

from conformance.outcomes import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HERE = Path(__file__).parent
VERSIONS = {"5.5": "5.5.3", "5.6": "5.6.3", "5.7": "5.7.0"}
"""What the deviations were reviewed against, by series; kombu is of the same series."""

SELECTION = (
    "t/unit/app/test_beat.py",
    "t/unit/apps/test_beat.py",  # since 5.7
    "t/unit/bin/test_beat.py",
    "t/unit/worker/test_components.py",
    "t/unit/worker/test_worker.py::test_WorkController::test_with_embedded_beat",
)
LIMIT = 60
"""Seconds that one of Celery's tests may take."""


class FetchError(Exception):
    """Pip could not fetch a release."""


@dataclass(frozen=True)
class Release:
    """One release of Celery, in a folder that is kept between runs."""

    series: str
    folder: Path

    @property
    def version(self) -> str:
        return VERSIONS[self.series]

    @property
    def sources(self) -> Path:
        """Its tests and their configuration, without the package itself."""
        return self.folder / f"celery-{self.version}"

    @property
    def packages(self) -> Path:
        """The installed release with its dependencies, to go before those of the environment."""
        return self.folder / f"packages-{self.version}"

    def fetch(self) -> None:
        """Fetch what is not there yet; raise ``FetchError`` if pip cannot."""
        fetch(
            self.folder,
            {
                self.sources: self._unpack,
                self.packages: lambda unfinished: self._install(unfinished / "packages"),
            },
        )

    def run(self, *plugins: str) -> dict[str, str]:
        """Run the selection; return the failure of each test, ``""`` for none."""
        found = [each for each in SELECTION if (self.sources / each.partition("::")[0]).exists()]
        return outcomes_of(self.sources, found, plugins, self.environment(), self.folder)

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the environment of a process that is to see this release."""
        ours = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        return ours | {"PYTHONPATH": os.pathsep.join([str(self.packages), str(HERE)])} | changes

    def _unpack(self, folder: Path) -> Path:
        pip("download", f"--dest={folder}", "--no-deps", "--no-binary=celery", self._requirement())
        top = f"celery-{self.version}"
        with tarfile.open(folder / f"{top}.tar.gz") as archive:
            # Not the package: what is tested is the installed one.
            wanted = [
                member
                for member in archive
                if member.name.startswith(f"{top}/t/") or member.name == f"{top}/pyproject.toml"
            ]
            archive.extractall(folder, members=wanted, filter="data")
        return folder / top

    def _install(self, folder: Path) -> Path:
        kombu = f"kombu=={self.series}.*"
        pip("install", f"--target={folder}", self._requirement("[redis]"), kombu)
        return folder

    def _requirement(self, extras: str = "") -> str:
        return f"celery{extras}=={self.version}"


def fetch(folder: Path, wanted: Mapping[Path, Callable[[Path], Path]]) -> None:
    """Make what is not in a folder yet; each is there as a whole, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for path, make in wanted.items():
            if not path.exists():
                make(Path(name)).rename(path)


def outcomes_of(
    sources: Path,
    selection: Sequence[str],
    plugins: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    options: Sequence[str] = (),
) -> dict[str, str]:
    """Run a release's own tests; return the failure of each, ``""`` for none."""
    loaded = [option for plugin in ("outcomes", *plugins) for option in ("-p", plugin)]
    told = ["-p", "no:cacheprovider", f"--timeout={LIMIT}", "-q", "--no-header"]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        outcomes = Path(name) / "outcomes.json"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *loaded, *told, *options, *selection],
            cwd=sources,
            env={**env, VARIABLE: str(outcomes)},
            capture_output=True,
            text=True,
            check=False,
        )
        if not outcomes.exists() or done.returncode > 1:
            raise AssertionError(f"pytest ended with {done.returncode}:\n{done.stdout}")
        return dict(json.loads(outcomes.read_text()))


def pip(command: str, *arguments: str) -> None:
    line = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*line, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise FetchError(done.stderr.strip())
