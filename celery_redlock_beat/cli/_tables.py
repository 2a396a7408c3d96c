"""Tables as columns of plain text, or of rich's on a terminal that can; it decides no content.

In a pipe there are no colours and no boxes, and nothing is folded or cut.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from celery_redlock_beat.cli._streams import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import click

STYLES = {
    "active": "green",
    "added": "green",
    "alive": "green",
    "bad": "bold red",
    "changed": "green",
    "disabled": "dim",
    "finished": "dim",
    "gone": "red",
    "in_doubt": "bold red",
    "left": "dim",
    "paused": "yellow",
    "refused": "bold red",
    "seeded": "green",
    "sent": "green",
    "skip": "yellow",
    "skipped": "yellow",
    "unreadable": "bold red",
}
"""How a cell of exactly this text looks."""
GAP = "  "
NARROW = 10
"""Columns of a terminal that a wide column keeps."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under the names of their columns, all of one length.

    ``wide`` are columns that are narrowed before others where there is no room for all.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    wide: Sequence[str] = ()


def show(ctx: click.Context, table: Table) -> None:
    """Print a table for whoever looks: a person on a terminal, or a program behind a pipe."""
    if is_terminal(sys.stdout) and find_spec("rich") is not None:
        out = console(no_color=ctx.obj.no_color)
        out.print(rich_table(table, out.width))
        return
    for line in plain_lines(table):
        ctx.obj.echo(line)


def console(*, no_color: bool) -> Any:
    """Return rich's console on stdout, which writes no escape codes without colours."""
    from rich.console import Console  # noqa: PLC0415  of the extra, which may be missing

    return Console(color_system=None if no_color else "auto", highlight=False)


def rich_table(table: Table, room: int, *, fold: bool = True) -> Any:
    """Return the table for rich to print: what does not fit into the room is folded, or cut."""
    from rich.table import Table as RichTable  # noqa: PLC0415  of the extra
    from rich.text import Text  # noqa: PLC0415

    made = RichTable(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        title=table.title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    overflow: Any = "fold" if fold else "ellipsis"
    for name, width in zip(table.columns, narrowed(table, room), strict=True):
        made.add_column(name, width=width, overflow=overflow, no_wrap=not fold)
    for row in table.rows:
        made.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return made


def plain_lines(table: Table) -> Iterator[str]:
    """Yield the table line by line, in plain text."""
    if table.title:
        yield table.title
    widths = _widths(table)
    for line in [table.columns, *table.rows]:
        padded = zip(line, widths, strict=True)
        cells = (f"{cell}{'':{most - width_of(cell)}}" for cell, most in padded)
        yield GAP.join(cells).rstrip()


def narrowed(table: Table, room: int) -> list[int]:
    """Return widths with which the table fits: the widest give way, and the wide ones first."""
    widths = _widths(table)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    first = [place for place, name in enumerate(table.columns) if name in table.wide]
    for places, least in ((first, NARROW), (range(len(widths)), 1)):
        while excess > 0 and places:
            widest = max(places, key=widths.__getitem__)
            if widths[widest] <= least:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _widths(table: Table) -> list[int]:
    columns = zip(*[table.columns, *table.rows], strict=True)
    return [max(map(width_of, column)) for column in columns]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(combining(each) > 0 for each in text)


def fact_lines(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield facts by name; one without a name goes on with the one before."""
    most = max((len(name) for name, _ in facts), default=0)
    for name, text in facts:
        yield f"  {name:<{most}}  {text}".rstrip()
