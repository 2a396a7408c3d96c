"""What fails again and again, told now and then; it mends nothing."""

from __future__ import annotations

import logging
import time
import traceback
from typing import Any

SILENCE = 60.0
"""Seconds before a failure of the same kind, in the same place, is logged again."""

logger = logging.getLogger(__name__)


class Complaints:
    """Log what failed a pass, but not in each pass: the next one comes in half a second."""

    def __init__(self) -> None:
        self._silent_until: dict[tuple[Any, ...], float] = {}

    def tell(self, exc: Exception) -> None:
        """Log an error that was raised; with its traceback, unless that was done just now."""
        last = traceback.extract_tb(exc.__traceback__)[-1]
        kind, now = (type(exc), last.filename, last.lineno), time.monotonic()
        if now < self._silent_until.get(kind, now):
            logger.debug("This pass failed as before: %r", exc)
            return
        self._silent_until[kind] = now + SILENCE
        logger.error("This pass failed; the next one goes on", exc_info=exc)
