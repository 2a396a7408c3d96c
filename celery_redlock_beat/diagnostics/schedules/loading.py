"""Load an app's schedule as beat does when it starts; without a connection, and judges nothing."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from celery.utils.imports import load_extension_class_names
from kombu.utils.imports import symbol_by_name

from celery_redlock_beat.diagnostics.schedules.forthcoming import Outlook, outlook
from celery_redlock_beat.diagnostics.schedules.hearing import heard, told_by
from celery_redlock_beat.diagnostics.schedules.plain_language import lacks_the_extra
from celery_redlock_beat.errors import ConfigurationError, SettingError
from celery_redlock_beat.heartbeat import fingerprint_of
from celery_redlock_beat.scheduler import RedlockScheduler
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from celery import Celery

    from celery_redlock_beat.diagnostics.findings import Finding
    from celery_redlock_beat.diagnostics.schedules.forthcoming import Question
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.lateness import Slot


class Schedule:
    """The schedule of an app, as beat has it when it starts; nothing of it is ever sent.

    A bad entry is among the ``faults``, also where the settings are strict.

    Raises:
        ConfigurationError: Beat would not start, for another reason than an entry.

    """

    def __init__(self, app: Celery) -> None:
        scheduler = scheduler_of(app)
        self.entries: Mapping[str, RedlockEntry] = scheduler.schedule
        self.slots: Mapping[str, Slot] = {slot.name: slot for slot in scheduler.roster.slots()}
        self.faults = {str(name): fault for name, fault in scheduler.roster.faults.items()}
        self.names = [*self.slots, *self.faults]
        self.failed_handlers: list[Finding] = []
        self._app = app
        self._roster = scheduler.roster

    @property
    def fingerprint(self) -> str:
        """What a node with this code tells of its schedule."""
        return fingerprint_of(sorted(self._roster.facts()))

    def matching(self, pattern: str) -> list[str]:
        """Return the entry of this name, or else those whose names match a shell's pattern."""
        if pattern in self.names:
            return [pattern]
        return [name for name in self.names if fnmatchcase(name, pattern)]

    def no_such_name(self, name: str) -> str:
        """Return in words that there is no such entry, and which one may have been meant."""
        near = get_close_matches(name, self.names, n=1)
        hint = f": did you mean {near[0]!r}?" if near else ""
        return f"there is no entry {name!r}{hint}"

    def outlook(self, name: str, asked: Question) -> Outlook:
        """Return what comes of one entry."""
        if name in self.faults:
            return Outlook(shown(name), {}, (), f"left out: {self.faults[name]}")
        return outlook(self.slots[name], self.entries[name], self._app, asked)

    def lacks_the_extra(self, names: Iterable[str]) -> bool:
        """Answer whether one of these entries could be read with the extra ``explain``."""
        slots = (self.slots[name] for name in names if name in self.slots)
        return any(lacks_the_extra(slot.timetable) for slot in slots)


def scheduler_of(app: Celery) -> RedlockScheduler:
    """Return an app's scheduler and its schedule as beat has them when it starts; it is never run.

    A bad entry is among the faults of its roster, also where the settings are strict.

    Raises:
        ConfigurationError: Beat would not start, for another reason than an entry.
    """
    try:
        kind = scheduler_class(app)  # beat, too, is configured before it imports modules
        app.loader.init_worker()
        app.finalize()
        scheduler = kind(app=app, lazy=True)
        scheduler.roster.settings = replace(scheduler.settings, strict=False)
        scheduler.setup_schedule()
        scheduler.roster.compare(scheduler.schedule)
    except ConfigurationError:
        raise
    except Exception as exc:
        raise told_of(exc) from exc
    return scheduler


def told_of(error: Exception) -> ConfigurationError:
    """Return what ends beat's start as an error that says so."""
    if isinstance(error, ConfigurationError):
        return error
    return ConfigurationError(f"beat would not start: {error!r}")


def scheduler_class(app: Celery) -> type[RedlockScheduler]:
    """Return the app's own scheduler if it is one of ours, or else what ``-S redlock`` means.

    Raises:
        SettingError: The app's ``beat_scheduler`` cannot be imported.

    """
    try:
        found = _named_class(app)
    except Exception:  # noqa: BLE001 - importing it is the user's code; if it is broken, so it stays
        # Beat imports it later: it may want Django to be set up, which this does.
        app.loader.init_worker()
        found = _named_class_or_error(app)
    is_ours = isinstance(found, type) and issubclass(found, RedlockScheduler)
    return found if is_ours else RedlockScheduler


def _named_class(app: Celery) -> Any:
    aliases = dict(load_extension_class_names("celery.beat_schedulers"))
    return symbol_by_name(app.conf.beat_scheduler, aliases=aliases)


def _named_class_or_error(app: Celery) -> Any:
    try:
        return _named_class(app)
    except Exception as exc:
        raise SettingError(
            f"beat_scheduler = {app.conf.beat_scheduler!r} cannot be imported ({exc!r}): write "
            "'celery_redlock_beat:RedlockScheduler', or leave it out and use -S redlock"
        ) from exc


def load(app: Celery) -> Schedule:
    """Return the schedule of an app, and keep what beat would log of it out of the log.

    Raises:
        ConfigurationError: Beat would not start, for another reason than an entry.

    """
    with heard() as records:
        schedule = Schedule(app)
        schedule.failed_handlers = [each for each in told_by(records) if each.name == "handler"]
        return schedule
