"""What is wrong with a server, or with our rights there, asked of real servers."""

from __future__ import annotations

import json

import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner

from celery_redlock_beat.cli.doctor import doctor
from celery_redlock_beat.diagnostics import Severity, examine
from celery_redlock_beat.ledger import Settlement
from celery_redlock_beat.ticks import SENT
from ledger.places import NAMESPACE, RedisPlace, due_ticks, grant, register
from support.requirements import require
from support.servers import (
    Server,
    ServerNotFound,
    find_server,
    free_port,
    replica_of,
    wait_for_replica,
    wait_until,
)

SECRET = "s3cr3t"
ERROR, WARNING, HINT = Severity


def app_at(url, **conf):
    app = Celery(NAMESPACE, broker=url, set_as_current=False)
    app.conf.update(conf)
    return app


def found(app):
    report = examine(app)
    assert SECRET not in repr(report)
    return {(each.severity, each.name) for each in report.findings}


def keep_a_ledger(server):
    place = RedisPlace(server, "redis")
    register(place.node(), "tidy")
    place.node().claim([])
    place.client.hdel(place.keys["marks"], "began")  # it has been at work for long
    return place.client


@pytest.fixture
def server(redis_server):
    keep_a_ledger(redis_server).close()
    return redis_server


@pytest.fixture
def admin(server):
    with server.client() as client:
        yield client


def test_a_server_that_keeps_all_gives_no_finding(server):
    assert found(app_at(server.url)) == set()


def test_a_valkey_server_is_told_as_one():
    try:
        binary = find_server(("bundled",))
    except ServerNotFound:
        binary = None
    require("the bundled valkey-server", binary)
    with Server(binary=binary, appendonly=True) as server, keep_a_ledger(server) as admin:
        report = examine(app_at(server.url))
        assert report.findings == []
        assert report.facts["server"].startswith("Valkey ")
        app = as_user(server, admin, "~*", "&*", "+@all", "-zadd", "-info")
        assert found(app) == {
            (ERROR, "rights"),
            (HINT, "no-identity"),
            (HINT, "settings-unknown"),
        }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"maxmemory": "1gb", "maxmemory-policy": "noeviction"}, set()),
        ({"maxmemory": "1gb", "maxmemory-policy": "volatile-lru"}, set()),
        ({"maxmemory": "0", "maxmemory-policy": "allkeys-lru"}, set()),
        ({"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}, {(WARNING, "eviction")}),
        ({"maxmemory-policy": "noeviction", "maxmemory": "1"}, {(ERROR, "memory-full")}),
        ({"appendfsync": "everysec"}, set()),
        ({"appendfsync": "no"}, {(WARNING, "fsync-off")}),
        ({"appendonly": "no"}, {(WARNING, "no-persistence")}),
        ({"appendonly": "no", "save": "3600 1"}, {(HINT, "snapshots-only")}),
    ],
    ids=str,
)
def test_settings(server, admin, settings, expected):
    for name, value in settings.items():
        admin.config_set(name, value)
    assert found(app_at(server.url)) == expected


def test_a_memory_that_is_nearly_full(server, admin):
    admin.set("ballast", "x" * 50_000_000)
    admin.config_set("maxmemory-policy", "noeviction")
    admin.config_set("maxmemory", int(admin.info("memory")["used_memory"] * 1.05))
    assert found(app_at(server.url)) == {(WARNING, "memory-nearly-full")}


@pytest.mark.slow
def test_a_server_that_cannot_save(server, admin):
    admin.config_set("save", "1 1")
    (server.directory / "dump.rdb").mkdir()
    admin.bgsave()
    wait_until(
        lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "err", 10, "a failed save"
    )
    assert found(app_at(server.url)) == {(ERROR, "cannot-save")}
    admin.config_set("stop-writes-on-bgsave-error", "no")
    assert found(app_at(server.url)) == {(WARNING, "cannot-save")}


def good_replicas(client):
    return client.info("replication").get("min_slaves_good_slaves")


@pytest.mark.slow
def test_a_primary_that_would_go_on_without_its_replica_and_the_replica(server, admin):
    with replica_of(server, appendonly=True) as replica:
        wait_for_replica(replica)
        assert found(app_at(server.url)) == {(WARNING, "split-brain"), (HINT, "identity")}
        keep_a_ledger(server).close()
        assert found(app_at(server.url)) == {(WARNING, "split-brain")}
        admin.config_set("min-replicas-to-write", 1)
        wait_until(lambda: good_replicas(admin) == 1, 20, "the replica's word")
        assert found(app_at(server.url)) == set()
        admin.config_set("min-replicas-max-lag", 0)
        assert found(app_at(server.url)) == {(WARNING, "split-brain")}
        admin.config_set("min-replicas-max-lag", 10)
        report = examine(app_at(replica.url))
        assert [(each.severity, each.name) for each in report.findings] == [(ERROR, "replica")]
        assert f"127.0.0.1:{server.port}" in report.findings[0].meaning
        assert ", replica," in report.facts["server"]


