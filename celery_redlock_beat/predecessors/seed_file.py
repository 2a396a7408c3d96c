"""The first start after stock beat, where its schedule file says that it stopped; sends nothing."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import ConfigurationError, SettingError
from celery_redlock_beat.predecessors import shelve_file
from celery_redlock_beat.predecessors.predecessor import Predecessor
from celery_redlock_beat.ticks import listed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from celery_redlock_beat.predecessors.predecessor import Settled

SETTING = "redlock_beat_seed"
STALE = timedelta(days=1)
"""A file that is older than that is of another life: what was sent since, it does not know."""
MOST_NAMED = 5
BEGIN = "%s: %d entries begin where stock beat stopped: %s"
STAY = (
    "%s: %d entries stay as they are, since nodes have begun to count them: %s. After the first "
    "start the setting has no use: remove it"
)
WENT_ON = (
    "%s: %d entries have gone on from there: %s. Remove the setting: if Redis lost all its data, "
    "they would begin there once more, and be sent again"
)
TOLD = {
    True: (logging.INFO, BEGIN),
    False: (logging.WARNING, STAY),
    None: (logging.WARNING, WENT_ON),
}

logger = logging.getLogger(__name__)


class SeedFile(Predecessor):
    """What the setting ``redlock_beat_seed`` names; read when it is first asked.

    ``zone`` is that of times without an offset.
    """

    def __init__(self, path: str, zone: tzinfo) -> None:
        self._path = path
        self._zone = zone
        self._heard: dict[bool | None, list[str]] = {True: [], False: [], None: []}

    def check(self) -> None:
        """Read it.

        Raises:
            SettingError: It is there, and no file of stock beat.

        """
        _ = self._last_runs

    def last_run(self, name: str) -> datetime | None:
        """Return when stock beat sent an entry last, or ``None`` if it never did."""
        return self._last_runs.get(name)

    def hear(self, name: str, taken: bool | None) -> None:  # noqa: FBT001 - as it is told
        """Learn whether an entry begins where stock beat stopped."""
        if name in self._last_runs:
            self._heard[taken].append(shown(name))

    def passed(self, _settled: Callable[[], Settled]) -> None:
        """Log what was heard since the last time."""
        for taken, names in self._heard.items():
            if names:
                level, text = TOLD[taken]
                told = listed(sorted(names), MOST_NAMED)
                logger.log(level, text, SETTING, len(names), told)
                names.clear()

    @cached_property
    def _last_runs(self) -> Mapping[str, datetime]:
        try:
            found = shelve_file.read(self._path, self._zone)
        except FileNotFoundError:
            logger.info("%s: there is no file %s here", SETTING, self._path)
            return {}
        except ConfigurationError as problem:
            raise SettingError(f"{SETTING}: {problem}") from None
        if found.unreadable:
            logger.warning(
                "%s: the last runs of %d entries are in a zone that cannot be told, so that they "
                "begin anew: %s",
                *(SETTING, len(found.unreadable)),
                listed(sorted(map(shown, found.unreadable)), MOST_NAMED),
            )
        newest = max((found.written, *found.last_runs.values()))
        if datetime.now(UTC) - newest > STALE:
            logger.warning(
                "%s: %s is not used, since nothing was written to it after %s: remove the setting, "
                "or use 'celery redlock import-shelve' if that is meant",
                *(SETTING, self._path, newest.isoformat(timespec="seconds")),
            )
            return {}
        return found.last_runs
