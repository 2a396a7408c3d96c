"""Why a tick is what it is, from the records and the timetable; it asks nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.control.describing import next_after, pause_of
from celery_redlock_beat.control.reasons import ENDINGS, reason_in_words
from celery_redlock_beat.diagnostics.findings import instant, span
from celery_redlock_beat.observers.facts import LATE
from celery_redlock_beat.ticks import Micros, Reason
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.control.known import Known
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger.steering import Look, OpenTick
    from celery_redlock_beat.store.history import HistoryRow


@dataclass(frozen=True, slots=True)
class Because:
    """One word, the sentence to it, and the record that it was read from."""

    answer: str
    text: str
    row: HistoryRow | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked, and all there is to say to it.

    ``known`` is ``None`` for an entry that is gone, and ``newest`` the newest record of it then.
    ``begins`` is the instant of the oldest record; ``nodes`` how many live.
    """

    at: Micros
    look: Look
    known: Known | None
    row: HistoryRow | None
    begins: Micros | None
    nodes: int
    records: bool = True
    newest: HistoryRow | None = None

    @property
    def slot(self) -> Slot | None:
        """The entry as nodes have it, if they can."""
        return self.known.slot if self.known else None

    @property
    def is_tick(self) -> bool | None:
        """Whether the present timetable has this instant; ``None`` where nobody can tell."""
        if self.slot is None or isinstance(self.slot.timetable, Opaque):
            return None
        return next_after(self.slot, self.at - 1) == self.at


def because(case: Case) -> Because:
    """Return why a tick is what it is."""
    return next(found for judge in JUDGES if (found := judge(case)))


def _is_open(case: Case) -> Because | None:
    for opened in case.look.open:
        if opened.tick.at == case.at:
            return Because("open", _open(opened, case.look.now))
    return None


def _has_outcome(case: Case) -> Because | None:
    row, last = case.row, case.look.last
    if row and row.tick == case.at and row.outcome not in ENDINGS:
        return _of_outcome(row.outcome, row.node, row.late, row.attempt, row.detail, row)
    if not row and last and last.tick == case.at:
        return _of_outcome(last.outcome, last.node, last.lateness, last.attempt, "", None)
    return None


def _is_none(case: Case) -> Because | None:
    if case.is_tick is not False:
        return None
    following = next_after(case.slot, case.at) if case.slot else None
    later = f"; the next one is {instant(following)}" if following is not None else ""
    return Because("not_a_tick", f"the entry has no tick at that instant{later}")


def _was_passed_over(case: Case) -> Because | None:
    return _passed_over(case, case.row) if case.row else None


def _is_being_passed_over(case: Case) -> Because | None:
    for opened in case.look.open:
        if opened.previous < case.at < opened.tick.at:
            later = instant(opened.tick.at)
            return Because("owed", f"it is skipped with the one at {later}, which is being sent")
    return None


def _of_outcome(
    outcome: str, node: str, late: Micros, attempt: int, detail: str, row: HistoryRow | None
) -> Because:
    kind, _, reason = outcome.partition(":")
    more = f" ({detail})" if detail else ""
    again = f", at attempt {attempt}: an earlier one did not end" if attempt > 1 else ""
    if kind == "sent" and late > LATE:
        return Because("late", f"it was sent {span(late)} late by node {node}{again}{more}", row)
    if kind == "sent":
        return Because("sent", f"it was sent in time by node {node}{again}{more}", row)
    if kind == "in_doubt":
        lost = "the server lost data, so that it may have been sent or not; it is not sent again"
        return Because("in_doubt", f"{lost}{more}", row)
    if kind == "unreadable":
        what = "the ledger's record of the entry cannot be read: see celery redlock doctor"
        return Because("skipped", f"{what}{more}", row)
    return Because("skipped", f"it was not sent: {reason_in_words(reason)}{more}", row)


def _passed_over(case: Case, row: HistoryRow) -> Because:
    if row.outcome in ENDINGS:
        reason = str(ENDINGS[row.outcome])
        with_what = f"it ended when the entry was {row.outcome} by {row.node}"
    else:
        others = [each for each in row.passed if each != Reason.BEFORE_REGISTRATION]
        reason = others[0] if others else str(Reason.BEFORE_REGISTRATION)
        with_what = f"it was passed over with the one at {instant(row.tick)}"
    record = case.look.record
    if Reason.BEFORE_REGISTRATION in row.passed and record and case.at < record.since:
        reason = str(Reason.BEFORE_REGISTRATION) if row.outcome not in ENDINGS else reason
    return Because("skipped", f"it was not sent: {reason_in_words(reason)}; {with_what}", row)