def test_too_few_replicas(server, admin):
    admin.config_set("min-replicas-to-write", 1)
    (finding,) = examine(app_at(server.url)).findings
    assert (finding.severity, finding.name) == (ERROR, "no-writes")
    assert "fewer replicas" in finding.meaning


def test_a_node_of_a_cluster():
    with Server(appendonly=True, extra=("--cluster-enabled", "yes")) as server:
        assert found(app_at(server.url)) == {(WARNING, "cluster-node"), (ERROR, "unavailable")}


def test_nobody_listens():
    (finding,) = examine(app_at(f"redis://:{SECRET}@127.0.0.1:{free_port()}/0")).findings
    assert (finding.severity, finding.name) == (ERROR, "unavailable")
    assert "nothing listens" in finding.meaning
    assert SECRET not in finding.subject


def test_a_wrong_password():
    with Server(appendonly=True, password="right") as server:
        app = app_at(f"redis://:{SECRET}@127.0.0.1:{server.port}/0")
        (finding,) = examine(app).findings
    assert "refuses our user or password" in finding.meaning
    assert SECRET not in repr(finding)


@pytest.mark.slow
def test_sentinels_lead_to_the_primary_and_are_none_themselves(sentinels):
    with sentinels.current().client() as client:
        client.config_set("min-replicas-to-write", 1)
        wait_until(lambda: good_replicas(client) == 1, 20, "the replica's word")
    app = app_at(sentinels.url, broker_transport_options=sentinels.transport_options)
    assert found(app) == {(WARNING, "no-persistence"), (HINT, "no-ledger")}
    wrong = f"redis://127.0.0.1:{sentinels.sentinels[0].port}/0"
    assert found(app_at(wrong)) == {(ERROR, "sentinel")}


def test_a_server_that_has_no_config():
    with Server(appendonly=True, extra=("--rename-command", "CONFIG", "")) as server:
        keep_a_ledger(server).close()
        (finding,) = examine(app_at(server.url)).findings
    assert (finding.severity, finding.name) == (HINT, "settings-unknown")
    assert finding.subject == "CONFIG GET"
    assert "+config|get" in finding.advice


def as_user(server, admin, *rules):
    admin.execute_command("ACL", "SETUSER", "beat", "reset", "on", f">{SECRET}", *rules)
    return app_at(f"redis://beat:{SECRET}@127.0.0.1:{server.port}/0")


WIDE = ("~*", "&*", "+@all")


def test_a_user_that_may_not_see_the_settings(server, admin):
    assert found(as_user(server, admin, *WIDE, "-config")) == {(HINT, "settings-unknown")}


def test_a_user_that_may_not_ask_for_anything_but_the_replication(server, admin):
    app = as_user(server, admin, *WIDE, "-config", "-info", "+info|replication")
    assert found(app) == {(HINT, "settings-unknown")}


def test_a_user_that_may_not_ask_who_the_server_is(server, admin):
    app = as_user(server, admin, *WIDE, "-config", "-info")
    assert found(app) == {(HINT, "settings-unknown"), (HINT, "no-identity")}


def test_a_user_that_may_not_keep_the_history_sends_all_the_same(server, admin):
    app = as_user(server, admin, *WIDE, "-xadd")
    (finding,) = examine(app).findings
    assert (finding.severity, finding.name) == (WARNING, "rights")
    assert finding.examples == ("the command XADD",)
    assert "all else goes on" in finding.meaning


def test_a_user_that_may_not_measure_the_history(server, admin):
    place = RedisPlace(server, "redis")
    node = place.node()
    place.client.hdel(place.keys["marks"], "began")
    (tick,) = due_ticks(place, node)
    node.settle([Settlement(grant(node, tick), SENT)])
    app = as_user(server, admin, *WIDE, "-xlen")
    (finding,) = examine(app).findings
    place.close()
    assert (finding.severity, finding.name, finding.subject) == (HINT, "not-looked-at", "XLEN")


def test_a_user_without_transactions(server, admin):
    assert found(as_user(server, admin, *WIDE, "-multi")) == {(HINT, "rights-unknown")}


def test_a_user_that_may_not_scan(server, admin):
    app = as_user(server, admin, *WIDE, "-hscan", "-zscan", "-type", "-pttl", "-scan")
    report = examine(app)
    (hint, error) = sorted(report.findings, key=lambda each: each.name)
    assert (hint.severity, hint.name) == (HINT, "not-looked-at")
    assert hint.subject == "TYPE, PTTL, ZSCAN, HSCAN"
    assert (error.severity, error.name) == (ERROR, "rights")
    assert error.examples == ("the command TYPE",)


