"""Where a run takes place: the URL and settings of the user, and keys that nobody else has."""

from __future__ import annotations

import ast
import ssl
from pathlib import Path

import pytest
from celery import Celery

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.verify.corner import NAME, Corner
from celery_redlock_beat.verify.target import Target, literal


def app(**config) -> Celery:
    made = Celery("shop", set_as_current=False)
    made.conf.update(config)
    return made


@pytest.fixture(autouse=True)
def _no_urls_in_the_environment(monkeypatch):
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("redis://:secret@host:6380/3", "redis://host:6380/3"),
        ("rediss://me:secret@host:6380/3", "rediss://me@host:6380/3"),
        ("unix:///run/redis.sock?db=2", "redis+socket:///run/redis.sock?virtual_host=2"),
        ("socket:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
    ],
)
def test_urls_are_read_as_redlock_beat_url_is(url, label):
    assert Target(url).endpoint.label == label


def test_a_sentinel_needs_the_name_of_its_primary():
    url = "sentinel://a:26379/0;sentinel://b:26379/0"
    assert "(main)" in Target(url, {"master_name": "main"}).endpoint.label
    with pytest.raises(SettingError, match="master_name"):
        _ = Target(url).endpoint


@pytest.mark.parametrize("url", ["amqp://host", "memory://", "redis://:sec/ret@host:1/0", "host"])
def test_what_is_no_redis_is_refused_by_the_name_of_the_setting(url):
    for target in (Target(url), Target(url, setting="broker_url")):
        with pytest.raises(SettingError, match=target.setting) as told:
            _ = target.endpoint
        assert "ret@host" not in str(told.value)


@pytest.mark.parametrize(
    ("config", "url", "setting"),
    [
        ({"broker_url": "redis://b/1"}, "redis://b/1", "broker_url"),
        ({"broker_url": ["redis://b/1", "redis://c/1"]}, "redis://b/1;redis://c/1", "broker_url"),
        (
            {"broker_url": "redis://b/1", "redlock_beat_url": "redis://l/2"},
            "redis://l/2",
            "redlock_beat_url",
        ),
        (
            {"broker_url": "amqp://b", "result_backend": "redis://r/3"},
            "redis://r/3",
            "result_backend",
        ),
    ],
)
def test_the_redis_of_an_app_is_where_its_ledger_is(config, url, setting):
    target = Target.of_ledger(app(**config))
    assert (target.url, target.setting) == (url, setting)


def test_the_transport_options_of_an_app_go_with_it():
    options = {"master_name": "main", "global_keyprefix": "shop:"}
    found = Target.of_ledger(app(broker_url="sentinel://a/0", broker_transport_options=options))
    assert found.endpoint.prefix == "shop:"
    assert found.as_broker().transport_options["master_name"] == "main"


def test_tls_options_reach_other_processes_as_literals_with_whole_paths():
    options = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": "ca.pem"}
    target = Target.of_ledger(app(broker_url="rediss://host/0", broker_use_ssl=options))
    handed = ast.literal_eval(repr(literal(target.as_broker().tls, "TLS options")))
    assert handed == {
        "ssl_cert_reqs": 2,
        "ssl_ca_certs": str(Path("ca.pem").absolute()),
    }
    assert target.address is None


def test_options_that_no_other_process_can_have_are_refused():
    options = {"credential_provider": object()}
    target = Target.of_ledger(app(broker_url="redis://host/0", broker_transport_options=options))
    with pytest.raises(SettingError, match=r"'object' in the transport options .* --url"):
        literal(target.options, "transport options")


@pytest.mark.parametrize(
    ("url", "address", "through"),
    [
        ("redis://host", ("host", 6379), "redis://127.0.0.1:99"),
        ("redis://me:pa%40ss@host:1/2", ("host", 1), "redis://me:pa%40ss@127.0.0.1:99/2"),
        ("redis://[::1]:7/2", ("::1", 7), "redis://127.0.0.1:99/2"),
    ],
)
def test_a_plain_url_can_be_led_through_a_proxy(url, address, through):
    target = Target(url)
    assert target.address == address
    assert target.through(99) == through


@pytest.mark.parametrize(
    "target",
    [
        Target("rediss://host/0"),
        Target("redis+socket:///run/redis.sock"),
        Target("sentinel://a/0", {"master_name": "main"}),
        Target("redis://a/0;redis://b/0"),
    ],
)
def test_other_urls_cannot(target):
    assert target.address is None


def test_every_run_has_keys_of_its_own_behind_the_users_prefix():
    one, other = Corner.random("shop:"), Corner.random("shop:")
    assert one != other
    for place in (one.place, other.place):
        assert place.prefix.startswith(f"shop:{NAME}-")
        assert place.queue_key.startswith(place.prefix)


def test_exactly_the_keys_of_the_corner_are_deleted(shared_redis):
    corner = Corner.random("odd*[pre]fix?:")
    others = {corner.prefix[:-2], corner.name, "celery", "odd-pre-fix-" + corner.name + ":queue"}
    with shared_redis.client() as client:
        for key in others:
            client.set(key, 1)
        for number in range(1500):
            client.set(f"{corner.prefix}{number}", 1)
        client.lpush(corner.place.queue_key, "message")
        assert len(corner.keys(client)) == 1501
        assert corner.clear(shared_redis.client) == 1501
        assert {key.decode() for key in client.scan_iter()} == others


def test_what_comes_while_it_is_cleared_is_deleted_too(shared_redis):
    corner, late = Corner.random(), []

    def connect():
        client = shared_redis.client()
        unlink = client.unlink

        def and_then_one_more(key):
            if not late:
                late.append(client.set(f"{corner.prefix}late", 1))
            return unlink(key)

        client.unlink = and_then_one_more
        return client

    with shared_redis.client() as client:
        client.set(f"{corner.prefix}a", 1)
        assert corner.clear(connect) == 2
        assert client.dbsize() == 0
