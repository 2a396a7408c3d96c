"""Which entries are meant, the same for every command that takes several; it looks for none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import WrongUsage, ask
from celery_redlock_beat.cli._completion import complete_names
from celery_redlock_beat.cli._words import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.control import Control, Origin


@dataclass(frozen=True, slots=True)
class Selection:
    """Names or patterns, of which one must match; a tag and a task that must match, too."""

    names: tuple[str, ...]
    tag: str | None
    task: str | None
    all: bool

    @property
    def said(self) -> dict[str, Any]:
        """What was said beside the names, as ``Control`` takes it where none means all."""
        return {"tag": self.tag, "task": self.task}

    @property
    def asked(self) -> dict[str, Any]:
        """The same for deeds, where none means nothing.

        Raises:
            WrongUsage: Nothing was said at all.

        """
        if not (self.names or self.tag or self.task or self.all):
            raise WrongUsage("which entries? Give a NAME, a pattern, --tag, --task, or --all")
        return {**self.said, "all": self.all}

    def confirm(
        self, control: Control, deed: str, *, yes: bool, origin: Origin | None = None
    ) -> None:
        """Show which entries are meant, of those that it can be done with, and ask.

        Raises:
            click.Abort: The answer was no.
            NoSuchEntry: There is none.

        """
        if self.asked and not yes:
            meant = control.entries(*self.names, **self.said, origin=origin)
            if meant:  # or else it is told why it cannot be done
                names = listed([view.name for view in meant])
                ask(f"{deed} {names}?", yes=yes, otherwise="nothing was done")


def name_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument that names one entry."""
    return click.argument("name", shell_complete=complete_names)(command)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add names, ``--tag``, ``--task`` and ``--all``, and give the command one ``selection``."""

    @wraps(command)
    def gathered(
        *args: Any, names: Sequence[str], tag: str | None, task: str | None, **given: Any
    ) -> Any:
        chosen = Selection(tuple(names), tag, task, given.pop("all"))
        return command(*args, selection=chosen, **given)

    options = [
        click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_names),
        click.option("--tag", help="Those with this tag."),
        click.option("--task", help="Those of this task, or of a pattern as 'proj.*'."),
        click.option("--all", is_flag=True, help="All of them."),
    ]
    decorated: Any = gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
