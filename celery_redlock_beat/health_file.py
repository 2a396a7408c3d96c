"""A small file that tells probes on this machine that a node lives; it never stops the node.

It is JSON: ``format`` (1), ``node``, ``pid``, ``at`` (seconds since the epoch, by the wall clock of
the machine), ``ready``, and ``problems``, a list of texts.
"""

from __future__ import annotations

import json
import logging
import math
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 1
EVERY = 1.0
LONGEST = 100_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Health:
    """What a node told of itself ``at`` an instant, in seconds since the epoch."""

    node: str
    pid: int
    at: float
    ready: bool
    problems: Sequence[str]


class HealthFile:
    """Write the health of this process to a file, at most once a second, as a whole or not at all.

    It is there from the first pass to a clean end. What is left of a node that was killed gets old.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()
        self._wrote_at: float | None = None
        self._wrote: tuple[str, int] | None = None
        self._closed = False
        self._fails = False

    def check(self) -> None:
        """Raise ``SettingError`` where there is no place for such a file."""
        folder = self.path.parent
        problem = ""
        if self.path.is_dir():
            problem = "is a folder: write the path of a file in it"
        elif not folder.is_dir():
            problem = f"cannot be written: there is no folder {str(folder)!r}, make it"
        if problem:
            raise SettingError(f"redlock_beat_health_file = {str(self.path)!r} {problem}")

    def write(self, node: str, problems: Sequence[str], now: float) -> None:
        """Tell how a node stands at an instant of the wall clock; a node without problems is ready.

        A disk that does not take it is told once.
        """
        recent = self._wrote_at is not None and 0 <= now - self._wrote_at < EVERY
        if self._closed or recent:
            return
        self._wrote_at = now
        health = Health(node, os.getpid(), now, not problems, list(problems))
        self._wrote = (node, health.pid)  # first, for whoever leaves in the middle of this
        try:
            self._replace({"format": FORMAT, **asdict(health)})
        except OSError as exc:
            level = logging.DEBUG if self._fails else logging.ERROR
            logger.log(level, "The health file cannot be written, beat goes on: %s", exc)
            self._fails = True
            return
        if self._fails:
            logger.warning("The health file %s can be written again.", self.path)
        self._fails = False

    def close(self) -> None:
        """Remove the file if it is still ours; quick, and idempotent. Nothing is written later."""
        self._closed = True
        if self._wrote is None or self._wrote[1] != os.getpid():
            return
        try:
            self._temporary().unlink(missing_ok=True)  # of a write that is being interrupted
            found = read(self.path)
            if isinstance(found, Health) and (found.node, found.pid) == self._wrote:
                self.path.unlink(missing_ok=True)
        except OSError as exc:
            logger.warning("The health file cannot be removed: %s", exc)

    def _temporary(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}")

    def _replace(self, record: object) -> None:
        temporary = self._temporary()
        temporary.unlink(missing_ok=True)
        # Created anew, so that a link that somebody put there leads nowhere.
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open
                json.dump(record, file)
            temporary.replace(self.path)
        except OSError:
            with suppress(OSError):  # the first one is told
                temporary.unlink()
            raise


def read(path: str | Path) -> Health | str:
    """Return what a node wrote, or what is wrong with the file."""
    path = Path(path)
    if path.exists() and not path.is_file():  # to open a pipe would wait for its writer
        return f"{str(path)!r} cannot be read: it is no regular file; name the one that beat writes"
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST)
    except FileNotFoundError:
        return f"there is no file {str(path)!r}: beat does not run, or has not begun to"
    except OSError as exc:
        return f"it cannot be read: {exc}"
    try:
        told = json.loads(text)
        if told["format"] != FORMAT:
            return f"{str(path)!r} is of another release: its format is {told['format']!r}"
        return Health(
            node=str(told["node"]),
            pid=int(told["pid"]),
            at=_finite(told["at"]),
            ready=told["ready"] is True,
            problems=[str(each) for each in told["problems"]],
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return f"{str(path)!r} is no health file"


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(number)
    return float(number)
