"""What is typed, as text that can be kept, and what Control logs, in the words of options.

It reads no option.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.documents.spans import TYPED

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_TYPED = {
    "force=True": "--force",
    "update or replace it": "edit it",
    "resume it with catch_up": "resume it with --catch-up",
    "nothing is sent until it is back": "nothing was sent",
}
CRON = re.compile(r"(?s:.*)cron expression '(?P<text>[^']*)'")


def as_typed(message: str) -> str:
    """Return what Control says with options in the place of its arguments."""
    for said, typed in AS_TYPED.items():
        message = message.replace(said, typed)
    return message


def hinted(problem: str) -> str:
    """Return what is wrong, with a hint where a duration was taken for a cron string."""
    found = CRON.match(problem)
    if found is None or not TYPED.match(found["text"]):
        return problem
    return f"{problem}; for an interval write '@every {found['text']}', or seconds as a number"


def check_texts(params: Mapping[str, Any]) -> None:
    """Refuse what is not UTF-8, which Python keeps as halves of pairs of surrogates.

    Raises:
        click.UsageError: A value, or a part of one, is such a text.

    """
    for name, value in params.items():
        for text in _texts_in(value):
            if not _is_whole(text):
                raise click.UsageError(
                    f"{name.replace('_', '-')}: {text!a} is no text in UTF-8; write it in "
                    "that encoding"
                )


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.items() for text in _texts_in(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in _texts_in(each))


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _LastResort(logging.Handler):
    """Print a warning in one line."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"{record.levelname.capitalize()}: {as_typed(record.getMessage())}", err=True)


@contextmanager
def warnings_as_typed() -> Iterator[None]:
    """Print warnings in the words of options, as long as nobody has said where a log goes to."""
    before, logging.lastResort = logging.lastResort, _LastResort(logging.WARNING)
    try:
        yield
    finally:
        logging.lastResort = before
