"""``celery redlock verify`` as users run it: real nodes, real faults, and nothing left behind."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from celery_redlock_beat.testing.server import DEMO_ORDER, Child, Server, wait_until
from support.certificates import Authority, TlsServer, has_openssl, speaks_tls
from support.cluster import Cluster
from support.requirements import require
from support.servers import binary_of, have_server

pytestmark = pytest.mark.timeout(180)

SHORT = ("--minutes", "0.2")
CODE = "from celery_redlock_beat.cli import redlock; redlock()"


@pytest.fixture
def start_verify(tmp_path, temporary):
    child = Child(tmp_path / "output.log")

    def start(*words, **env):
        command = [sys.executable, "-c", CODE, "verify", *words]
        own = {"TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1", "COLUMNS": "80"}
        child.launch(command, cwd=tmp_path, env=own | env)
        return child

    yield start
    child.stop()


def ended(child: Child, limit: float = 150) -> int:
    assert child.process is not None
    return child.process.wait(limit)


def nothing_is_left(temporary: Path) -> bool:
    """No file, and no process that works there (none is seen where there is no /proc)."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(temporary):
                return False
        except OSError:  # it has just ended, or is not ours
            continue
    return not list(temporary.iterdir())


def test_three_nodes_with_faults_send_each_tick_once_and_leave_nothing(
    shared_redis, start_verify, temporary
):
    with shared_redis.client() as client:
        client.mset({"users": 1, "celery": 2})
        verify = start_verify("--url", shared_redis.url, *SHORT, "--seed", "7", "--verbose")
        assert ended(verify) == 0, verify.log
        assert {key.decode() for key in client.scan_iter()} == {"users", "celery"}
    assert re.search(r"^(Redis|Valkey) [\d.]+ \(standalone\) at redis://", verify.log, re.MULTILINE)
    assert re.search(
        r"^Every key begins with redlock-verify-\w+:; all are deleted", verify.log, re.MULTILINE
    )
    assert re.search(r"^ +[\d.]+ s  (kill|pause|restart|cut) node \d for", verify.log, re.MULTILINE)
    assert re.search(r"^Deleted \d+ keys\.", verify.log, re.MULTILINE)
    assert re.search(r"^every second +\d+ +\d+ +0 +0 +\d+ +0 +0 +0 *$", verify.log, re.MULTILINE)
    found = re.search(r"^✔ (\d+) ticks were due: each was sent once", verify.log, re.MULTILINE)
    assert found, verify.log
    assert int(found[1]) > 7 * 12
    assert max(len(line.rstrip()) for line in verify.log.splitlines()) <= 100
    assert nothing_is_left(temporary)


def test_a_message_that_comes_twice_is_found_and_named(shared_redis, start_verify, temporary):
    with shared_redis.client() as client:
        words = ("--url", shared_redis.url, *SHORT, "--faults", "none", "--json")
        verify = start_verify(*words)
        doubled = push_one_again(client)
        assert ended(verify) == 1, verify.log
        assert client.dbsize() == 0
    report = json.loads(verify.log[verify.log.index("{\n") :])
    assert report["verdict"] == "bad"
    assert report["ticks"] == [f"doubled: {doubled}"]
    assert (report["totals"]["doubled"], report["totals"]["lost"]) == (1, 0)
    assert report["sentence"].endswith("1 doubled.")
    assert nothing_is_left(temporary)


def push_one_again(client) -> str:
    """Copy a message into the queue of the run once more; return its tick."""

    def kept():
        return list(client.scan_iter("redlock-verify-*:queue.collected"))

    wait_until(kept, 60, "the first messages")
    (key,) = kept()
    message = client.lindex(key, 0)
    client.lpush(key.removesuffix(b".collected"), message)
    headers = json.loads(message)["headers"]
    instant = headers["redlock_tick"].replace(".000000", "")
    return f"{headers['redlock_entry']} @ {instant}"


@pytest.mark.slow
def test_a_message_that_is_taken_away_is_lost(shared_redis, start_verify):
    with shared_redis.client() as client:
        verify = start_verify("--url", shared_redis.url, *SHORT, "--faults", "none")
        stolen = steal_one(client)
        assert ended(verify) == 1, verify.log
        assert client.dbsize() == 0
    assert f"lost: {stolen}" in verify.log
    assert re.search(
        r"^✘ .* 1 lost, 1 ticks counted as sent that did not come", verify.log, re.MULTILINE
    )


def steal_one(client) -> str:
    """Take a message before the collector does; return its tick."""
    ended_by = threading.Timer(60, lambda: None)
    ended_by.start()
    while ended_by.is_alive():
        for key in client.scan_iter("redlock-verify-*:queue.collected"):
            message = client.execute_command("BRPOP", key.removesuffix(b".collected"), 2)
            if message:
                ended_by.cancel()
                headers = json.loads(message[1])["headers"]
                return f"{headers['redlock_entry']} @ {headers['redlock_tick']}".replace(
                    ".000000", ""
                )
    raise AssertionError("no message was to be had")


def test_a_wrong_password_is_told_in_one_line(start_verify, temporary):
    with Server(password="right") as server:
        url = server.url.replace("right", "wrong")
        verify = start_verify("--url", url, *SHORT)
        assert ended(verify, 60) == 1
    assert "It could not be run: redis://127.0.0.1:" in verify.log
    assert "the server refuses our user or password" in verify.log
    assert "wrong" not in verify.log
    assert "Traceback" not in verify.log
    assert nothing_is_left(temporary)


