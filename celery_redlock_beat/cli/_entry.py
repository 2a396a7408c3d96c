"""One entry in full, for people and for programs, as commands answer it; it changes none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli import _words as words
from celery_redlock_beat.cli._command import print_json, say
from celery_redlock_beat.cli._tables import fact_lines
from celery_redlock_beat.control import Origin, State, as_dict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery_redlock_beat.control import Control, EntryView, Upcoming

SHOWN_APART = ("format", "task", "schedule", "timezone", "tags", "description")
NUMBER = 3


def answer(
    ctx: click.Context, control: Control, view: EntryView, *, deed: str, as_json: bool
) -> None:
    """Tell what was done with an entry, and when it is due next."""
    coming = control.upcoming(NUMBER, view.name)
    if as_json:
        print_json(ctx, document(view, coming))
        return
    say(ctx, [f"{deed} {words.printable(view.name)}: {task_and_schedule(view)}"])
    say(ctx, fact_lines(list(_next(view, coming, datetime.now(UTC)))))


def tell_deeds(ctx: click.Context, views: Sequence[EntryView], deed: str, *, as_json: bool) -> None:
    """Tell what was done with several entries.

    Raises:
        click.ClickException: There are none.

    """
    check_done(views)
    if as_json:
        print_json(ctx, {"entries": views})
    else:
        say(ctx, words.deeds(views, deed))


def check_done(those: Sequence[object]) -> None:
    """End with an error where a deed found nothing to do.

    Raises:
        click.ClickException: There are none of those.

    """
    if not those:
        raise click.ClickException("nothing was done: there is no entry that it could be done with")


def document(view: EntryView, coming: Sequence[Upcoming]) -> dict[str, Any]:
    """Return an entry and its next ticks as JSON can have it."""
    return {"entry": as_dict(view), "upcoming": as_dict(list(coming))}


def task_and_schedule(view: EntryView) -> str:
    """Return what an entry sends, and when, in one line."""
    return words.printable(f"{view.task}, {view.schedule} ({view.timezone})")


def state_of(view: EntryView) -> str:
    """Return the state of an entry, and why it is so."""
    if view.paused is not None:
        return f"{view.state} {words.paused(view.paused)}"
    return f"{view.state}: {words.printable(view.problem)}" if view.problem else str(view.state)


def full(view: EntryView, coming: Sequence[Upcoming], now: datetime) -> Iterator[tuple[str, str]]:
    """Yield all that there is to say of an entry, as names and texts."""
    revision = f" (revision {view.revision})" if view.origin is Origin.STORED else ""
    yield "state", state_of(view)
    yield "origin", f"{view.origin}{revision}"
    yield "task", words.printable(view.task)
    yield "schedule", words.printable(view.schedule)
    yield "timezone", words.printable(view.timezone)
    if view.tags:
        yield "tags", words.printable(", ".join(view.tags))
    if view.description:
        yield "description", words.printable(view.description)
    for key, value in view.definition.items():
        if key not in SHOWN_APART:
            yield key, json.dumps(value, ensure_ascii=False, default=list)
    yield "runs", f"{view.runs:,}"
    yield from _several("last", list(words.result(view.last, now)) if view.last else ["never"])
    yield from _several("open", [words.moment(each, now) for each in view.open])
    yield from _several("to skip", [words.moment(each, now) for each in view.unwanted])
    yield from _next(view, coming, now)


def _next(view: EntryView, coming: Sequence[Upcoming], now: datetime) -> Iterator[tuple[str, str]]:
    lines = list(words.upcoming(coming, now))
    nothing = "nobody can tell" if view.state is State.ACTIVE else f"nothing, as it is {view.state}"
    yield from _several("next", lines or [nothing])


def _several(name: str, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, line in enumerate(lines):
        yield "" if place else name, line
