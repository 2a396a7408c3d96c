"""RedBeat's data is where RedBeat's own client finds it, in every shape that a Redis may have."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from celery import Celery
from celery.schedules import schedule
from redbeat.schedulers import RedBeatSchedulerEntry, get_redis

from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.predecessors.redbeat.keys import Keys, held_by
from celery_redlock_beat.predecessors.redbeat.place import connect
from celery_redlock_beat.predecessors.redbeat.records import read
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.predecessors.redbeat.writing import Ran, write_back
from celery_redlock_beat.ticks import to_micros
from celery_redlock_beat.timetables import app_zone
from support.certificates import Authority, TlsServer, has_openssl, speaks_tls
from support.cluster import Cluster
from support.node_here import NodeHere
from support.nodes import BeatNode, write_project
from support.requirements import require
from support.servers import SentinelTrio, binary_of

SECRET = "s3cr3t"


def shop(broker="memory://", **conf):
    app = Celery("shop", broker=broker, set_as_current=False)
    app.conf.update(redlock_beat_socket_timeout=0.5, **conf)
    return app


def saved_by_redbeat(app):
    """Save an entry through RedBeat's own client."""
    RedBeatSchedulerEntry("it", "proj.it", schedule(60), app=app).save()
    get_redis(app).close()


def found(app):
    """Return the names of what is there for us, with the names that were told of a run."""
    settings = RedBeatSettings.from_app(app)
    keys, now = Keys.of(settings), datetime.now(UTC)
    with connect(app, settings) as client:
        assert held_by(client, keys) is None
        ran = {"it": Ran(to_micros(now))}
        assert write_back(client, keys, ran, app_zone(app), to_micros(now)) == {"it"}
        (record,) = read(client, keys, app_zone(app), now)
    assert (record.name, record.last_run_at, record.problem) == ("it", now, "")


def test_a_server_with_a_password_and_a_database(shared_redis):
    url = f"{shared_redis.url.rpartition('/')[0]}/3"
    app = shop(redbeat_redis_url=url, redbeat_redis_options={"socket_timeout": 1})
    saved_by_redbeat(app)
    found(app)


@pytest.mark.filterwarnings("ignore:RedBeat will stop falling back:DeprecationWarning")
def test_the_broker_where_nothing_else_is_said(shared_redis):
    app = shop(shared_redis.url)
    saved_by_redbeat(app)
    found(app)


def test_sentinels_in_the_options_with_passwords_of_their_own():
    binary = binary_of("redis")
    with SentinelTrio(binary=binary, password=SECRET, own_password="other") as trio:
        options = {
            "sentinels": [("127.0.0.1", each.port) for each in trio.sentinels],
            "service_name": trio.service,
            "password": SECRET,
            "sentinel_kwargs": {"password": "other"},
            "socket_timeout": 1,
        }
        app = shop(redbeat_redis_url="redis-sentinel://x:1/0", redbeat_redis_options=options)
        saved_by_redbeat(app)
        found(app)
        wrong = options | {"sentinel_kwargs": {"password": SECRET}}
        app = shop(redbeat_redis_url="redis-sentinel://x:1/0", redbeat_redis_options=wrong)
        with pytest.raises(LedgerUnavailable, match="sentinels refuse our user or password"):
            found(app)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    require("openssl", has_openssl())
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    shown = authority.issue("server", "IP:127.0.0.1", "DNS:localhost")
    require("a server with TLS", speaks_tls(binary_of("redis"), authority, shown))
    return SimpleNamespace(authority=authority, shown=shown, own=authority.issue("client"))


def test_tls_with_options_beside_the_url(certificates):
    told = {
        "ssl_ca_certs": str(certificates.authority.certificate),
        "ssl_certfile": str(certificates.own.certificate),
        "ssl_keyfile": str(certificates.own.key),
    }
    with TlsServer(authority=certificates.authority, shown=certificates.shown) as server:
        place = {"redbeat_redis_url": f"rediss://localhost:{server.tls_port}/0"}
        own = place | {"redbeat_redis_options": {"socket_timeout": 1}}
        app = shop(**own, redbeat_redis_use_ssl=told)
        saved_by_redbeat(app)
        found(app)
        del told["ssl_ca_certs"]
        with pytest.raises(LedgerUnavailable, match="signed by no authority that we trust"):
            found(shop(**own, redbeat_redis_use_ssl=told))


@pytest.mark.slow
def test_a_cluster_whose_keys_are_on_several_nodes():
    with Cluster(binary_of("redis"), replicas=False) as cluster:
        nodes = [{"host": "127.0.0.1", "port": str(node.port)} for node in cluster.nodes]
        options = {"startup_nodes": nodes, "retry_period": 5}
        app = shop(redbeat_redis_url="redis-cluster://x:1/0", redbeat_redis_options=options)
        definition = {"task": "proj.it", "schedule": {"__type__": "interval", "every": 60}}
        with cluster.client() as client:
            for name in ("it", "orphan", "other"):
                client.hset(f"redbeat:{name}", "definition", json.dumps(definition))
            client.zadd("redbeat::schedule", {"redbeat:it": 1, "redbeat:other": 2})
            client.sadd("redbeat::statics", "other")
        settings, now = RedBeatSettings.from_app(app), datetime.now(UTC)
        with connect(app, settings) as client:
            ran = {"it": Ran(to_micros(now)), "unknown": Ran(to_micros(now))}
            keys, zone = Keys.of(settings), app_zone(app)
            assert write_back(client, keys, ran, zone, to_micros(now)) == {"it"}
            records = {each.name: each for each in read(client, keys, zone, now)}
        assert records.keys() == {"it", "orphan", "other"}
        assert records["it"].last_run_at == now
        assert records["other"].is_static
        assert records["orphan"].document["enabled"] is False


def test_the_ledger_is_there_where_neither_we_nor_the_broker_have_a_redis(shared_redis):
    url = f"{shared_redis.url.rpartition('/')[0]}/2"
    with NodeHere(None, redbeat_redis_url=url) as node:
        node.go_on()
        assert f"ledger -> {url}" in node.scheduler.info.replace("localhost", "127.0.0.1")


def test_beat_answers_each_setting_without_effect_when_it_starts(shared_redis, tmp_path):
    config = {
        "REDBEAT_LOCK_TIMEOUT": 60,
        "redbeat_key_prefx": "shop:",
        "redbeat_key_prefix": "shop:",
        "redbeat_redis_options": {"retry_period": 60, "socket_timeout": 1},
    }
    write_project(tmp_path, shared_redis.url, config=config)
    with BeatNode(tmp_path) as node:
        node.wait_for_log("beat: Starting")
        log = node.log
    warnings = [
        line for line in log.splitlines() if "WARNING" in line and "edbeat_" in line.lower()
    ]
    assert len(warnings) == 3
    assert "did you mean 'redbeat_key_prefix'?" in log
    assert "REDBEAT_LOCK_TIMEOUT has no effect: nodes need no lock" in log
    assert "redbeat_redis_options is followed but for this: 'retry_period' is not needed" in log
