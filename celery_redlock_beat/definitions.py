"""From what users write as an entry to the entry; it keeps none, and knows no schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery.beat import ScheduleEntry

from celery_redlock_beat.entry_checks import check_keys
from celery_redlock_beat.entry_names import canonical_name
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.policies import with_policies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from celery_redlock_beat.entries import RedlockEntry


class Definitions:
    """Make entries of their definitions; one that is bad is told, and does not stop the others.

    ``make`` is given a name and fields, or an entry that is one already; ``fault`` an error.
    """

    def __init__(
        self, make: Callable[[str, Any], RedlockEntry], fault: Callable[[EntryError], None]
    ) -> None:
        self._make = make
        self._fault = fault

    def entries(self, definitions: Mapping[str, Any]) -> Iterator[RedlockEntry]:
        """Yield the entry of each definition that is good."""
        for name, fields in definitions.items():
            entry = self.entry(name, fields, check_keys)
            if entry:
                yield entry

    def entry(
        self, name: str, fields: Any, check: Callable[[str, Any], None]
    ) -> RedlockEntry | None:
        """Return the entry of one definition under its canonical name, or ``None`` for a bad one.

        Fields must pass ``check``. An entry is taken as it is.
        """
        try:
            if isinstance(fields, ScheduleEntry):
                return self._make(name, fields)
            name = canonical_name(name, fields)
            fields = with_policies(fields)
            check(name, fields)
            return self._make(name, fields)
        except EntryError as exc:
            self._fault(exc)
        except Exception as exc:  # noqa: BLE001 - one bad entry does not stop the others
            self._fault(EntryError(name, str(exc)))
        return None
