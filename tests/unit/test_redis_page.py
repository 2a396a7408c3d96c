"""The page on Redis tells of every key that the ledger has."""

from __future__ import annotations

import re
from pathlib import Path

from celery_redlock_beat.ledger.redis_scripts import ledger_keys

PAGE = Path(__file__).parents[2] / "docs" / "redis.md"


def test_each_key_of_the_ledger_is_told_and_no_other():
    section = PAGE.read_text("utf-8").partition("## What is kept there\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(ledger_keys("shop"))
