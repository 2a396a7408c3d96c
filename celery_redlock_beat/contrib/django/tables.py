"""The models, looked up when they are first asked for, and what of them is asked; it reads no row.

Celery imports a scheduler's class before Django is set up, and models cannot be imported then.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from django.db import transaction


class Lazily:
    """An attribute of a class that is imported when it is asked for, as ``PeriodicTask`` is.

    A subclass replaces it by assigning a model of its own.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Import it; Django must be set up by then."""
        return getattr(import_module(self._module), self._name)


def rows_in(model: Any) -> Any:
    """Return the manager of all rows of a model."""
    return model._default_manager  # noqa: SLF001 - Django documents it under this name


def about(model: Any) -> Any:
    """Return what Django knows of a model, or of the model of a row: its columns above all."""
    return model._meta  # noqa: SLF001 - Django documents it under this name


def in_one_line(error: Exception) -> str:
    """Return what an error says, without the piece of the query that PostgreSQL shows with it."""
    told = str(error).partition("\nLINE ")[0]
    return " ".join(told.split()) or repr(error)


def end_transaction(alias: str) -> None:
    """End the transaction of a connection without autocommit.

    What was written would otherwise be lost, and old rows shown for ever: so does MySQL at its
    default isolation, REPEATABLE READ.
    """
    if not transaction.get_autocommit(using=alias):
        with suppress(transaction.TransactionManagementError):  # in a block of the caller's own
            transaction.commit(using=alias)
