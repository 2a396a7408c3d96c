"""At the end of a run, one line per trial: what was due, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest

from support import trial

COLUMNS = ("due", "sent", "doubled", "early", "lost")
PROPERTY = "trials"


@pytest.fixture(autouse=True)
def _trials(record_property) -> Iterator[None]:
    trial.concluded.clear()
    yield
    for account in trial.concluded:
        counts = [str(account.count(name)) for name in COLUMNS]
        latest = f"{account.latest / trial.SECOND:.1f}"
        record_property(PROPERTY, " ".join([*counts, str(account.in_doubt), latest]))


def pytest_terminal_summary(terminalreporter) -> None:
    rows = [
        (report.nodeid.partition("::")[2], told.split())
        for report in chain.from_iterable(terminalreporter.stats.values())
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
        for name, told in report.user_properties
        if name == PROPERTY
    ]
    if not rows:
        return
    heads = (*COLUMNS, "in doubt", "latest")
    terminalreporter.section("what became of the due ticks")
    terminalreporter.write_line("".join(f"{head:>10}" for head in heads) + "  test")
    for test, counts in rows:
        terminalreporter.write_line("".join(f"{count:>10}" for count in counts) + f"  {test}")
