"""Tell at the end of a test run how many seeds there were, and how fast."""

from __future__ import annotations

import pytest

from simulation.campaign import Campaign

ALL = pytest.StashKey[Campaign]()


@pytest.fixture
def campaign(request):
    """Return a campaign that is summed up with the others of this test run."""
    here = Campaign()
    yield here
    request.config.stash.setdefault(ALL, Campaign()).add(here)


def pytest_terminal_summary(terminalreporter, config):
    campaign = config.stash.get(ALL, None)
    if campaign:
        terminalreporter.section("simulation")
        for line in campaign.told():
            terminalreporter.write_line(line)
