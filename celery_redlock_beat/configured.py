"""What ``beat_schedule`` says by now, as changes since the last look; it touches no schedule."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.entry_checks import check_fields
from celery_redlock_beat.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery import Celery

    from celery_redlock_beat.definitions import Definitions
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.roster import Roster

logger = logging.getLogger(__name__)


class ConfiguredEntries:
    """Follow ``beat_schedule``, to which ``add_periodic_task`` adds at any time."""

    def __init__(self, app: Celery, definitions: Definitions, roster: Roster) -> None:
        self._app = app
        self._definitions = definitions
        self._roster = roster
        self._seen: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._refused: Any = object()  # what was refused may be None

    def changes(self) -> Iterator[tuple[str, RedlockEntry | None]]:
        """Yield the name and entry of what is new or other, and ``None`` for what must go.

        They count as seen when the last one has been taken, and come again if that failed.
        """
        configured = self._app.conf.beat_schedule
        if self._seen == configured or not self._can_follow(configured):
            return
        self._roster.must_compare_all = True
        for name in set(self._seen) - set(configured):
            self._roster.faults.pop(name, None)
            yield from self._gone(name)
        for name, fields in configured.items():
            if self._seen.get(name) is not fields:
                entry = self._definitions.entry(name, fields, check_fields)
                if entry:
                    self._names[name] = entry.name
                    yield entry.name, entry
                else:
                    yield from self._gone(name)
        self._seen = dict(configured)

    def _gone(self, name: str) -> Iterator[tuple[str, None]]:
        yield self._names.get(name, name), None
        self._names.pop(name, None)

    def _can_follow(self, configured: Any) -> bool:
        """Answer whether it is a schedule; if not, end the start, or leave all as it was."""
        if isinstance(configured, Mapping):
            return True
        problem = SettingError(
            "beat_schedule must be a dict of entries by name, as in "
            "{'pulse': {'task': 'proj.pulse', 'schedule': 30}}, and is of type "
            f"{type(configured).__name__}"
        )
        if self._roster.starting:
            raise problem
        if self._refused is not configured:
            self._refused = configured
            logger.error("The schedule stays as it was: %s", problem)
        return False
