"""The package's accounting, by the names that tests use; nothing is judged in here."""

from __future__ import annotations

from celery_redlock_beat.verify.account import Account, account_for, untold_gaps
from celery_redlock_beat.verify.books import Books
from celery_redlock_beat.verify.verdict import FAULTS

__all__ = ["FAULTS", "Account", "Books", "account_for", "untold_gaps"]
