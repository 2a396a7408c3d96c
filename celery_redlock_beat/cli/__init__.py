"""``celery redlock …``: one module per command, loaded when it is asked for; it decides nothing.

Celery finds the group by the entry point ``celery.commands``. Each module in here holds one command
of its own name (``set_mark.py`` holds ``set_mark``, typed ``set-mark``, and ``list_.py`` holds
``list_``, typed ``list``, which is a word of Python's); others begin with ``_``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import click

__all__ = ["redlock"]


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, or are listed by ``--help``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, sorted, without importing one."""
        return sorted(_modules().keys() | super().list_commands(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name; without one, return nothing and let click say so."""
        if cmd_name in self.commands or cmd_name not in self.list_commands(ctx):
            return super().get_command(ctx, cmd_name)
        name = _modules()[cmd_name]
        found = getattr(import_module(f"{__name__}.{name}"), name, None)
        return found if isinstance(found, click.Command) else None


def _modules() -> dict[str, str]:
    """Return the modules of commands, by what is typed for each."""
    names = (each.name for each in iter_modules(__path__) if each.name[0] != "_")
    return {name.rstrip("_").replace("_", "-"): name for name in names}


@click.group(cls=LazyGroup)
def redlock() -> None:
    """Look after periodic tasks that are sent once by many nodes."""
