"""Tell several observers of each outcome; it looks at none of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.ticks import Event

logger = logging.getLogger(__name__)


class Group:
    """Tell each observer, whatever the others do.

    An observer is called with an event and the name of the node that it came about on.
    """

    def __init__(self, *observers: Callable[[Event, str], None]) -> None:
        self.observers = observers

    def __call__(self, event: Event, node: str) -> None:
        """Tell all of them of one outcome of ``node``."""
        for observer in self.observers:
            try:
                observer(event, node)
            except Exception:
                name = getattr(observer, "__qualname__", type(observer).__name__)
                logger.exception("%s: the observer %s failed", event.tick, name)
