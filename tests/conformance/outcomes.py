"""A pytest plugin for Celery's own tests: write down what became of each, for the test outside."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

VARIABLE = "OUTCOMES_FILE"
outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report):
    """Keep the failure of a test, of any of its phases; ``""`` if there is none."""
    failure = report.longreprtext if not report.passed else ""
    outcomes[report.nodeid] = outcomes.get(report.nodeid) or failure


def pytest_sessionfinish():
    Path(os.environ[VARIABLE]).write_text(json.dumps(outcomes))


@pytest.fixture
def isolated_cli_runner(tmp_path, monkeypatch):
    """Stand in for the plugin pytest-click, which Celery's tests use this much of."""
    monkeypatch.chdir(tmp_path)
    return CliRunner()
