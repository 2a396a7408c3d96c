"""Store many documents at once, each as far as it can be; it removes none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.control.checks import check_text, instant_of
from celery_redlock_beat.control.known import data_of, is_stored
from celery_redlock_beat.control.storing import fields_in
from celery_redlock_beat.control.views import Imported
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.host import LastRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue, Known
    from celery_redlock_beat.control.storing import Storing
    from celery_redlock_beat.ledger.steering import Definition, Look


STORED_OTHERWISE = "it is stored otherwise; say replace, and it is changed"


class Importing:
    """Import documents."""

    def __init__(self, access: Access, catalogue: Catalogue, storing: Storing) -> None:
        self._access = access
        self._catalogue = catalogue
        self._storing = storing

    def import_(
        self,
        given: Mapping[str, Mapping[str, Any] | str],
        note: str,
        last_runs: Mapping[str, datetime],
        *,
        replace: bool,
    ) -> list[Imported]:
        """Store many documents, in their order; what cannot be stored does not stop the others."""
        runs = {name: LastRun(instant_of(at, "a last run")) for name, at in last_runs.items()}
        check_text("note", note)
        self._catalogue.follow()
        done: dict[str, Imported] = {}
        good: dict[str, tuple[str, Known]] = {}
        for name, document in given.items():
            try:
                good[name] = self._storing.written(name, fields_in(name, document))
            except EntryError as exc:
                done[name] = Imported(name, "refused", exc.problem)

        def prepare(look: Look) -> Iterator[Definition]:
            text, made = good[look.entry]
            done[look.entry] = answer = self._answer(look, text, replace=replace)
            if answer.done in {"added", "changed"}:
                yield self._storing.definition(look, text, made, note, runs.get(look.entry))

        for name in self._access.carry_out(list(good), prepare, self._access.steering.store):
            done[name] = Imported(name, "refused", "it was changed again and again; try again")
        return [done[name] for name in given]

    def _answer(self, look: Look, text: str, *, replace: bool) -> Imported:
        name = look.entry
        if name in self._catalogue.code():
            return Imported(name, "refused", "the code has an entry of this name")
        if not is_stored(look):
            return Imported(name, "added")
        if data_of(look.document) == data_of(text.encode()):
            return Imported(name, "same")
        if replace:
            return Imported(name, "changed")
        return Imported(name, "refused", STORED_OTHERWISE)
