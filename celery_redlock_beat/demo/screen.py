"""The demo on a terminal, or in a log: who sent which tick, and the verdict; it starts nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from celery_redlock_beat.demo.verdict import PERIODS, due_ticks
from celery_redlock_beat.ticks import SECOND, Micros, to_datetime

if TYPE_CHECKING:
    from celery_redlock_beat.demo.cast import Celery
    from celery_redlock_beat.demo.play import Scene
    from celery_redlock_beat.demo.verdict import Tally

CHIPS = {
    "every second": ("1s", "bold cyan"),
    "every 2 seconds": ("2s", "bold yellow"),
    "cron string": ("*/3", "bold magenta"),
    "cron in Berlin": ("*/5", "bold green"),
}
"""How each entry is shown; each has its own place in a cell, so that columns can be read down."""
MOST_ROWS = 14
BAR = 24


class TerminalScreen:
    """Draw a live table on a terminal; elsewhere only print the steps and the final tables."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def say(self, text: str) -> None:
        """Tell one step, in a line above the live table."""
        self.console.print(Text(text, style="dim"), soft_wrap=not self.console.is_terminal)

    def draw(self, scene: Scene) -> None:
        """Show the last ticks."""
        if self.console.is_terminal and scene.after:
            rows = max(3, min(MOST_ROWS, self.console.height - 12))
            self._live.update(
                Group(who_sent_what(scene, rows), legend(), progress(scene)), refresh=True
            )

    def conclude(self, scene: Scene, tallies: list[Tally], verdict: str, *, good: bool) -> None:
        """Print all ticks, what became of them, and the verdict."""
        self._live.stop()
        self.console.print()
        self.console.print(who_sent_what(scene), legend(), "", sep="\n")
        self.console.print(what_became_of_them(tallies))
        mark, style = ("✔", "bold green") if good else ("✘", "bold red")
        self.console.print(Text(f"{mark} {verdict}", style=style), soft_wrap=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def who_sent_what(scene: Scene, rows: int | None = None) -> Table:
    """Return a table of the last ``rows`` instants, or of all: a row each, a column per node."""
    cells: dict[Micros, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for note in scene.counted:
        cells[note.tick][note.sender].add(note.entry)
    # In the end also the instants at which nothing came, though something was due.
    expected = [] if rows else due_ticks("every second", scene.after, scene.until)
    instants = sorted({*cells, *expected})[-(rows or 0) :]
    table = Table(
        title="Which node sent which tick",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("UTC", style="dim", no_wrap=True)
    for node in scene.nodes:
        table.add_column(_head(scene, node), no_wrap=True, min_width=14)
    dead = {node: _first_after(cells, node) for node in scene.nodes if node.killed_at}
    for at in instants:
        row = [_cell(node, cells[at][node.pid], at, dead.get(node)) for node in scene.nodes]
        table.add_row(f"{to_datetime(at):%H:%M:%S}", *row)
    return table


def what_became_of_them(tallies: list[Tally]) -> Table:
    """Return a table with a row per entry."""
    table = Table(
        title="What became of the due ticks",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_footer=len(tallies) > 1,
    )
    table.add_column("entry", footer="all")
    for name in ("due", "once", "doubled", "lost"):
        total = sum(getattr(tally, name) for tally in tallies)
        table.add_column(
            "sent once" if name == "once" else name, footer=str(total), justify="right"
        )
    for tally in tallies:
        wrong = ["bold red" if number else "" for number in (tally.doubled, tally.lost)]
        table.add_row(
            Text(tally.entry, style=CHIPS.get(tally.entry, ("", "bold red"))[1]),
            str(tally.due),
            str(tally.once),
            Text(str(tally.doubled), style=wrong[0]),
            Text(str(tally.lost), style=wrong[1]),
        )
    return table


def legend() -> Text:
    """Return a line that explains the signs."""
    parts: list[tuple[str, str]] = []
    for entry, (chip, style) in CHIPS.items():
        parts += [(chip, style), (f" {entry}   ", "dim")]
    text = Text.assemble(*parts)
    text.rstrip()
    return text


def progress(scene: Scene) -> Text:
    """Return a line of how far the run is."""
    passed = min(scene.seconds, max(0.0, (scene.now - scene.after) / SECOND))
    filled = round(BAR * passed / scene.seconds)
    text = Text.assemble(
        ("━" * filled, "cyan"),
        ("━" * (BAR - filled), "dim"),
        f"  {passed:.0f} of {scene.seconds:g} s, {len(scene.counted)} messages",
    )
    if scene.killed and scene.killed.killed_at:
        ago = max(0, scene.now - scene.killed.killed_at) // SECOND
        text.append(f"   {scene.killed.name} dead for {ago} s", style="bold red")
    return text


def _head(scene: Scene, node: Celery) -> Text:
    sent = scene.sent_by(node)
    if node.killed_at:
        return Text(f"{node.name} ✝\n{sent} sent", style="red")
    return Text(f"{node.name}\n{sent} sent")


def _first_after(cells: dict[Micros, dict[int, set[str]]], node: Celery) -> Micros:
    """Return the first instant with a message at which a killed node was dead, or 0."""
    return next((at for at in sorted(cells) if at > (node.killed_at or 0)), 0)


def _cell(node: Celery, entries: set[str], at: Micros, died: Micros | None) -> Text:
    if died and at >= died and not entries:
        return Text("SIGKILL", style="bold red") if at == died else Text("·", style="dim red")
    text = Text(style="dim" if node.killed_at else "")
    for entry in PERIODS:
        chip, style = CHIPS[entry]
        text.append(f"{chip if entry in entries else '':<{len(chip)}} ", style=style)
    text.rstrip()
    return text
