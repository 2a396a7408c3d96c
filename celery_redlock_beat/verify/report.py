"""What a run has shown: rows, numbers, and a verdict; it prints nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, to_datetime
from celery_redlock_beat.verify.rig import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from celery_redlock_beat.verify.account import Account
    from celery_redlock_beat.verify.arrivals import Arrival
    from celery_redlock_beat.verify.verdict import Verdict

COLUMNS = ("due", "sent once", "doubled", "early", "late", "lost", "skipped", "in doubt")
WRONG = ("doubled", "early", "lost")
"""The columns that must be 0; so must everything that is unexplained."""
RESENT = "resent"
MOST_NAMED = 5


@dataclass(frozen=True)
class Report:
    """The account of a run, and what was done to it; ``troubles`` is what nodes did wrong."""

    account: Account
    arrivals: Sequence[Arrival] = ()
    faults: Counter[str] = field(default_factory=Counter)
    troubles: tuple[str, ...] = ()

    @property
    def rows(self) -> dict[str, dict[str, int]]:
        """The numbers of each entry, by column."""
        return {entry: _row(verdict) for entry, verdict in self.account.verdicts.items()}

    @property
    def totals(self) -> dict[str, int]:
        """The numbers of all entries, by column."""
        return {name: sum(row[name] for row in self.rows.values()) for name in (*COLUMNS, RESENT)}

    @property
    def unexplained(self) -> dict[str, int]:
        """What fits neither the timetables nor the ledger's counts, each with its number."""
        account = self.account
        known = account.verdicts.keys()
        sent = [one for one in self.arrivals if one.task_id != END]
        stray = sum(one.tick is None or one.tick.entry not in known for one in sent)
        found = {
            "messages of no entry of this run": stray,
            "messages for instants that were not due": account.count("off_grid"),
            "ticks with another task id than their own": account.count("other_id"),
            "ticks granted before their instant": account.premature,
            "ticks still open at the end": account.count("open"),
            "ticks in no count of the ledger": account.unaccounted,
            "ticks counted that were not due": -account.unaccounted,
            "ticks that came and were not counted as sent": account.uncounted,
            "ticks counted as sent that did not come": -account.uncounted,
        }
        return {what: number for what, number in found.items() if number > 0}

    @property
    def good(self) -> bool:
        """Whether nothing was doubled, early, lost or unexplained, and no node did wrong."""
        totals = self.totals
        wrong = any(totals[name] for name in WRONG)
        return not (wrong or self.unexplained or self.troubles or not totals["due"])

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        totals = self.totals
        if self.good:
            rest = [f"{totals[name]} {name}" for name in ("skipped", "in doubt") if totals[name]]
            but = f", but for {' and '.join(rest)} as the ledger says" if rest else ""
            if totals[RESENT]:
                but += f", {totals[RESENT]} again under the same id"
            hit = sum(self.faults.values())
            despite = f", through {hit} faults" if hit else ""
            return f"{totals['due']} ticks were due: each was sent once{but}{despite}."
        wrong = [f"{totals[name]} {name}" for name in WRONG if totals[name]]
        wrong += [f"{number} {what}" for what, number in self.unexplained.items()]
        wrong += [f"problems of nodes: {len(self.troubles)}"] if self.troubles else []
        return f"{totals['due']} ticks were due: {', '.join(wrong) or 'that is no run'}."

    @property
    def named(self) -> list[str]:
        """The ticks that are wrong, one line each, the first of each kind and entry."""
        kinds = {"doubled": "doubled", "early": "early", "lost": "lost"}
        kinds |= {"off_grid": "not due", "other_id": "another id"}
        return [
            line
            for entry, verdict in self.account.verdicts.items()
            for name, word in kinds.items()
            for line in _lines(entry, word, getattr(verdict, name))
        ]

    @property
    def latest(self) -> float:
        """The greatest lateness, in seconds."""
        return self.account.latest / SECOND

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for machines."""
        return {
            "verdict": "good" if self.good else "bad",
            "sentence": self.sentence,
            "entries": self.rows,
            "totals": self.totals,
            "unexplained": self.unexplained,
            "ticks": self.named,
            "troubles": list(self.troubles),
            "faults": dict(self.faults),
            "latest_seconds": self.latest,
            "ledger": dict(self.account.totals),
        }


def _row(verdict: Verdict) -> dict[str, int]:
    counts = {name: len(getattr(verdict, name.replace(" ", "_"))) for name in COLUMNS[2:]}
    counts[RESENT] = len(verdict.resent)
    once = set(verdict.sent) - {*verdict.doubled, *verdict.resent, *verdict.off_grid}
    return {"due": len(verdict.due), "sent once": len(once)} | counts


def _lines(entry: str, word: str, instants: Iterable[int]) -> list[str]:
    told = [f"{word}: {entry} @ {to_datetime(at).isoformat()}" for at in instants]
    more = len(told) - MOST_NAMED
    return told[:MOST_NAMED] + ([f"{word}: {entry}, {more} more"] if more > 0 else [])
