"""What is typed in an editor, in a file that outlives whatever goes wrong; it reads no content."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Draft:
    """A text in a file of its own, readable by nobody else; ``text`` is what was typed last."""

    def __init__(self, text: str, ending: str) -> None:
        number, path = tempfile.mkstemp(ending, "redlock-edit-")
        self.path = Path(path)
        self.before = self.text = text.encode()
        with os.fdopen(number, "wb") as file:
            file.write(self.before)

    @property
    def is_changed(self) -> bool:
        """Whether something else was typed than was there."""
        return self.text != self.before

    def edit(self) -> bytes:
        """Open the editor, and return what it left.

        Raises:
            click.ClickException: There is no editor, it failed, or it removed the file.

        """
        try:
            click.edit(filename=str(self.path))
        finally:
            self._look()
        if not self.path.exists():
            raise click.ClickException("nothing was changed: the editor has removed the file")
        return self.text

    def keep(self) -> None:
        """Write what was typed last, if the file is gone."""
        self._look()
        if not self.path.exists():
            self.path.write_bytes(self.text)

    def remove(self) -> None:
        """Remove the file, which the editor may have done before."""
        self.path.unlink(missing_ok=True)

    def _look(self) -> None:
        if self.path.exists():
            self.text = self.path.read_bytes()


@contextmanager
def drafted(text: str, ending: str, way_on: Callable[[Draft], str]) -> Iterator[Draft]:
    """Give a draft; where an error ends it, what was typed is kept, and it is told where.

    ``way_on`` returns how to go on with it.
    """
    draft = Draft(text, ending)
    try:
        yield draft
    except BaseException:
        draft.keep()
        if not draft.is_changed:
            draft.remove()
            raise
        advice = way_on(draft)
        click.echo(f"What you typed is kept in {draft.path}: {advice}", err=True)
        raise
    draft.remove()
