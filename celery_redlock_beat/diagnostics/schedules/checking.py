"""What is wrong with an app's settings and schedule, as beat would tell it; it needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.assembly import check
from celery_redlock_beat.diagnostics.findings import Finding, Report, Severity
from celery_redlock_beat.diagnostics.schedules.hearing import heard, told_by
from celery_redlock_beat.diagnostics.schedules.loading import Schedule, told_of
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import check_broker_url
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables import app_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery import Celery


@dataclass(frozen=True, slots=True)
class ScheduleReport(Report):
    """What is wrong with a schedule of so many ``entries``, bad ones among them.

    ``None`` is for those that were not looked at, since beat would not start.
    """

    entries: int | None = None

    @property
    def bad_entries(self) -> int:
        """How many of the entries are bad."""
        return sum(finding.name == "entry" for finding in self.findings)


def check_schedule(app: Celery) -> ScheduleReport:
    """Return each bad setting, each bad entry, and what else beat would warn of when it starts."""
    facts = {"app": app.main or "(it has no name)"}
    with heard() as records:
        wrong = _wrong_settings(app)
        if wrong:
            return ScheduleReport(facts, [*wrong, *told_by(records)])
        facts["zone"] = app_zone(app).name
        try:
            schedule = Schedule(app)
        except ConfigurationError as exc:
            also = [each for each in told_by(records) if each.name != "handler"]  # it may be this
            return ScheduleReport(facts, [_wrong_setting(exc), *also])
    bad = [
        Finding(Severity.ERROR, "entry", shown(str(name)), problem, "")
        for name, problem in schedule.faults.items()
    ]
    findings = sorted(
        [*bad, *told_by(records)], key=lambda each: list(Severity).index(each.severity)
    )
    return ScheduleReport(facts, findings, len(schedule.names))


def _wrong_settings(app: Celery) -> list[Finding]:
    """Look at what can be looked at apart, to find several faults at once, and then at the rest."""
    apart = _failing(app, Settings.from_app, check_broker_url, app_zone)
    return apart or _failing(app, _check_together)


def _failing(app: Celery, *steps: Callable[[Celery], object]) -> list[Finding]:
    found: list[Finding] = []
    for step in steps:
        try:
            step(app)
        except Exception as exc:  # noqa: BLE001 - loading the configuration is the user's code
            finding = _wrong_setting(told_of(exc))
            found += [] if finding in found else [finding]
    return found


def _check_together(app: Celery) -> None:
    check(app, Settings.from_app(app))


def _wrong_setting(exc: ConfigurationError) -> Finding:
    subject = "the configuration of the app"
    return Finding(
        Severity.ERROR, "setting", subject, str(exc), "correct it: no node starts before"
    )
