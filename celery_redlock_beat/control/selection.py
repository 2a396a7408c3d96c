"""Which entries are meant: names or patterns, a tag, a task; it changes none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING

from celery_redlock_beat.control.known import Known
from celery_redlock_beat.control.views import Origin
from celery_redlock_beat.entry_checks import is_storable
from celery_redlock_beat.errors import NoSuchEntry, NothingSelected
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue
    from celery_redlock_beat.ledger.steering import Look

MOST_COMPARED = 10_000
"""With how many names one that there is not is compared."""
WILD = re.compile(r"[*?[]")
"""What a shell pattern has, and a mere name has seldom."""
GONE = "it is neither stored nor in the code here any more"


@dataclass(frozen=True, slots=True)
class Selection:
    """Names or patterns, of which one must match; a tag and a task that must match, too.

    Without names all are meant, if at least ``everything`` was said.
    """

    names: tuple[str, ...] = ()
    tag: str | None = None
    task: str | None = None
    everything: bool = False

    def check(self) -> None:
        """Refuse one that says nothing.

        Raises:
            NothingSelected: It names nothing, and does not say that all are meant.
        """
        if not (self.names or self.tag or self.task or self.everything):
            raise NothingSelected(
                "which entries are meant? Give names or patterns, a tag, a task, or all=True"
            )

    def takes(self, known: Known) -> bool:
        """Answer whether tag and task match."""
        if self.tag is not None and self.tag not in known.tags:
            return False
        return self.task is None or known.task == self.task or fnmatchcase(known.task, self.task)

    def in_words(self) -> str:
        """Return what was asked for."""
        said = [f"the name {shown(name)!r}" for name in self.names]
        said += [f"the tag {self.tag!r}"] if self.tag else []
        said += [f"the task {self.task!r}"] if self.task else []
        return " and ".join(said)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that is meant; ``by_name``: it was named, not only matched by a pattern."""

    known: Known
    look: Look
    by_name: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.known.name


def gone(look: Look) -> Known:
    """Return an entry that is gone, of which only a pause is left."""
    return Known(look.entry, Origin.CODE, problem=GONE)


class Finder:
    """Find entries; each method may raise ``LedgerUnavailable``.

    An entry that is named is asked for alone: only a pattern, a tag and a task have all looked at.
    """

    def __init__(self, access: Access, catalogue: Catalogue) -> None:
        self._access = access
        self._catalogue = catalogue

    def get(self, name: str) -> Found:
        """Return the entry of this name.

        Raises:
            NoSuchEntry: There is none.
        """
        found = self._named([name])
        if name not in found:
            raise self.no_such(name)
        return found[name]

    def find(self, selection: Selection, *, also_gone: bool = False) -> list[Found]:
        """Return the entries that are meant, by name; also those of which only a pause is left.

        Raises:
            NoSuchEntry: One of the names matches nothing, or nothing matches all that was said.
        """
        named = self._named(selection.names, also_gone=also_gone)
        patterns = [name for name in selection.names if name not in named]
        for name in patterns:
            if not WILD.search(name):
                raise self.no_such(name)
        matching = self._matching(patterns, also_gone=also_gone) if patterns or not named else {}
        found = {**matching, **named}
        meant = [each for each in found.values() if selection.takes(each.known)]
        if not meant and (selection.names or selection.tag or selection.task):
            raise NoSuchEntry(f"there is no entry with {selection.in_words()}")
        return sorted(meant, key=lambda each: each.name)

    def names(self) -> set[str]:
        """Return the names of all entries, but those that somebody wrote and that are no UTF-8."""
        self._catalogue.follow()
        stored = filter(is_storable, self._access.registry.stored())
        return {*self._catalogue.code(), *stored}

    def no_such(self, name: str) -> NoSuchEntry:
        """Return that there is no such entry, and which one may have been meant."""
        stored = filter(is_storable, self._access.registry.some_stored(MOST_COMPARED))
        known = islice(chain(self._catalogue.code(), stored), MOST_COMPARED)
        near = get_close_matches(name, known, n=1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        return NoSuchEntry(f"there is no entry {shown(name)!r}{hint}")

    def _named(self, names: Iterable[str], *, also_gone: bool = False) -> dict[str, Found]:
        return {each.name: each for each in self._found(names, by_name=True, also_gone=also_gone)}

    def _matching(self, patterns: list[str], *, also_gone: bool) -> Mapping[str, Found]:
        known = self.names()
        if also_gone:
            known.update(filter(is_storable, self._access.registry.paused()))
        if patterns:
            matches = [
                {name for name in known if fnmatchcase(name, pattern)} for pattern in patterns
            ]
            for pattern, matched in zip(patterns, matches, strict=True):
                if not matched:
                    raise self.no_such(pattern)
            known = set().union(*matches)
        return {
            each.name: each
            for each in self._found(sorted(known), by_name=False, also_gone=also_gone)
        }

    def _found(self, names: Iterable[str], *, by_name: bool, also_gone: bool) -> Iterator[Found]:
        self._catalogue.follow()
        wanted = [name for name in dict.fromkeys(names) if name and is_storable(name)]
        for look in self._access.looks(wanted):
            known = self._catalogue.of(look)
            if known is None and also_gone and look.pause:
                known = gone(look)
            if known:
                yield Found(known, look, by_name)
