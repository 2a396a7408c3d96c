"""What all commands share: examples in the help, errors as one line, exit codes; it does no deed.

The exit codes are the same everywhere: 0 it was done; 1 something is wrong, or nothing was done; 2
it was asked for in a wrong way, or for an entry that does not exist. ``doctor``, ``explain``,
``verify`` and ``top`` have codes of their own, as they say in their help.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._said import as_typed, check_texts, warnings_as_typed
from celery_redlock_beat.cli._streams import end_unwritten, is_terminal
from celery_redlock_beat.control import Control, as_dict
from celery_redlock_beat.errors import (
    EntryError,
    LedgerRecovering,
    NoSuchEntry,
    RedlockBeatError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from celery import Celery

EXITS = {
    0: "it was done",
    1: "something is wrong, or nothing was done",
    2: "it was asked for in a wrong way, or there is no such entry",
}
RECOVERING = (
    "the server may have lost data, and nodes must first tell it what they remember: nothing was "
    "changed. Try again in some seconds; start a node if none runs"
)


class WrongUsage(click.ClickException):
    """What was typed cannot be done; said in one line, without the usage of the command."""

    exit_code = 2


class RedlockCommand(click.Command):
    """A command with examples in its help, whose foreseeable errors are told in one line.

    ``examples`` are what follows ``celery -A proj redlock``; one that begins with ``celery`` is
    whole. ``exits`` says what its exit codes mean, if it is something else than everywhere.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        exits: dict[int, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples
        self.exits = {**EXITS, **(exits or {})}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what an operator can mend ends it with a sentence and an exit code."""
        with plain_errors(), warnings_as_typed():
            check_texts(ctx.params)
            return super().invoke(ctx)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and the exit codes."""
        if self.examples:
            with formatter.section("Examples"):
                for each in self.examples:
                    whole = each if each.startswith("celery") else f"celery -A proj redlock {each}"
                    formatter.write(f"{'':>{formatter.current_indent}}{whole}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in self.exits.items()])


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the package's errors into what click prints in one line, with their exit codes."""
    try:
        yield
    except (NoSuchEntry, EntryError) as error:
        raise WrongUsage(str(error)) from None
    except LedgerRecovering:
        raise click.ClickException(RECOVERING) from None
    except RedlockBeatError as error:
        raise click.ClickException(as_typed(str(error))) from None
    except OSError as error:
        end_unwritten(error)


def app_of(ctx: click.Context) -> Celery:
    """Return the app that ``celery -A`` was given; without one, end with what to type."""
    app: Celery = ctx.obj.app
    if not (is_app_given(ctx) or app.conf.get("redlock_beat_url") or app.conf.broker_url):
        raise click.UsageError(f"there is no app: write celery -A proj redlock {ctx.info_name}")
    return app


def is_app_given(ctx: click.Context) -> bool:
    """Answer whether ``celery`` was given an app with ``-A``."""
    return ctx.find_root().params.get("app") is not None


def control_of(ctx: click.Context) -> Control:
    """Return the control of the app that ``celery -A`` was given; it is closed with the command."""
    control = Control(app_of(ctx))
    ctx.call_on_close(control.close)
    return control


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--json``."""
    text = "Print one JSON document for a program."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def note_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--note``."""
    return click.option("--note", metavar="TEXT", default="", help="Why; the history keeps it.")(
        command
    )


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--yes``."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def print_json(ctx: click.Context, document: Any) -> None:
    """Print a document of views as JSON: nothing else may be on stdout then."""
    ctx.obj.echo(json.dumps(as_dict(document), indent=2, default=list))


def say(ctx: click.Context, lines: Iterable[str]) -> None:
    """Print lines for people."""
    for line in lines:
        ctx.obj.echo(line)


def ask(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask before it is done, unless ``yes``; without a terminal, refuse, and say what to do.

    Raises:
        click.Abort: The answer was no.
        WrongUsage: Nobody can be asked.

    """
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise WrongUsage(f"{otherwise}: there is no terminal to ask on, so add --yes")
    click.confirm(question, abort=True, err=True)
