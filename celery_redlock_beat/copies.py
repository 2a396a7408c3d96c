"""Copies of objects whose classes are not ours; no constructor runs, and the original stays."""

from __future__ import annotations

from typing import TypeVar

Given = TypeVar("Given")


def shallow_copy(given: Given, **changes: object) -> Given:
    """Return an object of the same class with the same attributes, but for ``changes``.

    Not ``copy.copy()``: Celery's ``__reduce__`` rebuilds an entry without its app, and leaves out
    what a subclass has added.

    Raises:
        TypeError: It keeps its attributes elsewhere: in slots, or in an extension module.

    """
    twin = object.__new__(type(given))
    vars(twin).update(vars(given), **changes)
    return twin
