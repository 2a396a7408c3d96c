"""``celery redlock verify``: options, signals and exit status; what happens is not decided here."""

from __future__ import annotations

import json
import math
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from secrets import randbelow
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import RedlockCommand
from celery_redlock_beat.errors import (
    RedlockBeatError,
    ServerNotFound,
    ServerNotStarted,
    SettingError,
)
from celery_redlock_beat.testing.server import DEMO_ORDER, Server, find_server
from celery_redlock_beat.verify.faults import LASTS, parse_kinds
from celery_redlock_beat.verify.run import Options, Run
from celery_redlock_beat.verify.screen import show
from celery_redlock_beat.verify.signals import BY_SIGNAL, Interrupted, Signals
from celery_redlock_beat.verify.target import Target

if TYPE_CHECKING:
    from celery_redlock_beat.verify.faults import Fault
    from celery_redlock_beat.verify.report import Report

GOOD, BAD = 0, 1
INSTALL = "pip install 'celery-redlock-beat[demo]', or install redis-server or valkey-server"


def _finite(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter("write a number of minutes")
    return value


def _made(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    """Make the directory before the run: after it there is no way to mend that."""
    if value is not None:
        try:
            value.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise click.BadParameter(f"it cannot be made: {exc}") from None
    return value


@click.command(
    cls=RedlockCommand,
    examples=(
        "verify --minutes 10",
        "celery redlock verify --url redis://localhost:6379/0 --seed 42",
        "celery redlock verify --embedded --json",
    ),
    exits={
        0: "nothing was doubled, early, lost or unexplained",
        1: "something was, or it could not be run",
        130: "it was ended by Ctrl-C",
        143: "it was ended by SIGTERM",
    },
)
@click.option("--url", help="The Redis to run on, as redlock_beat_url has it. Default: the app's.")
@click.option("--broker-url", help="Another Redis for the messages; without it, the same.")
@click.option("--master-name", help="The name of Sentinel's primary, if --url is Sentinel's.")
@click.option("--embedded", is_flag=True, help="Run on a server that is started for this.")
@click.option("--nodes", type=click.IntRange(2, 16), default=3, show_default=True)
@click.option(
    "--faults",
    default="all",
    show_default=True,
    help=f"Some of {', '.join(LASTS)}; or all, or none.",
)
@click.option(
    "--minutes", type=click.FloatRange(0.1, 60), default=2, show_default=True, callback=_finite
)
@click.option("--seed", type=click.IntRange(0), help="Repeat the faults of the run with this seed.")
@click.option(
    "--logs",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    callback=_made,
    help="Keep logs there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Tell each fault.")
@click.pass_context
def verify(ctx: click.Context, /, **given: Any) -> None:
    """Run real nodes on your Redis, break them, and count what was sent.

    Everything happens in a namespace of its own, with a queue and keys of its own, all of which are
    deleted at the end. Only nodes that the command started are killed, paused, restarted or cut
    off; Redis itself never is.
    """
    options = Options(
        nodes=given["nodes"],
        seconds=given["minutes"] * 60,
        kinds=(),
        seed=randbelow(1_000_000) if given["seed"] is None else given["seed"],
        logs=given["logs"],
    )
    signals = Signals()
    with ExitStack() as stack, signals.listening():
        ledger = _target(ctx, given, stack)
        broker = _broker(ledger, given["broker_url"])
        has_addresses = ledger.address is not None and broker.address is not None
        kinds = _kinds(ctx, given["faults"], can_cut=has_addresses)
        status = _run((ledger, broker), replace(options, kinds=kinds), signals, given)
    ctx.exit(status)


def _run(
    servers: tuple[Target, Target], options: Options, signals: Signals, given: dict[str, Any]
) -> int:
    out = sys.stderr if given["as_json"] else sys.stdout

    def say(text: str) -> None:
        click.echo(text, file=out)

    def tell(fault: Fault) -> None:
        if given["verbose"]:
            say(str(fault))

    run = Run(*servers, options, say, tell, signals.check)
    say(f"Seed {options.seed}: --seed {options.seed} repeats these faults.")
    status, report, problem = GOOD, None, ""
    try:
        with run:
            report = run.go()
    except Interrupted:
        status, problem = BY_SIGNAL + signals.number, "Ended before its time."
    except (RedlockBeatError, OSError) as error:
        status, problem = BAD, f"It could not be run: {error}"
    if run.deleted is not None:
        say(f"Deleted {run.deleted} keys.")
    if report is not None:
        status = GOOD if report.good and run.deleted is not None else BAD
    _conclude(report, problem, options, as_json=given["as_json"])
    return status


def _conclude(report: Report | None, problem: str, options: Options, *, as_json: bool) -> None:
    if problem:
        click.echo(problem, err=True)
    if as_json:
        told = {"verdict": "none", "problem": problem} if report is None else report.as_dict()
        told |= {"seed": options.seed, "nodes": options.nodes, "seconds": options.seconds}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    elif report is not None:
        show(report, sys.stdout)
        if not (report.good or options.logs):
            click.echo(f"With --seed {options.seed} --logs DIRECTORY the logs of the nodes stay.")


def _target(ctx: click.Context, given: dict[str, Any], stack: ExitStack) -> Target:
    """Return the Redis to run on; what cannot be one is an error of usage."""
    if given["embedded"]:
        if given["url"]:
            raise click.UsageError("--embedded and --url exclude each other")
        try:
            binary = find_server(DEMO_ORDER)
        except ServerNotFound:
            raise click.UsageError(f"--embedded needs a server: {INSTALL}") from None
        try:
            return Target(stack.enter_context(Server(binary=binary)).url)
        except ServerNotStarted as error:
            raise click.ClickException(str(error)) from None
    try:
        target = _named(ctx, given)
        _ = target.endpoint
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    return target


def _broker(ledger: Target, url: str | None) -> Target:
    """Return the Redis that is to carry the messages."""
    broker = Target(url, ledger.options, setting="--broker-url") if url else ledger
    if broker.is_cluster:
        raise click.UsageError(
            "Celery has no broker in a Redis Cluster: name another Redis for the messages, "
            "as in --broker-url redis://localhost:6379/0"
        )
    try:
        _ = broker.endpoint
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    return broker


def _named(ctx: click.Context, given: dict[str, Any]) -> Target:
    if given["url"]:
        name = given["master_name"]
        return Target(given["url"], {"master_name": name} if name else {})
    if not ctx.find_root().params.get("app"):
        raise click.UsageError(
            "there is no Redis to run on: name it, as in --url redis://localhost:6379/0, or run "
            "'celery -A proj redlock verify' for that of an app, or start one with --embedded"
        )
    return Target.of_ledger(ctx.obj.app)


def _kinds(ctx: click.Context, text: str, *, can_cut: bool) -> tuple[str, ...]:
    possible = tuple(kind for kind in LASTS if can_cut or kind != "cut")
    try:
        kinds = parse_kinds(text, possible)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param_hint="--faults") from None
    if not set(kinds) <= set(possible):
        message = "'cut' needs a plain redis:// URL: leave it out"
        raise click.BadParameter(message, ctx, param_hint="--faults")
    return kinds