@pytest.mark.parametrize(
    ("rules", "lacking"),
    [
        (("+@all", "-hset", "-evalsha", "~*"), ["the command EVALSHA", "the command HSET"]),
        (("+@all", "~celery"), [f"the key {{redlock:{NAMESPACE}}}:marks"]),
        (("+@all", f"~{{redlock:{NAMESPACE}}}:*"), ["the key celery"]),
        (("+@all", "-@scripting", "~*"), ["the command EVAL", "the command EVALSHA"]),
    ],
    ids=str,
)
def test_rights_that_are_missing_are_granted_by_the_line_that_is_advised(
    server, admin, rules, lacking
):
    app = as_user(server, admin, "&*", *rules)
    (finding,) = [each for each in examine(app).findings if each.name == "rights"]
    assert finding.severity is ERROR
    assert set(lacking) <= set(finding.examples), finding.examples
    assert finding.advice.startswith("ACL SETUSER beat ")
    admin.execute_command(*finding.advice.split())
    assert found(app) == set()


def test_trying_rights_changes_nothing_and_leaves_no_transaction_behind(server, admin):
    before = {key: admin.dump(key) for key in admin.scan_iter()}
    app = app_at(server.url)
    examine(app)
    examine(app)
    assert {key: admin.dump(key) for key in admin.scan_iter()} == before
    assert all(each["multi"] == "-1" for each in admin.client_list())


def test_a_ledger_beside_a_broker_of_another_kind(server):
    report = examine(app_at("amqp://", redlock_beat_url=server.url))
    assert report.findings == []
    assert report.facts["delivery"].startswith("publish, at least once")
    assert "the broker is amqp, not Redis" in report.facts["delivery"]


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"redlock_beat_lese": 3}, "did you mean redlock_beat_lease?"),
        ({"redlock_beat_lease": 0.1}, "must be longer than redlock_beat_socket_timeout"),
        ({"broker_url": "amqp://"}, "redlock_beat_url is not set"),
        ({"broker_url": f"redis://:{SECRET}/@h:1/0"}, "cannot be read as a URL"),
        ({"timezone": "Mars/Base"}, "timezone"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_work_is_an_error(conf, told):
    (finding,) = examine(app_at("redis://h:1/0", **conf)).findings
    assert (finding.severity, finding.name) == (ERROR, "setting")
    assert told in finding.meaning
    assert SECRET not in finding.meaning


def test_a_ledger_in_memory_is_not_examined():
    assert found(app_at("memory://", redlock_beat_url="memory://")) == {(HINT, "memory")}


def test_eager_tasks(server):
    assert found(app_at(server.url, task_always_eager=True)) == {(WARNING, "eager")}


def printed(app, *args):
    context = CLIContext(app, no_color=True, workdir=None)
    return CliRunner().invoke(doctor, list(args), obj=context)


def test_the_command_prints_findings_and_exits_by_the_worst(server, admin):
    app = app_at(server.url)
    result = printed(app)
    assert result.exit_code == 0
    assert result.output.endswith("\nNothing is wrong.\n")
    admin.config_set("appendfsync", "no")
    result = printed(app)
    assert result.exit_code == 1
    assert "warning  fsync-off: appendfsync\n" in result.output
    assert result.output.endswith("\n0 errors, 1 warning, 0 hints\n")
    admin.hset(f"{{redlock:{NAMESPACE}}}:marks", "e:tidy", "rubbish")
    result = printed(app)
    assert result.exit_code == 2
    assert "           - tidy: 'rubbish'\n" in result.output
    admin.config_set("appendfsync", "always")
    admin.delete(f"{{redlock:{NAMESPACE}}}:nodes", f"{{redlock:{NAMESPACE}}}:marks")
    admin.flushall()
    result = printed(app)
    assert result.exit_code == 0
    assert "hint     no-ledger" in result.output


def test_the_command_prints_json(server, admin):
    admin.config_set("appendfsync", "no")
    result = printed(app_at(server.url), "--json")
    told = json.loads(result.output)
    assert result.exit_code == 1
    assert told["counts"] == {"errors": 0, "warnings": 1, "hints": 0}
    (finding,) = told["findings"]
    assert finding["name"] == "fsync-off"
    assert finding["severity"] == "warning"
    assert set(finding) == {
        "severity", "name", "subject", "meaning", "advice", "examples", "count"
    }  # fmt: skip
    assert told["facts"]["nodes"] == "1 alive"
