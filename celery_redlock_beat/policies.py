"""The policies of an entry: which keys are ours, and what they may be; it applies none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Literal

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.setting_values import (
    checked,
    parse_count,
    parse_flag,
    parse_instant,
    parse_shift,
    parse_tags,
    parse_text,
)
from celery_redlock_beat.settings import PARSERS as SETTINGS
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime


GLOBAL = (
    "dst",
    "catch_up",
    "catch_up_window",
    "catch_up_limit",
    "misfire_grace_time",
    "jitter",
    "expires",
)
"""What the settings of the same names say for all entries."""
PERIODIC_TASK_KEYS = {"schedule", "task", "args", "kwargs", "options"}


@dataclass(frozen=True, slots=True)
class Policies:
    """What an entry says beside its task and its schedule; durations are seconds.

    ``None`` is not said: then the setting ``redlock_beat_<key>`` decides, where there is one.
    """

    timezone: str | tzinfo | None = None
    dst: Literal["celery", "real"] | None = None
    catch_up: Literal["latest", "all", "none"] | None = None
    catch_up_window: float | None = None
    catch_up_limit: int | None = None
    misfire_grace_time: float | None = None
    jitter: float | None = None
    phase: float | None = None
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    run_on_start: bool = False
    enabled: bool = True
    expires: Literal["next"] | None = None
    description: str = ""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Policies:
        """Read what an entry says, by key.

        Raises:
            ConfigurationError: A value cannot be; the text names its key, and the way out.

        """
        values = {
            key: checked(key, value, PARSERS[key], ConfigurationError)
            for key, value in said.items()
            if value is not None
        }
        return cls(**values) if values else NOTHING_SAID


def policies_of(entry: Any) -> Policies:
    """Read the policies of an entry of any class: its attributes of these names."""
    said = ((key, getattr(entry, key, None)) for key in PARSERS)
    return Policies.of({key: value for key, value in said if value is not _DEFAULTS[key]})


def said_by(entry: Any) -> dict[str, Any]:
    """Return what an entry itself says, and not its class, as it was given."""
    own = getattr(entry, "__dict__", {})
    return {key: own[key] for key in PARSERS if key in own}


def with_policies(fields: Any) -> Any:
    """Return fields in which policies that ``add_periodic_task`` put among the options are keys.

    It takes any keyword for an option of the task. What has other keys than its entries have was
    written by hand.
    """
    if not isinstance(fields, Mapping) or fields.keys() != PERIODIC_TASK_KEYS:
        return fields
    options = fields["options"] or {}
    policies = {
        key: options[key]
        for key in (*PARSERS, "relative")
        if key in options and not is_option(key, options[key])
    }
    rest = {key: value for key, value in options.items() if key not in policies}
    return {**fields, "options": rest, **policies} if policies else fields


def is_option(key: str, value: object) -> bool:
    """Whether a key is one of Celery's own options, and not the policy of this name."""
    return key == "expires" and value != "next"


def hint_for(key: object, known: Collection[str]) -> str:
    """Return which key may have been meant, or which there are."""
    return hint(str(key), known, f"known are {', '.join(sorted(known))}")


def _parse_zone(value: object) -> object:
    if not isinstance(value, str | tzinfo):
        raise ValueError("is no time zone: write an IANA name as 'Europe/Berlin'")  # noqa: TRY004
    try:
        zone_of(value)
    except ConfigurationError as problem:
        raise ValueError(f"is no time zone: {problem}") from None
    return value


PARSERS: dict[str, Callable[[object], Any]] = {
    "timezone": _parse_zone,
    **{key: SETTINGS[key] for key in GLOBAL},
    "phase": parse_shift,
    "start": parse_instant,
    "end": parse_instant,
    "max_runs": parse_count,
    "run_on_start": parse_flag,
    "enabled": parse_flag,
    "description": parse_text,
    "tags": parse_tags,
}

NOTHING_SAID = Policies()
_DEFAULTS = {each.name: each.default for each in fields(Policies)}

assert PARSERS.keys() == _DEFAULTS.keys()  # noqa: S101 - read by nobody else
