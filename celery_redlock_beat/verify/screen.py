"""The report as text, or as a table of rich's where that is installed; it runs nothing."""

from __future__ import annotations

from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

from celery_redlock_beat.verify.report import COLUMNS, RESENT, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.verify.report import Report

TITLE = "What became of the due ticks"
TROUBLES_SHOWN = 5


def show(report: Report, out: IO[str]) -> None:
    """Print the table, what is wrong, and the verdict."""
    if find_spec("rich") is None:
        out.write("\n".join(["", *plain_table(report), "", *remarks(report), mark(report), ""]))
        return
    from rich.console import Console  # noqa: PLC0415  of the extra, which may be missing
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=out, highlight=False)
    console.print()
    console.print(rich_table(report))
    console.print()
    for line in remarks(report):
        console.print(Text(line), soft_wrap=True)
    style = "bold green" if report.good else "bold red"
    console.print(Text(mark(report), style=style), soft_wrap=True)


def plain_table(report: Report) -> Iterator[str]:
    """Yield the table line by line, in plain text."""
    numbers = report.rows | {"all": report.totals}
    width = max(map(len, numbers))
    yield TITLE
    yield "  ".join(["entry".ljust(width), *COLUMNS])
    for entry, row in numbers.items():
        yield "  ".join(
            [entry.ljust(width), *(str(row[name]).rjust(len(name)) for name in COLUMNS)]
        )


def rich_table(report: Report) -> Any:
    """Return the table for rich to print."""
    from rich import box  # noqa: PLC0415  of the extra
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=TITLE,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,  # so that it fits into 80 columns
        show_footer=True,
    )
    table.add_column("entry", footer="all", no_wrap=True)
    for name in COLUMNS:
        table.add_column(name, footer=_cell(name, report.totals[name]), justify="right")
    for entry, row in report.rows.items():
        table.add_row(Text(entry), *(_cell(name, row[name]) for name in COLUMNS))
    return table


def remarks(report: Report) -> Iterator[str]:
    """Yield what else there is to say, a line each."""
    if report.faults:
        told = ", ".join(f"{kind} {count}" for kind, count in sorted(report.faults.items()))
        yield f"Faults: {told}."
    if resent := report.totals[RESENT]:
        yield f"{resent} were sent again under the same id, which a broker apart makes possible."
    yield f"The latest message came {report.latest:.2f} s after its instant."
    yield from report.named
    yield from (f"{number} {what}" for what, number in report.unexplained.items())
    yield from report.troubles[:TROUBLES_SHOWN]


def mark(report: Report) -> str:
    """Return the line of the verdict."""
    return f"{'✔' if report.good else '✘'} {report.sentence}"


def _cell(name: str, number: int) -> Any:
    from rich.text import Text  # noqa: PLC0415  of the extra

    return Text(str(number), style="bold red" if name in WRONG and number else "")
