"""``celery redlock import-django``: leave django-celery-beat; it changes none of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    app_of,
    control_of,
    json_option,
    note_option,
    print_json,
)
from celery_redlock_beat.cli._moved import carry_out, exit_code, show_moved
from celery_redlock_beat.control import Origin
from celery_redlock_beat.diagnostics.schedules.loading import scheduler_class
from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from celery import Celery

    from celery_redlock_beat.predecessors.move import Move

NOW = (
    "Now set beat_scheduler = 'redlock' on every node: from then on these entries run, and what is "
    "typed into the admin no longer counts."
)
STORED = ("added", "changed", "same", "seeded")


@click.command(
    "import-django",
    cls=RedlockCommand,
    examples=("import-django --dry-run", "import-django --note 'leaving the admin'"),
    exits={1: "one was refused: the others are there; or the tables could not be read"},
)
@click.option("--replace", is_flag=True, help="Also change those that are stored and differ.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@note_option
@json_option
@click.pass_context
def import_django(
    ctx: click.Context, *, replace: bool, dry_run: bool, note: str, as_json: bool
) -> None:
    """Store the rows of django-celery-beat as entries, to go on where it stopped, without it.

    A disabled row is stored disabled. Those that beat_schedule has stay in code, and only begin
    after their last run. What has run once and is over is left, a bad row is refused, and the
    tables stay as they are. Stop beat first: nothing that was sent is sent again, what was due
    since is caught up, and intervals go on with their phase.
    """
    model = _model(app_of(ctx))
    control = control_of(ctx)
    code = {view.name for view in control.entries(origin=Origin.CODE)}
    move = _move(model, ctx.obj.app, code)
    done = carry_out(control, move, note, replace=replace, dry_run=dry_run)
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "entries": done})
    elif done:
        show_moved(ctx, done)
        if not dry_run and any(each.done in STORED for each in done):
            click.echo(NOW, err=True)
    else:
        ctx.obj.echo("There are no rows.")
    ctx.exit(exit_code(done))


def _model(app: Celery) -> Any:
    """Return the model of the rows; from now on the schedule of this process has none of them.

    Raises:
        ConfigurationError: Django or django-celery-beat is not there, or not set up.

    """
    try:
        from django.apps import apps  # noqa: PLC0415 - it is there for those who use it

        from celery_redlock_beat.contrib.django import DatabaseScheduler  # noqa: PLC0415
    except ImportError as exc:
        raise ConfigurationError(str(exc)) from None
    app.loader.init_worker()  # sets Django up, if the app does so at all
    if not (apps.ready and apps.is_installed("django_celery_beat")):
        raise ConfigurationError(
            "this app has no django-celery-beat: DJANGO_SETTINGS_MODULE must be set before the app "
            "is made, and INSTALLED_APPS must have 'django_celery_beat'"
        )
    kind = scheduler_class(app)
    if not issubclass(kind, DatabaseScheduler):
        return DatabaseScheduler.Model
    app.conf.beat_scheduler = "celery_redlock_beat:RedlockScheduler"
    return kind.Model


def _move(model: Any, app: Celery, code: set[str]) -> Move:
    from celery_redlock_beat.contrib.django.moving import move_of  # noqa: PLC0415 - as above

    return move_of(model, app, code)
