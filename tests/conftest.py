"""What holds for every test: its needs are met or told, and tox tests the installed wheel."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.rabbitmq import find_rabbitmq
from support.requirements import has_cc, has_netns, has_postgres, require

pytest_plugins = ["support.fixtures"]

NEEDS = {
    "needs_rabbitmq": ("rabbitmq-server", find_rabbitmq),
    "needs_postgres": ("PostgreSQL", has_postgres),
    "needs_cc": ("a C compiler", has_cc),
    "needs_netns": ("network namespaces", has_netns),
}
LEFT_OUT = {"slow", "needs_rabbitmq", "needs_postgres"}  # of the tests that plain tox runs ...
# ... so they must be where others run them.
RUN_IN_FULL = {"integration", "chaos", "conformance", "model", "simulation"}


def pytest_configure(config: pytest.Config) -> None:
    found = find_spec("celery_redlock_beat")
    if "TOX_ENV_NAME" not in os.environ or found is None or found.origin is None:
        return
    if Path(found.origin).parent.parent == config.rootpath:
        raise pytest.UsageError(f"tox must test the installed wheel, and this is {found.origin}")


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    for item in items:
        folder = item.path.relative_to(config.rootpath / "tests").parts[0]
        left_out = LEFT_OUT & {marker.name for marker in item.iter_markers()}
        if left_out and folder not in RUN_IN_FULL:
            raise pytest.UsageError(f"no tox environment runs {item.nodeid}, which is {left_out}")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Undo what a worker within a test does to the root logger: others look at the log."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (name, found) in NEEDS.items():
        if item.get_closest_marker(marker):
            require(name, found())