def _is_not_recorded(case: Case) -> Because | None:
    record = case.look.record
    if record and case.at <= record.mark:
        return Because("not_recorded", _unrecorded(case, record.since))
    if case.known is None:
        return Because(*_gone(case))
    return None


def _is_held_back(case: Case) -> Because | None:
    look = case.look
    if case.at in look.unwanted:
        return Because("to_be_skipped", "an operator wants it to be skipped when it is due")
    if look.pause and (look.pause.until is None or case.at <= look.pause.until):
        who = f" by {look.pause.who}" if look.pause.who else ""
        note = f" ({look.pause.note})" if look.pause.note else ""
        if pause_of(look) is None:  # its time is over, and a node ends it with the next tick
            held = f"it was due while the entry was paused{who}{note}"
            return Because("paused", f"{held}: it is counted as skipped with the next tick")
        return Because("paused", f"the entry is paused{who}{note}: resume it")
    return None


def _is_never_due(case: Case) -> Because | None:
    slot, record = case.slot, case.look.record
    limit = slot.policy.max_runs if slot else None
    if slot is None:
        problem = case.known.problem if case.known else ""
        return Because("not_a_tick", f"no node can send it: {problem}")
    if not slot.policy.enabled:
        return Because("not_a_tick", "the entry is disabled, so that nothing of it is due")
    if case.is_tick is None:
        return Because("not_a_tick", "only its schedule knows when it is due; nothing is recorded")
    if limit is not None and record and record.runs >= limit:
        return Because("not_a_tick", f"the entry has run {record.runs} times, as often as it may")
    return None


def _is_not_claimed(case: Case) -> Because:
    now, due = case.look.now, case.slot.due_at(case.at) if case.slot else case.at
    if due > now:
        jitter = f", by its jitter at {instant(due)}" if due != case.at else ""
        return Because("ahead", f"it is due in {span(due - now)}{jitter}")
    if not case.nodes:
        return Because("owed", f"it is due since {span(now - due)}, and no node lives: start one")
    if case.look.record is None:
        return Because("owed", "no node has made the entry known to the ledger: is it deployed?")
    return Because("owed", f"it is due since {span(now - due)}, and no node has asked for it yet")


def _unrecorded(case: Case, since: Micros) -> str:
    if case.at < since:
        return f"it was due before the entry, or its present schedule, was known: {instant(since)}"
    if not case.records:
        return "nothing is recorded: the history is off (redlock_beat_history = 0)"
    if case.begins is None:
        return "nothing is recorded yet"
    if case.at < case.begins:
        return f"what became of it is no longer recorded: the history begins {instant(case.begins)}"
    return "nothing is recorded of it"


def _gone(case: Case) -> tuple[str, str, HistoryRow | None]:
    newest = case.newest
    if newest is None:
        return "not_recorded", f"there is no such entry, and {_unrecorded(case, 0)}", None
    gone = f"the entry is gone; its newest record: {newest.outcome} {instant(newest.at)}"
    if newest.outcome == "removed":
        gone = f"the entry was removed by {newest.node} {instant(newest.at)}"
    if case.at > newest.at and newest.outcome == "removed":
        return "not_a_tick", f"{gone}, and nothing of it is due since", newest
    return "not_recorded", f"nothing is recorded of a tick at that instant; {gone}", newest


def _open(opened: OpenTick, now: Micros) -> str:
    if opened.owner and opened.deadline > now:
        return f"node {opened.owner} is sending it, at attempt {opened.attempt}"
    if opened.deadline > now:
        return f"it could not be sent, and is tried again in {span(opened.deadline - now)}"
    return f"it was tried {opened.attempt} times without an outcome: the next node takes it over"


JUDGES: tuple[Callable[[Case], Because | None], ...] = (
    _is_open,
    _has_outcome,
    _is_none,
    _was_passed_over,
    _is_being_passed_over,
    _is_not_recorded,
    _is_held_back,
    _is_never_due,
    _is_not_claimed,
)
"""The first one that knows says it; the last one always does."""
