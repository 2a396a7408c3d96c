"""No claim without its test: what the page of guarantees names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "guarantees.md"
NAMED = re.findall(r"`([a-z]+/\w+\.py)(?:::(\w+))?`", PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_each_test_that_the_page_names_is_there(file, test):
    source = (TESTS / file).read_text("utf-8")
    assert f"def {test or 'test_'}" in source


def test_each_line_about_a_fault_names_its_test():
    faults = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:6]
    rows = [row for part in faults for row in part.splitlines() if row.startswith("| ")]
    told = [row for row in rows if not row.startswith("| what happens")]
    assert len(told) > 20
    assert [row for row in told if not re.search(r"`\w+/test_\w+\.py", row)] == []
