"""``celery redlock top``: show how it stands, again and again; it finds nothing out itself."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._keys import keys
from celery_redlock_beat.cli._picture import ROWS, Picture, head_of, look, tables_of
from celery_redlock_beat.cli._streams import is_screen
from celery_redlock_beat.cli._tables import console, plain_lines, rich_table, show
from celery_redlock_beat.cli._times import finite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

QUIT = "qQ\x04"
MARGIN = 1
"""The last line of a terminal stays empty, so that nothing scrolls."""


@click.command(
    cls=RedlockCommand,
    examples=("top", "top --once", "top --interval 5"),
    exits={
        0: "it was ended by q or Ctrl-C, or shown once",
        1: "shown once, and the ledger could not be asked",
        143: "it was ended by SIGTERM",
    },
)
@click.option("--once", is_flag=True, help="Show it once, as it is in a pipe.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0.2, 3600),
    callback=finite,
    default=1.0,
    show_default=True,
    help="How often it looks.",
)
@json_option
@click.pass_context
def top(ctx: click.Context, *, once: bool, interval: float, as_json: bool) -> None:
    """Watch what is due next, what was just sent, who is late, the nodes, and what is paused.

    q or Ctrl-C ends it.
    """
    control = control_of(ctx)
    if as_json or once or not is_screen():
        _show_once(ctx, look(control, ROWS), as_json=as_json)
        return
    screen = _rich_screen if find_spec("rich") else _plain_screen
    with suppress(KeyboardInterrupt), _ended_by_term(), keys() as wait, screen(ctx) as draw:
        key = ""
        while not key or key not in QUIT:
            began = monotonic()
            draw(look(control, shutil.get_terminal_size().lines))
            key = wait(max(interval, monotonic() - began))  # a large schedule takes its time


def _show_once(ctx: click.Context, picture: Picture, *, as_json: bool) -> None:
    if as_json:
        print_json(ctx, picture)
    else:
        say(ctx, head_of(picture))
        for table in tables_of(picture):
            ctx.obj.echo()
            show(ctx, table)
    ctx.exit(1 if picture.health.now is None or picture.problems else 0)


@contextmanager
def _ended_by_term() -> Iterator[None]:
    """Let SIGTERM end it as other ways do, so that the terminal is as it was."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


@contextmanager
def _rich_screen(ctx: click.Context) -> Iterator[Callable[[Picture], None]]:
    """Give what draws on the other screen of the terminal, which is as it was afterwards."""
    from rich.console import Group  # noqa: PLC0415  of the extra, which may be missing
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    out = console(no_color=ctx.obj.no_color)
    with Live(console=out, screen=True, auto_refresh=False) as live:

        def draw(picture: Picture) -> None:
            head = [Text(line, no_wrap=True, overflow="ellipsis") for line in head_of(picture)]
            parts = list(head)
            for table in tables_of(picture, out.height - len(head) - MARGIN):
                parts += [Text(), rich_table(table, out.width, fold=False)]
            live.update(Group(*parts), refresh=True)

        yield draw


@contextmanager
def _plain_screen(_ctx: click.Context) -> Iterator[Callable[[Picture], None]]:
    """Give what draws over what is there, without rich."""

    def draw(picture: Picture) -> None:
        size = shutil.get_terminal_size()
        lines = list(head_of(picture))
        for table in tables_of(picture, size.lines - len(lines) - MARGIN):
            lines += ["", *plain_lines(table)]
        click.clear()
        click.echo("\n".join(line[: size.columns] for line in lines[: size.lines - MARGIN]))

    yield draw
