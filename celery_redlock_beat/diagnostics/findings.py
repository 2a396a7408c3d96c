"""What an examination finds, as values, and how it is put into words; it judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from celery_redlock_beat.ticks import SECOND, Micros, shown, to_datetime

MOST_EXAMPLES = 10
LONGEST_RAW = 80
UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


class Severity(StrEnum):
    """How bad a finding is: something is broken, something may break, or is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    ``name`` says which kind, ``subject`` which key or setting, by its full name; ``meaning`` what
    is wrong and what comes of it, ``advice`` what to do. Of ``count`` cases, ``examples`` shows the
    first ones.
    """

    severity: Severity
    name: str
    subject: str
    meaning: str
    advice: str
    examples: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, the worst first, and ``facts`` about what was looked at."""

    facts: Mapping[str, str]
    findings: Sequence[Finding]

    def count(self, severity: Severity) -> int:
        """Return how many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def sorted_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the worst first, each kind about one subject once."""
    first: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.name, finding.subject), finding)
    order = list(Severity)
    return sorted(first.values(), key=lambda finding: order.index(finding.severity))


def many(number: int, one: str, more: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else more}"


def instant(moment: Micros) -> str:
    """Return an instant as an operator reads and types it, in UTC and to the microsecond."""
    return to_datetime(moment).isoformat().replace("+00:00", "Z")


def span(duration: Micros) -> str:
    """Return a duration in its two largest units."""
    if duration < SECOND:
        return f"{max(duration, 0) / 1000:.0f} ms"
    seconds = duration // SECOND
    parts: list[tuple[int, str]] = []
    for unit, size in UNITS:
        number, seconds = divmod(seconds, size)
        if number or parts:
            parts.append((number, unit))
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number)


def name_of(raw: bytes) -> str:
    """Return a name that stands in a key, on one line, and no longer than a line should be."""
    return shown(raw.decode("utf-8", "backslashreplace"))


def raw_text(raw: bytes) -> str:
    """Return a value that cannot be read, quoted, and no longer than a line should be."""
    text = repr(raw[: LONGEST_RAW + 1])[1:]
    return f"{text[: LONGEST_RAW + 1]}…" if len(raw) > LONGEST_RAW else text
