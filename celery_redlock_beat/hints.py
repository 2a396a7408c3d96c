"""What may have been meant where a word is not known; it knows no words itself."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a sentence: the known word that is like this one, or else what to do."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise
