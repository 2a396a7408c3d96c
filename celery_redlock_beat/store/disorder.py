"""What an operator must do about records that a script will not touch; it reads nothing itself."""

from __future__ import annotations

from celery_redlock_beat.errors import LedgerUnavailable


def disorder(status: str, *told: str) -> LedgerUnavailable:
    """Return a script's refusal to work on records that are not ours, as an error."""
    if status == "FOREIGN":
        key, found, expected = told
        return LedgerUnavailable(
            f"the key {key!r} is ours, and holds a {found} instead of a {expected}",
            "find out who writes it, then delete or rename it: nothing else of the ledger is lost",
        )
    if status == "FORMAT":
        return LedgerUnavailable(
            f"the ledger is kept in format {told[0]}, which this release does not know",
            "run the release that wrote it on every node, or choose another "
            "redlock_beat_namespace, which begins with an empty ledger",
        )
    return LedgerUnavailable(f"the ledger answered {status!r}, which this release does not know")
