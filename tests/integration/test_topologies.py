"""Every shape that a Redis may have for the ledger, with real servers; in short.

What happens when they fail is shown by the tests of chaos.
"""

from __future__ import annotations

import ssl
import time
from types import SimpleNamespace

import pytest

from celery_redlock_beat.errors import LedgerRecovering, LedgerUnavailable
from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.store.eviction import eviction_warning
from support import node_here
from support.certificates import Authority, TlsServer, has_openssl, speaks_tls, tls_query
from support.cluster import Cluster, slot_of
from support.every_second import FIVE, RECORD, RUNS, every_second
from support.node_here import NodeHere, ledger_at, located
from support.nodes import WorkerNode
from support.requirements import require
from support.servers import KINDS, Sentinel, SentinelTrio, Server, binary_of, free_port, wait_until
from support.trial import Trial

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2}
RECORDED = {"schedule": every_second(FIVE, "proj.record"), "extra": RECORD, "queue": RUNS}
SECRET = "s3cr3t"
WAIT = node_here.QUICK["redlock_beat_socket_timeout"]


@pytest.fixture(params=KINDS)
def binary(request):
    return binary_of(request.param)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Make what the tests of TLS show to each other, once."""
    require("openssl", has_openssl())
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    shown = authority.issue("server", "IP:127.0.0.1", "DNS:redis.example")
    require("a server with TLS", speaks_tls(binary_of("redis"), authority, shown))
    return SimpleNamespace(
        authority=authority,
        shown=shown,
        own=authority.issue("client"),
        stranger=Authority(tmp_path_factory.mktemp("others"), "stranger"),
    )


@pytest.fixture
def tls_server(certificates):
    with TlsServer(authority=certificates.authority, shown=certificates.shown) as server:
        yield server


def answers(ledger):
    """Tell whether a script was run, whatever it said."""
    try:
        ledger.claim([])
    except LedgerRecovering:
        return True
    except LedgerUnavailable:
        return False
    return True


def refusal(target):
    ledger = ledger_at(target) if isinstance(target, str) else target
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.claim([])
    assert SECRET not in str(caught.value)
    return caught.value


# A unix socket


def test_a_unix_socket_is_entered_with_user_password_and_database(binary, caplog):
    with Server(unixsocket="redis.sock", binary=binary) as server, server.client() as client:
        client.execute_command("ACL", "SETUSER", "beat", "on", f">{SECRET}@/", "~*", "&*", "+@all")
        url = f"redis+socket://beat:{SECRET}%40%2F@{server.unixsocket}?virtual_host=3"
        for ledger, broker in ((None, url), (url, "memory://")):
            with NodeHere(ledger, broker) as node:
                assert "/redis.sock?virtual_host=3 " in node.scheduler.info
                node.go_on()
        assert list(client.info("keyspace")) == ["db3"]
    assert SECRET not in caplog.text


# TLS


@pytest.mark.slow
def test_beat_and_a_worker_speak_tls_with_a_certificate_of_their_own(
    tls_server, certificates, tmp_path
):
    url = tls_server.tls_url(certificates.own)
    trial = Trial(tmp_path, tls_server, url=url, config=QUICK, nodes=1, **RECORDED)
    with trial, WorkerNode(tmp_path):
        trial.go_on(1)
        assert "ledger -> rediss://127.0.0.1" in trial.nodes[0].log
        assert "delivery -> enqueue" in trial.nodes[0].log
        account = trial.conclude(exact=False)
    assert account.faults == {}


def test_a_broker_with_tls_in_celerys_own_setting_is_entered_by_the_ledger(
    tls_server, certificates
):
    tls = {
        "ssl_ca_certs": str(certificates.authority.certificate),
        "ssl_certfile": str(certificates.own.certificate),
        "ssl_keyfile": str(certificates.own.key),
    }
    broker = f"rediss://127.0.0.1:{tls_server.tls_port}/0"
    assert located(None, broker=broker).label == broker
    assert answers(ledger_at(None, broker=broker, broker_use_ssl=tls))


def test_the_ledger_alone_speaks_tls(tls_server, certificates):
    with NodeHere(tls_server.tls_url(certificates.own)) as node:
        node.go_on()


def test_an_authority_that_is_not_trusted_is_told_with_the_way_out(tls_server, certificates):
    told = refusal(tls_server.tls_url(certificates.own, certificates.stranger))
    assert "signed by no authority that we trust" in told.problem
    assert "ssl_ca_certs" in told.advice
    unset = refusal(f"rediss://127.0.0.1:{tls_server.tls_port}/0")
    assert "ssl_ca_certs" in unset.advice


@pytest.mark.parametrize(
    "lacking", ["CA cert does not include key usage extension", "Missing Authority Key Identifier"]
)
def test_a_certificate_that_only_newer_pythons_refuse_is_not_taken_for_a_strangers(lacking):
    verified = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {lacking}"
    told = unavailable(ssl.SSLCertVerificationError(verified))
    assert "lacks what the standard demands" in told.problem
    assert "3.13" in told.advice


def test_a_certificate_for_another_host_is_told_with_the_way_out(tls_server, certificates):
    told = refusal(tls_server.tls_url(certificates.own, host="localhost"))
    assert "for another host" in told.problem
    assert "localhost" in told.problem
    assert "ssl_check_hostname" in told.advice


def test_a_server_that_wants_a_certificate_of_ours_is_told_as_one(tls_server, certificates):
    url = tls_server.tls_url(None)
    # The server closes behind its reason: which of the two is read first is left to chance.
    wait_until(lambda: "ssl_certfile and ssl_keyfile" in refusal(url).advice, 10, "its reason")


# Sentinel


def test_the_ledger_is_found_through_sentinels_that_have_a_password_of_their_own(binary, caplog):
    with SentinelTrio(binary=binary, password=SECRET, own_password="other") as trio:
        place = f"redis+sentinel://:{SECRET}@{trio.hosts}/{trio.service}/0"
        for wrong in (place, f"{place}?sentinel_password={SECRET}"):
            told = refusal(wrong)
            assert "the sentinels refuse our user or password" in told.problem
            assert "sentinel_password" in told.advice
        unknown = refusal(f"redis+sentinel://:{SECRET}@{trio.hosts}/x?sentinel_password=other")
        assert "knows no primary of that name" in unknown.problem
        with NodeHere(f"{place}?sentinel_password=other") as node:
            node.go_on()
            trio.failover()
            node.go_on()
    assert SECRET not in caplog.text


def test_sentinels_and_the_ledger_speak_tls(tls_server, certificates):
    files = certificates.shown
    more = (
        f"tls-port {free_port()}",
        "tls-replication yes",
        f"tls-cert-file {files.certificate}",
        f"tls-key-file {files.key}",
        f"tls-ca-cert-file {certificates.authority.certificate}",
    )
    master = SimpleNamespace(port=tls_server.tls_port)
    with Sentinel(master, "main", 5000, more=more):
        place = f"rediss+sentinel://127.0.0.1:{more[0].split()[1]}/main/0"
        with NodeHere(f"{place}?{tls_query(certificates.authority, certificates.own)}") as node:
            node.go_on()
        told = refusal(f"{place}?{tls_query(certificates.stranger, certificates.own)}")
        assert "also the certificates" in told.advice


# Cluster


@pytest.fixture(scope="module", params=KINDS)
def cluster(request):
    with Cluster(binary_of(request.param), replicas=False) as cluster:
        yield cluster


@pytest.fixture
def empty_cluster(cluster):
    for node in cluster.masters:
        node.ask("FLUSHALL")
    return cluster


def url_of(cluster):
    return f"redis+cluster://{cluster.hosts}"


def test_the_ledger_lives_in_a_cluster_with_all_keys_in_one_slot(empty_cluster):
    with NodeHere(url_of(empty_cluster)) as node:
        node.go_on()
    owner = empty_cluster.owner(slot_of("proj"))
    holders = [each for each in empty_cluster.masters if each.ask("DBSIZE")]
    assert holders == [owner]


def test_each_node_of_a_cluster_leads_to_the_others(empty_cluster):
    for node in empty_cluster.masters:
        assert answers(ledger_at(f"redis-cluster://127.0.0.1:{node.port}"))


def test_a_slot_that_moves_is_followed_to_a_node_that_came_later(empty_cluster):
    slot, ledger = slot_of("proj"), ledger_at(url_of(empty_cluster))

    def says_it_moves():
        told = refusal(ledger)
        assert "is moving our keys" in told.problem
        assert "wait" in told.advice

    with NodeHere(url_of(empty_cluster)) as node:
        node.go_on()
        assert answers(ledger)
        target = empty_cluster.add_master()
        source = empty_cluster.begin_move(slot, target)
        says_it_moves()
        half = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1)
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *half)
        says_it_moves()
        before = node.sent
        node.pass_for(0.5)
        assert node.sent == before
        assert empty_cluster.move_keys(slot, source, target)
        says_it_moves()
        empty_cluster.end_move(slot, source, target)
        assert answers(ledger)
        node.go_on()


def test_a_client_of_a_cluster_can_be_disconnected_as_any_other(empty_cluster):
    with located(url_of(empty_cluster)).connect() as client:
        assert client.ping()
        client.connection_pool.disconnect()
        assert client.ping()


def test_a_script_that_a_node_does_not_know_is_sent_to_it(empty_cluster):
    ledger = ledger_at(url_of(empty_cluster))
    assert answers(ledger)
    empty_cluster.owner(slot_of("proj")).ask("SCRIPT", "FLUSH")
    assert answers(ledger)


def test_the_policy_of_a_clusters_node_is_looked_at(empty_cluster):
    with located(url_of(empty_cluster)).connect() as client:
        assert eviction_warning(client) is None


def test_a_plain_url_of_a_clusters_node_is_told_how_to_write_it(empty_cluster):
    owner = empty_cluster.owner(slot_of("proj"))
    other = next(
        node for node in empty_cluster.masters if node is not owner and node.ask("DBSIZE") == 0
    )
    told = refusal(other.url)
    assert "a node of a Redis Cluster" in told.problem
    assert "redis+cluster://" in told.advice


def test_a_server_that_is_in_no_cluster_is_told_as_one(shared_redis):
    told = refusal(f"redis+cluster://127.0.0.1:{shared_redis.port}")
    assert "not in cluster mode" in told.problem
    assert "redis://" in told.advice


def test_a_wrong_password_of_a_cluster_is_told_as_one(empty_cluster):
    told = refusal(f"redis+cluster://nobody:{SECRET}@{empty_cluster.hosts}")
    assert "refuses our user or password" in told.problem


def test_a_node_that_stands_still_costs_one_wait(empty_cluster):
    ledger = ledger_at(url_of(empty_cluster))
    assert answers(ledger)
    owner = empty_cluster.owner(slot_of("proj"))
    owner.freeze()
    try:
        began = time.monotonic()
        assert "did not answer in time" in refusal(ledger).problem
        assert time.monotonic() - began < 2 * WAIT
    finally:
        owner.thaw()
    wait_until(lambda: answers(ledger), 20, "the cluster")


def test_nodes_that_are_all_away_are_found_again_under_the_urls_addresses(empty_cluster):
    ledger = ledger_at(url_of(empty_cluster))
    assert answers(ledger)
    for server in empty_cluster.masters:
        server.kill()
    for _ in range(2):
        assert "nothing listens" in refusal(ledger).problem
    for server in empty_cluster.masters:
        server.start()
    wait_until(lambda: answers(ledger), 20, "the cluster")


def test_a_cluster_speaks_tls(certificates):
    files = {"authority": certificates.authority, "shown": certificates.shown}
    with Cluster(binary_of("redis"), replicas=False, **files) as cluster:
        hosts = ",".join(f"127.0.0.1:{node.tls_port}" for node in cluster.masters)
        url = f"rediss+cluster://{hosts}?{tls_query(certificates.authority, certificates.own)}"
        assert answers(ledger_at(url))
        told = refusal(f"rediss+cluster://{hosts}?{tls_query(certificates.stranger, None)}")
        assert "signed by no authority" in told.problem
