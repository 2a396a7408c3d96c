"""How often a fault is repeated: a few times in CI, as often as the documentation says else."""

from __future__ import annotations

import os

LONG = os.environ.get("REDLOCK_CHAOS") == "long"
TWENTY = [f"entry-{number:02d}" for number in range(20)]


def times(short: int, long: int) -> int:
    """Return the number of repetitions for this run."""
    return long if LONG else short


def policies(short: int = 5) -> dict[str, str]:
    """Return entries of the policy "all": twenty in the long form."""
    return dict.fromkeys(TWENTY if LONG else TWENTY[:short], "all")
