"""Find out what is wrong with a ledger and its server, and mend marks; it prints nothing.

:func:`examine` only reads: the store reads, pure functions in here judge what was read.
"""

from __future__ import annotations

from celery_redlock_beat.diagnostics.examination import examine
from celery_redlock_beat.diagnostics.findings import Finding, Report, Severity, many

__all__ = ["Finding", "Report", "Severity", "examine", "many"]
