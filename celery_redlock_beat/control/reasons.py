"""Why ticks are not sent, in words; it knows no entry."""

from __future__ import annotations

from celery_redlock_beat.ticks import Reason

OUTCOMES = ("sent", "skipped", "in_doubt", "unreadable")
"""What can become of a tick, in one word; all else in the history is what operators did."""
ENDINGS = {
    "resumed": Reason.PAUSED,
    "removed": Reason.REMOVED,
    "changed": Reason.BEFORE_REGISTRATION,
}
"""Deeds that end what is due, and why that is not sent."""
REASONS = {
    Reason.SUPERSEDED: "a newer one was due by then, and catch_up sends only the newest",
    Reason.GRACE: "it was later than its misfire_grace_time allows",
    Reason.WINDOW: "it was later than its catch_up and catch_up_window allow",
    Reason.PAUSED: "the entry was paused",
    Reason.REMOVED: "the entry was removed",
    Reason.OPERATOR: "an operator wanted it to be skipped",
    Reason.ERROR: "its message cannot be made or sent",
    Reason.ATTEMPTS: "it was tried too often without success: see the log of its nodes",
    Reason.UNKNOWN_ENTRY: "no node had the entry any more",
    Reason.NOT_SENT: "no message came of it: an unroutable queue, or its own apply_async",
    Reason.END: "it lies behind the 'end' of the entry",
    Reason.BEFORE_REGISTRATION: "it was due before the entry, or its present schedule, was known",
}


def reason_in_words(reason: str) -> str:
    """Return why a tick was not sent; a reason of a later release as it is."""
    return REASONS.get(Reason(reason), reason) if reason in set(Reason) else reason
