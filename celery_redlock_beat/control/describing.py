"""An entry, and what the ledger knows of it, as operators are told; it asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.known import data_of
from celery_redlock_beat.control.views import EntryView, Origin, Paused, Result, State
from celery_redlock_beat.delivery.headers import task_id_of
from celery_redlock_beat.diagnostics.schedules.forthcoming import Question, outlook
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ticks import EPOCH, SECOND, Tick
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery

    from celery_redlock_beat.control.known import Known
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger import Pause
    from celery_redlock_beat.ledger.steering import LastOutcome, Look
    from celery_redlock_beat.ticks import Micros, Timetable

FACTS = Question(EPOCH, 0)


class Describer:
    """Make views of entries; what is costly to say is remembered."""

    def __init__(self, app: Celery, namespace: str) -> None:
        self._app = app
        self._namespace = namespace
        self._facts: dict[tuple[object, str], Mapping[str, str]] = {}
        self._documents: dict[str, tuple[Any, Mapping[str, Any]]] = {}

    def view(self, known: Known, look: Look) -> EntryView:
        """Return an entry as it stands."""
        facts = self._facts_of(known)
        state, following, problem = State.BAD, None, known.problem
        try:
            state = state_of(known, look)
            following = upcoming_of(known, look) if state is State.ACTIVE else None
        except Exception as exc:  # noqa: BLE001 - a timetable may be the user's own
            problem = f"its timetable failed: {exc!r}"
        return EntryView(
            name=known.name,
            origin=known.origin,
            state=state,
            task=known.task,
            schedule=facts.get("meaning") or facts.get("schedule", ""),
            timezone=facts.get("zone", ""),
            tags=known.tags,
            description=known.description,
            definition=self._definition(known),
            revision=look.revision if known.origin is Origin.STORED else 0,
            next=_moment(following),
            last=self._result(known, look.last) if look.last else None,
            paused=_paused(pause) if (pause := pause_of(look)) else None,
            runs=look.record.runs if look.record else 0,
            unwanted=tuple(moment(at) for at in sorted(look.unwanted)),
            open=tuple(moment(each.tick.at) for each in look.open),
            problem=problem,
        )

    def _result(self, known: Known, last: LastOutcome) -> Result:
        outcome, _, reason = last.outcome.partition(":")
        tick = Tick(known.name, last.tick)
        return Result(
            at=moment(last.at),
            tick=moment(last.tick),
            outcome=outcome,
            reason=reason,
            node=last.node,
            attempt=last.attempt,
            lateness=last.lateness / SECOND,
            task_id=task_id_of(known.entry, tick, self._namespace),
        )

    def _facts_of(self, known: Known) -> Mapping[str, str]:
        if known.slot is None:
            return {}
        # Many entries have few timetables.
        told = known.slot.timetable, str(getattr(known.entry, "timezone", None))
        if told not in self._facts:
            self._facts[told] = outlook(known.slot, known.entry, self._app, FACTS).facts
        return self._facts[told]

    def _definition(self, known: Known) -> Mapping[str, Any]:
        if known.origin is Origin.STORED or known.entry is None:
            return known.document
        entry, document = self._documents.get(known.name, (None, {}))
        if entry is not known.entry:
            try:
                document = data_of(documents.written(known.name, known.entry).encode())
            except EntryError:
                document = {}  # it has what only code can have
            self._documents[known.name] = known.entry, document
        return document


def state_of(known: Known, look: Look) -> State:
    """Return what an entry does."""
    if known.slot is None:
        return State.BAD
    if pause_of(look):
        return State.PAUSED
    if not known.slot.policy.enabled:
        return State.DISABLED
    return State.FINISHED if is_finished(known.slot, look) else State.ACTIVE


def pause_of(look: Look) -> Pause | None:
    """Return what holds an entry back: not a pause that is over, which a node ends in a while."""
    return None if look.pause is None or look.pause.is_over(look.now) else look.pause


def is_finished(slot: Slot, look: Look) -> bool:
    """Whether an entry has run as often as it may, or has no tick any more."""
    limit, record = slot.policy.max_runs, look.record
    if limit is not None and record and record.runs >= limit:
        return True
    if isinstance(slot.timetable, Opaque):
        return False
    return next_after(slot, record.mark if record else look.now) is None


def upcoming_of(known: Known, look: Look) -> Micros | None:
    """Return the next tick of an entry that is not to be skipped, if that can be told."""
    slot = known.slot
    if slot is None or isinstance(slot.timetable, Opaque):
        return None
    mark = look.record.mark if look.record else 0
    at = next_after(slot, max(look.now, mark))
    while at is not None and at in look.unwanted:
        at = next_after(slot, at)
    return at


def next_after(slot: Slot, after: Micros) -> Micros | None:
    """Return the next instant of a timetable that knows it, ``None`` if there is none."""
    return cast("Timetable", slot.timetable).next_after(after)


def _paused(pause: Pause) -> Paused:
    since = moment(pause.since) if pause.since else None
    return Paused(pause.note, pause.who, since, _moment(pause.until))


def _moment(at: Micros | None) -> Any:
    return None if at is None else moment(at)
