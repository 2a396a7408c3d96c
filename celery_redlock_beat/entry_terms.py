"""What the policies of an entry come to, together with its schedule and the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.lateness import Policy
from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.timetables import Opaque, Terms
from celery_redlock_beat.timetables.day_fields import doubt_about_days

if TYPE_CHECKING:
    from celery_redlock_beat.policies import Policies
    from celery_redlock_beat.settings import Settings
    from celery_redlock_beat.ticks import Timetable

ONLY_FOR_KNOWN_INSTANTS = ("jitter", "expires")
ONLY_FOR_ALL = ("catch_up_window", "catch_up_limit")
SHORTEST_PATIENCE: Micros = SECOND


def terms_of(name: str, policies: Policies, settings: Settings) -> Terms:
    """Return what an entry's timetable depends on beside its schedule."""
    return Terms(
        name=name,
        timezone=policies.timezone,
        dst=policies.dst,
        default_dst=settings.dst,
        phase=_micros(policies.phase),
        start=policies.start,
        end=policies.end,
    )


def policy_of(entry: Any, policies: Policies, settings: Settings) -> Policy:
    """Return how the ticks of an entry are sent: as it says itself, or as the settings do."""

    def either(key: str) -> Any:
        own = getattr(policies, key)
        return getattr(settings, key) if own is None else own

    grace, deadline = either("misfire_grace_time"), settings.cron_starting_deadline
    is_cron = hasattr(entry.schedule, "minute") or hasattr(entry.schedule, "expression")
    if policies.misfire_grace_time is None and is_cron and deadline is not None:
        grace = deadline
    return Policy(
        catch_up=either("catch_up"),
        window=int(either("catch_up_window") * SECOND),
        limit=either("catch_up_limit"),
        grace=_micros(grace),
        tolerance=int(2 * settings.lease * SECOND),
        jitter=int(either("jitter") * SECOND),
        expires=either("expires") == "next",
        max_runs=policies.max_runs,
        run_on_start=policies.run_on_start,
        enabled=policies.enabled,
    )


def check_policies(
    name: str, entry: Any, policies: Policies, timetable: Timetable | Opaque
) -> None:
    """Refuse policies that contradict each other, the schedule, or the options."""
    if isinstance(timetable, Opaque):
        for key in ONLY_FOR_KNOWN_INSTANTS:
            if getattr(policies, key) is not None:
                raise EntryError(
                    name,
                    f"{key!r} needs a schedule that tells its next instant, and "
                    f"{type(entry.schedule).__qualname__} only tells if it is due: leave it out",
                )
    if policies.expires and "expires" in (entry.options or {}):
        raise EntryError(name, "it has 'expires' twice, also among its options: keep one of them")
    if policies.run_on_start and policies.start is not None:
        raise EntryError(
            name,
            "'run_on_start' sends once when the entry is first seen, and 'start' forbids that "
            "until then: keep one of them",
        )


def doubts_about_time(entry: Any, policies: Policies, policy: Policy) -> list[str]:
    """Return what an entry says of its time that is allowed, and hardly meant."""
    doubts = []
    if policy.catch_up != "all":
        doubts += [
            f"{key!r} has no effect unless 'catch_up' is \"all\""
            for key in ONLY_FOR_ALL
            if getattr(policies, key) is not None
        ]
    if policy.tightest < SHORTEST_PATIENCE:
        doubts.append(
            f"what is {policy.tightest / SECOND:g} s late is not sent, and sending takes a moment: "
            "give 'misfire_grace_time' and 'catch_up_window' a second or more"
        )
    if policy.expires and {"countdown", "eta"} & (entry.options or {}).keys():
        doubts.append(
            "its message expires when the next tick is due, which may be before its 'countdown' or "
            "'eta': leave one of them out"
        )
    doubt = doubt_about_days(entry.schedule)
    return [*doubts, doubt] if doubt else doubts


def _micros(seconds: float | None) -> Micros | None:
    return None if seconds is None else round(seconds * SECOND)