def test_a_user_who_may_not_write_is_told_so(redis_server, start_verify, temporary):
    with redis_server.client() as client:
        client.execute_command("ACL SETUSER reader on >secret ~shop:* +@all")
    url = redis_server.url.replace("redis://", "redis://reader:secret@")
    verify = start_verify("--url", url, *SHORT)
    assert ended(verify, 60) == 1
    assert "the server forbids our user a command or a key" in verify.log
    assert nothing_is_left(temporary)


@pytest.mark.parametrize("moment", ["Every key begins", "nodes take part"])
def test_ctrl_c_ends_it_soon_and_leaves_nothing(shared_redis, start_verify, temporary, moment):
    verify = start_verify("--url", shared_redis.url, "--minutes", "1")
    wait_until(lambda: moment in verify.log or not verify.alive, 60, moment)
    assert verify.process is not None
    verify.process.send_signal(signal.SIGINT)
    assert ended(verify, 20) == 128 + signal.SIGINT, verify.log
    assert "Ended before its time." in verify.log
    assert "Traceback" not in verify.log
    with shared_redis.client() as client:
        assert client.dbsize() == 0
    assert nothing_is_left(temporary)


@pytest.mark.slow
def test_the_redis_of_an_app_is_used_behind_its_own_prefix(shared_redis, start_verify, tmp_path):
    project = f"""
from celery import Celery
app = Celery("shop", broker={shared_redis.url!r})
app.conf.broker_transport_options = {{"global_keyprefix": "shop:"}}
"""
    (tmp_path / "shop.py").write_text(project)
    child = Child(tmp_path / "app.log")
    words = ["-A", "shop", "redlock", "verify", *SHORT, "--faults", "kill,pause", "--nodes", "2"]
    with_group = (
        "from celery.bin.celery import celery; from celery_redlock_beat.cli import redlock; "
        "celery.add_command(redlock); celery()"
    )
    child.launch([sys.executable, "-c", with_group, *words], cwd=tmp_path)
    try:
        assert ended(child) == 0, child.log
    finally:
        child.stop()
    assert re.search(r"^Every key begins with shop:redlock-verify-\w+:", child.log, re.MULTILINE)
    with shared_redis.client() as client:
        assert client.dbsize() == 0


@pytest.mark.slow
def test_what_is_in_the_environment_does_not_lead_the_nodes_elsewhere(shared_redis, start_verify):
    elsewhere = dict.fromkeys(
        ("CELERY_BROKER_URL", "CELERY_BROKER_WRITE_URL", "BROKER_URL", "CELERY_BROKER"),
        "redis://127.0.0.1:1/0",
    )
    more = {"DJANGO_SETTINGS_MODULE": "no.such", "CELERY_CONFIG_MODULE": "no.such"}
    words = ("--url", shared_redis.url, "--minutes", "0.1", "--faults", "none", "--nodes", "2")
    verify = start_verify(*words, **elsewhere, **more)
    assert ended(verify) == 0, verify.log


@pytest.mark.slow
def test_a_sentinel_is_asked_for_its_primary(sentinels, start_verify, tmp_path):
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in sentinels.sentinels)
    words = ("--url", f"redis+sentinel://{hosts}/{sentinels.service}/0", *SHORT)
    verify = start_verify(*words, "--nodes", "2", "--logs", str(tmp_path / "logs"))
    assert ended(verify) == 0, verify.log
    assert "cut" not in verify.log
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"node-1.log", "node-2.log"}
    with sentinels.current().client() as client:
        assert client.dbsize() == 0


@pytest.mark.slow
def test_messages_can_go_to_another_redis_than_the_ledger(
    shared_redis, redis_server, start_verify, temporary
):
    words = ("--url", redis_server.url, "--broker-url", shared_redis.url, *SHORT)
    verify = start_verify(*words, "--logs", str(temporary.parent / "logs"))
    assert ended(verify) == 0, verify.log
    log = (temporary.parent / "logs" / "node-1.log").read_text()
    assert "publish, at least once with the same task id" in log
    for server in (shared_redis, redis_server):
        with server.client() as client:
            assert client.dbsize() == 0


@pytest.mark.slow
def test_a_cluster_holds_the_ledger_and_another_redis_the_messages(shared_redis, start_verify):
    with Cluster(binary_of("redis"), replicas=False) as cluster:
        url = f"redis+cluster://{cluster.hosts}"
        words = ("--url", url, "--broker-url", shared_redis.url, *SHORT, "--nodes", "2")
        verify = start_verify(*words)
        assert ended(verify) == 0, verify.log
        assert "(cluster) at redis+cluster://" in verify.log
        assert [node.ask("DBSIZE") for node in cluster.masters] == [0, 0, 0]
    with shared_redis.client() as client:
        assert client.dbsize() == 0


@pytest.mark.slow
def test_it_speaks_tls_with_a_certificate_of_its_own(start_verify, tmp_path):
    require("openssl", has_openssl())
    authority = Authority(tmp_path)
    shown, own = authority.issue("server", "IP:127.0.0.1"), authority.issue("client")
    require("a server with TLS", speaks_tls(binary_of("redis"), authority, shown))
    with TlsServer(authority=authority, shown=shown) as server:
        words = ("--minutes", "0.1", "--nodes", "2", "--faults", "pause")
        verify = start_verify("--url", server.tls_url(own), *words)
        assert ended(verify) == 0, verify.log
        with server.client() as client:
            assert client.dbsize() == 0


@pytest.mark.slow
def test_a_server_of_its_own_can_be_used(start_verify, temporary):
    require("redis-server", have_server(DEMO_ORDER))
    verify = start_verify("--embedded", "--minutes", "0.1", "--faults", "pause", "--nodes", "2")
    assert ended(verify) == 0, verify.log
    assert nothing_is_left(temporary)
