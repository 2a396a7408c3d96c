"""A stored entry as RedBeat's callers read it: by its key, as arguments; it changes none."""

from __future__ import annotations

import json
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

from celery.app import app_or_default

from celery_redlock_beat.contrib.redbeat.config import ensure_conf
from celery_redlock_beat.contrib.redbeat.decoder import RedBeatJSONDecoder
from celery_redlock_beat.contrib.redbeat.keeper import keeper_of
from celery_redlock_beat.contrib.redbeat.schedules import as_redbeat_has_it
from celery_redlock_beat.control import Origin
from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.policies import said_by
from celery_redlock_beat.ticks import to_datetime

if TYPE_CHECKING:
    from celery import Celery

    from celery_redlock_beat.control.selection import Found


def found_by(key: str, app: Celery | None) -> Found:
    """Return the entry of RedBeat's key, stored or from code.

    Raises:
        KeyError: There is none.

    """
    app = app_or_default(app)
    prefix = ensure_conf(app).key_prefix
    name = key.removeprefix(prefix)
    found = keeper_of(app).found(name) if name and key.startswith(prefix) else None
    if found is None:
        raise KeyError(key)
    return found


def definition_of(found: Found) -> dict[str, Any]:
    """Return what an entry is made of, by the names of the arguments of RedBeat's.

    Raises:
        EntryError: What is stored cannot be read, or not be sent.

    """
    entry = found.known.entry
    if entry is None:
        raise EntryError(found.name, found.known.problem)
    # What is stored is remembered by its text: callers may change what they are given.
    copied = deepcopy if found.known.origin is Origin.STORED else copy
    call = {key: copied(getattr(entry, key)) or None for key in ("args", "kwargs", "options")}
    schedule = as_redbeat_has_it(shallow_copy(entry.schedule))
    fields = {"name": found.name, "task": entry.task, "schedule": schedule, **call}
    return {**fields, "enabled": bool(entry.enabled), **said_by(entry)}


def meta_of(found: Found, app: Celery | None) -> dict[str, Any]:
    """Return when an entry ran last, as an aware datetime, and how often."""
    record = found.look.record
    if record is None:
        return {"last_run_at": None}
    at = to_datetime(record.mark).astimezone(app_or_default(app).timezone)
    return {"last_run_at": at, "total_run_count": record.runs}


class Loading:
    """What RedBeat's entry tells of others by their keys, without making an entry of them."""

    @staticmethod
    def generate_key(app: Celery | None, name: str) -> str:
        """Return RedBeat's key of an entry, by which ``from_key`` finds it; it is none in Redis."""
        return ensure_conf(app).key_prefix + name

    @staticmethod
    def load_definition(
        key: str, app: Celery | None = None, definition: str | bytes | None = None
    ) -> dict[str, Any]:
        """Return what an entry is made of, by the names of the constructor's arguments.

        Raises:
            KeyError: There is no entry of this key.
            EntryError: What is stored cannot be read.
        """
        if definition:
            return Loading.decode_definition(definition)
        return definition_of(found_by(key, app))

    @staticmethod
    def decode_definition(definition: str | bytes) -> dict[str, Any]:
        """Return what RedBeat's JSON of an entry says."""
        told: dict[str, Any] = json.loads(definition, cls=RedBeatJSONDecoder)
        return told

    @staticmethod
    def load_meta(key: str, app: Celery | None = None) -> dict[str, Any]:
        """Return ``last_run_at`` and ``total_run_count``, of what no node knows yet only ``None``.

        The last run is the highest instant up to which everything was sent or passed over; runs
        are those that were due, and not those that were fired beside the schedule.
        """
        try:
            return meta_of(found_by(key, app), app)
        except KeyError:
            return Loading.decode_meta(None)

    @staticmethod
    def decode_meta(meta: str | bytes | None, app: Celery | None = None) -> dict[str, Any]:
        """Return what RedBeat's JSON of an entry's state says."""
        del app  # RedBeat takes it, and has no use for it either
        told: dict[str, Any] = {"last_run_at": None}
        return json.loads(meta, cls=RedBeatJSONDecoder) if meta else told
