"""Give a process of its own a wall clock that is wrong, and let the test set by how much.

Nothing here touches the clock of the test itself or of the machine.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_name("clock_shift.c")
FILE_VARIABLE = "REDLOCK_CLOCK_SHIFT_FILE"
NANOSECONDS = 1_000_000_000


def can_shift() -> bool:
    """Tell whether a clock can be shifted here: Linux, and a C compiler."""
    return sys.platform == "linux" and shutil.which("cc") is not None


@cache
def _workshop() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="redlock-clock-")  # removed when Python ends


@cache
def library() -> Path:
    """Compile the library, once per test process, and return its path."""
    target = Path(_workshop().name) / "clock_shift.so"
    options = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC")
    subprocess.run(["cc", *options, "-o", target, SOURCE], check=True)
    return target


class ShiftedClock:
    """A wall clock that is ``seconds`` ahead (or behind), for processes started with ``env``.

    ``set`` moves it while they run; their monotonic clock stays true. A context manager.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        library()
        handle, name = tempfile.mkstemp(dir=_workshop().name)
        try:
            os.ftruncate(handle, 8)
            self._page = mmap.mmap(handle, 8)
        finally:
            os.close(handle)
        self._file = Path(name)
        self._offset = memoryview(self._page).cast("q")  # one aligned store per change
        self.set(seconds)

    @property
    def env(self) -> dict[str, str]:
        """What to add to the environment of a process that is to have this clock."""
        preloads = [str(library()), os.environ.get("LD_PRELOAD", "")]
        return {"LD_PRELOAD": ":".join(filter(None, preloads)), FILE_VARIABLE: str(self._file)}

    @property
    def seconds(self) -> float:
        """How far the clock is ahead."""
        return self._offset[0] / NANOSECONDS

    def set(self, seconds: float) -> None:
        """Set how far the clock is ahead, at once, in running processes too."""
        self._offset[0] = round(seconds * NANOSECONDS)

    def close(self) -> None:
        """Remove the file; processes that run keep the last offset."""
        self._offset.release()
        self._page.close()
        self._file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
