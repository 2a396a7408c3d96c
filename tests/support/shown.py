"""What pages show of commands and logs, without what differs each time; it runs nothing."""

from __future__ import annotations

import re

DIFFERENT_EACH_TIME = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\b": "MOMENT",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z": "INSTANT",
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "ID",
    r"[\w.-]+:\d+:[0-9a-f]{16}": "NODE",
    r"-?\d+ (d|h|min|s|ms)( \d+ (h|min|s|ms))?\b": "DURATION",
    r"\w+@[\w.-]+": "USER",
}


def steady(text: str) -> str:
    """Return a text without what differs each time, and without how it was folded."""
    for pattern, word in DIFFERENT_EACH_TIME.items():
        text = re.sub(pattern, word, text)
    return " ".join(text.split())
