"""What becomes of another scheduler's entries, as a value; it moves none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of all entries, by name.

    ``documents`` are to be stored, and begin at their ``last_runs``; those ``in_code`` stay there,
    and begin at these. The ``left`` and the ``refused`` are not taken over, each for its reason;
    ``warnings`` tell what will be otherwise, or was lost already.
    """

    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    last_runs: dict[str, datetime] = field(default_factory=dict)
    in_code: dict[str, datetime] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, Sequence[str]] = field(default_factory=dict)
