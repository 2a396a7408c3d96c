"""What an operator must do about records that a script will not touch; it reads nothing itself."""

from __future__ import annotations

from celery_redlock_beat.errors import LedgerDisorder


def disorder(status: str, *told: str) -> LedgerDisorder:
    """Return a script's refusal to work on records that are not ours, as an error."""
    if status == "FOREIGN":
        key, found, expected = told
        return LedgerDisorder(
            f"the key {key!r} is ours, and holds a {found} instead of a {expected}",
            "find out who writes it, then delete or rename it: nothing else of the ledger is lost",
        )
    if status == "FORMAT":
        return LedgerDisorder(
            f"the ledger is kept in format {told[0]}, which this release does not know",
            "run the release that wrote it on every node, or choose another "
            "redlock_beat_namespace, which begins with an empty ledger",
        )
    return LedgerDisorder(f"the ledger answered {status!r}, which this release does not know")
