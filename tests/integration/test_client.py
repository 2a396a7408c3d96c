"""Where the ledger's Redis is found, for every way to write it; without any server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pytest
from celery import Celery
from kombu import Connection
from kombu.transport.redis import Channel, Transport
from redis import CredentialProvider, SSLConnection, UnixDomainSocketConnection

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store.client import check_broker_url, locate

SECRET = "s3cr3t"
CREDENTIALS = f"u:{SECRET}@"


@dataclass
class Given:
    url: str | None = None
    socket_timeout: float = 1.0
    transport_options: dict[str, Any] = field(default_factory=dict)


class Tokens(CredentialProvider):
    def get_credentials(self):
        return ("u", SECRET)


class OwnChannel(Channel):
    pass


class OwnTransport(Transport):
    Channel = OwnChannel


def found(broker, url=None, *, transport_options=None, **conf):
    app = Celery("shop", broker=broker, set_as_current=False)
    app.conf.update(conf)
    return locate(app, Given(url, transport_options=transport_options or {}))


def wire(server):
    return server.connect().connection_pool.connection_kwargs


MASTER = {"broker_transport_options": {"master_name": "main"}}
STYLES = [
    (f"redis://{CREDENTIALS}host:6380/3", {}, "redis://u@host:6380/3"),
    (f"redis://:{SECRET}@host", {}, "redis://host:6379/0"),
    (f"redis://:{SECRET}%40%2F@host/1", {}, "redis://host:6379/1"),
    (f"rediss://{CREDENTIALS}host/2?ssl_cert_reqs=required", {}, "rediss://u@host:6379/2"),
    (
        f"redis+socket://{CREDENTIALS}/run/r.sock?virtual_host=2",
        {},
        "redis+socket://u@/run/r.sock?virtual_host=2",
    ),
    (
        f"sentinel://{CREDENTIALS}a:1/2;sentinel://{CREDENTIALS}b:2/2",
        MASTER,
        "sentinel://u@a:1/2;sentinel://u@b:2/2 (main)",
    ),
    (f"sentinel://{CREDENTIALS}a/2", MASTER, "sentinel://u@a:26379/2 (main)"),
]


@pytest.mark.parametrize(("broker", "conf", "label"), STYLES, ids=[each[2] for each in STYLES])
def test_a_redis_broker_is_the_ledger_and_its_label_holds_no_password(broker, conf, label):
    server = found(broker, **conf)
    assert server.label == label
    assert server.is_broker
    assert not server.why_not
    assert SECRET not in f"{server!r}{server}{server.label}"
    assert SECRET in wire(server)["password"]


@pytest.mark.parametrize(("url", "conf", "label"), STYLES, ids=[each[2] for each in STYLES])
def test_the_url_of_the_setting_is_written_in_the_same_ways(url, conf, label):
    options = conf.get("broker_transport_options", {})
    server = found("amqp://", url, transport_options=options)
    assert server.label == label
    assert server.why_not == "the broker is amqp, not Redis"
    assert not server.is_broker


@pytest.mark.parametrize("url", ["unix:///r.sock?db=4", "socket:///r.sock?virtual_host=4"])
def test_a_unix_socket_has_several_names(url):
    server = found("amqp://", url)
    assert server.label == "redis+socket:///r.sock?virtual_host=4"
    assert server.connect().connection_pool.connection_class is UnixDomainSocketConnection
    assert wire(server)["db"] == 4


@pytest.mark.parametrize(
    ("broker", "conf"), [(broker, conf) for broker, conf, _ in STYLES], ids=[s[2] for s in STYLES]
)
def test_the_client_waits_a_second_and_retries_nothing(broker, conf):
    told = wire(found(broker, **conf))
    assert told["socket_timeout"] == 1.0
    assert told.get("socket_connect_timeout", 1.0) == 1.0
    assert told["retry"].get_retries() == 0 if hasattr(told["retry"], "get_retries") else True
    assert told["protocol"] == 2
    assert "retry_on_timeout" not in told


def test_the_nodes_of_sentinel_are_asked_once_too():
    options = {
        "master_name": "main",
        "sentinel_kwargs": {"password": "other", "socket_timeout": 30},
    }
    server = found("sentinel://a:1;sentinel://b:2", broker_transport_options=options)
    manager = server.connect().connection_pool.sentinel_manager
    for node in manager.sentinels:
        told = node.connection_pool.connection_kwargs
        assert told["retry"]._retries == 0
        assert told["socket_timeout"] == told["socket_connect_timeout"] == 1.0
        assert told["password"] == "other"


def test_shorter_timeouts_of_the_user_are_kept():
    options = {"socket_timeout": 0.2, "socket_connect_timeout": 30}
    told = wire(found("redis://host", broker_transport_options=options))
    assert told["socket_timeout"] == 0.2
    assert told["socket_connect_timeout"] == 1.0


def test_each_client_has_a_pool_of_its_own():
    server = found("redis://host")
    assert server.connect().connection_pool is not server.connect().connection_pool


def test_tls_options_of_the_broker_reach_the_client():
    server = found("rediss://host", broker_use_ssl={"ssl_cert_reqs": ssl.CERT_REQUIRED})
    assert server.connect().connection_pool.connection_class is SSLConnection
    assert wire(server)["ssl_cert_reqs"] == ssl.CERT_REQUIRED


@pytest.mark.skipif(
    "credential_provider" not in signature(Connection).parameters, reason="kombu has none yet"
)
def test_a_credential_provider_reaches_the_client():
    server = found(f"redis://host?credential_provider={__name__}.Tokens")
    assert type(wire(server)["credential_provider"]).__name__ == "Tokens"


def test_a_transport_of_the_user_is_a_redis_if_it_is_made_from_one():
    server = found("redis://host/5", broker_transport=OwnTransport)
    assert server.is_broker
    assert server.label == "redis://host:6379/5"


def test_the_prefix_is_the_brokers():
    options = {"global_keyprefix": "eu:"}
    assert found("redis://h", broker_transport_options=options).prefix == "eu:"
    same = found("redis://h", "redis://h:6379/0", broker_transport_options=options)
    assert same.prefix == "eu:"
    assert found("amqp://", "redis://h").prefix == ""


@pytest.mark.parametrize(
    ("broker", "url"),
    [
        ("redis://localhost", "redis://127.0.0.1:6379/0"),
        ("redis://HOST:6379//", "redis://host/0"),
        ("redis://default:x@h", "redis://:x@h"),
        ("redis+socket:///r.sock?virtual_host=1", "unix:///r.sock?db=1"),
        ("sentinel://a:1/2;sentinel://b:2/2", "sentinel://b:2/2"),
    ],
)
def test_the_broker_is_recognised_under_another_spelling(broker, url):
    assert found(broker, url, **MASTER).is_broker


@pytest.mark.parametrize(
    ("broker", "url"),
    [
        ("redis://h", "redis://other"),
        ("redis://h", "redis://h:6380"),
        ("redis://h", "redis://h/1"),
        ("redis://u:x@h", "redis://v:x@h"),
        ("redis://h", "redis+socket:///r.sock"),
        ("sentinel://a:1/2", "redis://a:1/2"),
        ("sentinel://a:1/2", "sentinel://c:1/2"),
    ],
)
def test_another_server_database_or_user_is_not_the_broker(broker, url):
    server = found(broker, url, **MASTER)
    assert not server.is_broker
    assert "redlock_beat_url names another server" in server.why_not
    assert server.label != "memory"


def test_a_broker_of_several_urls_is_not_pushed_to():
    server = found("redis://a;redis://b")
    assert server.label == "redis://a:6379/0"
    assert "several URLs" in server.why_not


@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+socket"])
def test_a_redis_result_backend_is_the_last_resort(scheme):
    place = "/r.sock?virtual_host=7" if scheme == "redis+socket" else "h/7"
    server = found("amqp://", result_backend=f"{scheme}://{place}")
    assert server.label.startswith(scheme)
    assert not server.is_broker


def test_a_sentinel_result_backend_brings_its_own_master():
    server = found(
        "amqp://",
        result_backend="sentinel://a:1/7;sentinel://b:2/7",
        result_backend_transport_options={"master_name": "results"},
    )
    assert server.label == "sentinel://a:1/7;sentinel://b:2/7 (results)"


@pytest.mark.parametrize("backend", [None, "rpc://", "cache+memory://"])
def test_without_any_redis_the_error_names_the_setting(backend):
    with pytest.raises(SettingError, match=r"redlock_beat_url = 'redis://localhost:6379/0'"):
        found("amqp://", result_backend=backend)


def test_a_memory_broker_is_no_redis():
    with pytest.raises(SettingError, match="redlock_beat_url"):
        found("memory://")


def test_the_memory_ledger_says_what_it_is_for():
    server = found("redis://h", "memory://")
    assert server.is_memory
    assert not server.is_broker
    assert "for tests" in server.label
    with pytest.raises(SettingError, match="memory"):
        server.connect()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}/x@h/7",
        f"redis://:12/{SECRET}@h/7",
        f"redis://:{SECRET}#x@h/7",
        f"redis://:{SECRET}?x@h/7",
        f"redis://h/{SECRET}",
        f"redis://h/7?password={SECRET}&db=1",
    ],
)
@pytest.mark.parametrize("where", ["broker", "setting"])
def test_a_url_that_cannot_be_read_is_refused_without_being_quoted(url, where):
    with pytest.raises(SettingError, match="percent-encode") as caught:
        found(url) if where == "broker" else found("amqp://", url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert ("broker_url" if where == "broker" else "redlock_beat_url") in str(caught.value)


def test_another_kind_of_url_is_refused():
    with pytest.raises(SettingError, match="begin with one of redis://"):
        found("amqp://", f"mysql://u:{SECRET}@h/7")


@pytest.mark.parametrize("where", ["broker", "setting"])
@pytest.mark.parametrize("url", ["sentinel://a:1", f"sentinel://:{SECRET}@a:1;sentinel://b:2/3"])
def test_sentinel_without_the_name_of_a_master_is_refused(where, url):
    if where == "setting":
        url = url.removesuffix("/3")
    with pytest.raises(SettingError, match=r"master_name.*mymaster") as caught:
        found(url) if where == "broker" else found("amqp://", url)
    assert SECRET not in str(caught.value)


A_B = "sentinel://u@a:1/2;sentinel://u@b:26379/2 (main)"
BOTH = f"{CREDENTIALS}a:1,b"
SPELLINGS = [
    f"redis+sentinel://{BOTH}/main/2",
    f"redis+sentinel://{BOTH}/2/main",
    f"redis-sentinel://{BOTH}/main/2",
    f"sentinel://{BOTH}/main/2",
    f"valkey+sentinel://{BOTH}/main/2",
    f"redis+sentinel://{CREDENTIALS}a:1,{CREDENTIALS}b/main/2",
    f"redis+sentinel://{CREDENTIALS}a:1;b/main/2",
    f"redis+sentinel://{CREDENTIALS}a:1; redis+sentinel://b/main/2",
    f"redis+sentinel://{CREDENTIALS}a:1/main/2;redis+sentinel://{CREDENTIALS}b:26379/main/2",
    f"redis+sentinel://{BOTH}/main?db=2",
    f"redis+sentinel://{BOTH}/2?master_name=main",
    f"redis+sentinel://{BOTH}/?service_name=main&db=2",
    f"redis-sentinel://{BOTH}/2?master=main",
    f"redis-sentinel://{BOTH}/2?sentinelMasterId=main",
    f"redis+sentinel://{BOTH}/2?sentinelService=main",
    f"redis+sentinel://{BOTH}/2?sentinel_master_name=main",
    f"redis-sentinel://{BOTH}/2#main",
    f"sentinel://{CREDENTIALS}a:1/2;sentinel://{CREDENTIALS}b/2?master_name=main",
    f"sentinel://{CREDENTIALS}a:1/2;sentinel://b/2#main",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_sentinel_is_understood_as_people_write_it(url):
    server = found("amqp://", url)
    assert server.label == A_B
    assert SECRET not in repr(server)
    told = server.connect().connection_pool
    assert (told.service_name, told.connection_kwargs["password"]) == ("main", SECRET)


@pytest.mark.parametrize("url", [f"redis+sentinel://{BOTH}/2", f"redis+sentinel://{BOTH}/main/2"])
def test_the_name_of_a_master_is_taken_from_the_transport_options_too(url):
    assert found("amqp://", url, transport_options={"master_name": "main"}).label == A_B
    assert found("amqp://", f"{url}#main", transport_options={"master_name": "x"}).label == A_B


def test_the_broker_behind_sentinels_is_recognised_in_another_spelling():
    broker = f"sentinel://{CREDENTIALS}a:1/2;sentinel://{CREDENTIALS}b:26379/2"
    assert found(broker, f"redis+sentinel://{BOTH}/main/2", **MASTER).is_broker
    assert not found(broker, f"redis+sentinel://{BOTH}/other/2", **MASTER).is_broker


def test_an_ipv6_address_and_special_characters_keep_their_meaning():
    url = f"redis+sentinel://u%40x:{SECRET}%3B%2C%2F@[::1]:1,[2001:db8::2]/my%2Fmain/0"
    pool = found("amqp://", url).connect().connection_pool
    nodes = [each.connection_pool.connection_kwargs for each in pool.sentinel_manager.sentinels]
    assert [(each["host"], each["port"]) for each in nodes] == [("::1", 1), ("2001:db8::2", 26379)]
    assert pool.service_name == "my/main"
    assert pool.connection_kwargs["username"] == "u@x"
    assert pool.connection_kwargs["password"] == f"{SECRET};,/"


def test_sentinels_have_a_password_and_tls_of_their_own():
    url = "rediss+sentinel://a,b/main?sentinel_username=s&sentinel_password=other&ssl_ca_certs=/ca"
    pool = found("amqp://", url).connect().connection_pool
    for node in pool.sentinel_manager.sentinels:
        own = node.connection_pool
        assert own.connection_class is SSLConnection
        told = own.connection_kwargs
        assert (told["username"], told["password"]) == ("s", "other")
        assert (told["ssl_ca_certs"], told["ssl_check_hostname"]) == ("/ca", True)
    assert issubclass(pool.connection_class, SSLConnection)
    assert pool.connection_kwargs["ssl_cert_reqs"] == ssl.CERT_REQUIRED
    assert pool.connection_kwargs["password"] is None


CLUSTER = "redis+cluster://u@a:1,b:6379"
IN_A_CLUSTER = [
    f"redis+cluster://{BOTH}",
    f"redis+cluster://{BOTH}/",
    f"redis+cluster://{BOTH}/0",
    f"redis-cluster://{BOTH}?db=0",
    f"rediscluster://{BOTH}",
    f"valkey+cluster://{BOTH}",
    f"redis+cluster://{CREDENTIALS}a:1;redis+cluster://{CREDENTIALS}b",
    f"redis+cluster://{CREDENTIALS}a:1;b",
]


@pytest.mark.parametrize("url", IN_A_CLUSTER)
@pytest.mark.parametrize("broker", ["amqp://", "redis://a:1"])
def test_a_cluster_is_for_the_ledger_alone(broker, url):
    server = found(broker, url)
    assert server.label == CLUSTER
    assert not server.is_broker
    assert SECRET not in repr(server)
    server.connect().close()  # it touches no network


def test_a_cluster_with_tls_says_so():
    assert found("amqp://", "rediss+cluster://a").label == "rediss+cluster://a:6379"
    assert found("amqp://", "redis+cluster://a?ssl_ca_certs=/ca").label.startswith("rediss+")


def test_the_prefix_of_the_brokers_keys_is_kept_in_a_cluster():
    options = {"global_keyprefix": "eu:"}
    url = "redis+cluster://a"
    assert found("redis://h", url, broker_transport_options=options).prefix == "eu:"


NOT_UNDERSTOOD = [
    (f"redis+sentinel://:{SECRET}/x@a:1/main", "cannot be read"),
    (f"redis+sentinel://:12/{SECRET}@a/main", "cannot be read"),
    (f"redis+sentinel://:{SECRET};1@a/main", "cannot be read"),
    (f"redis+sentinel://:{SECRET}@,a/main", "cannot be read"),
    (f"redis+sentinel://:{SECRET}@a:x/main", "cannot be read"),
    (f"redis+sentinel://:{SECRET}@a/main/0/1", "more behind its hosts"),
    (f"redis+sentinel://:{SECRET}@a/main/other", "more behind its hosts"),
    (f"redis+sentinel://a/main?db={SECRET}", "more behind its hosts"),
    (f"redis+sentinel://a/main?passwort={SECRET}", "'passwort' behind its '\\?'"),
    (f"redis+sentinel://:{SECRET}@a,:x@b/main", "several users or passwords"),
    (f"redis+sentinel://:{SECRET}@a;redis+sentinel://:x@b/main", "several users or passwords"),
    (f"redis+sentinel://:{SECRET}@a;redis://b/main", "cannot be read"),
    (f"redis+sentinel://:{SECRET}@a/main/0;redis+sentinel://b/main/1", "different endings"),
    (f"sentinel://:{SECRET}@a;sentinel://b/3?master_name=main", "different endings"),
    (f"rediss+sentinel://a/main?ssl_cert_reqs={SECRET}", "ssl_cert_reqs"),
    (f"rediss://a/0?ssl_cert_reqs={SECRET}", "ssl_cert_reqs"),
    (f"redis+cluster://:{SECRET}@a/1", "database 0 alone"),
    (f"redis+cluster://:{SECRET}@a?db=1", "database 0 alone"),
    (f"redis+cluster://:{SECRET}@a/main", "database 0 alone"),
    (f"redis+cluster://:{SECRET}@a?master_name=x", "'master_name' behind its '\\?'"),
]


@pytest.mark.parametrize(("url", "told"), NOT_UNDERSTOOD)
def test_what_is_not_understood_is_refused_and_shown_how_to_write(url, told):
    with pytest.raises(SettingError, match=told) as caught:
        found("amqp://", url)
    text = str(caught.value)
    assert text.startswith("redlock_beat_url ")
    assert SECRET not in text
    assert "redis+" in text or "required" in text or "sentinel_password" in text


FOR_A_BROKER = [
    f"redis+sentinel://{BOTH}/main/2",
    f"redis+sentinel://{CREDENTIALS}a:1;redis+sentinel://b",
    f"redis-sentinel://{CREDENTIALS}a:1/2",
    f"sentinel://{BOTH}/2",
    f"sentinel://{CREDENTIALS}a:1/main",
    f"sentinel://{CREDENTIALS}a:1/2?master_name=main",
    [f"redis+sentinel://{CREDENTIALS}a:1", "redis+sentinel://b"],
]


@pytest.mark.parametrize("setting", ["broker_url", "broker_write_url"])
@pytest.mark.parametrize("url", FOR_A_BROKER, ids=str)
def test_a_broker_is_written_as_celery_reads_it(setting, url):
    app = Celery("shop", set_as_current=False)
    app.conf[setting] = url
    with pytest.raises(SettingError, match=rf"{setting} names sentinels") as caught:
        check_broker_url(app)
    text = str(caught.value)
    assert SECRET not in text
    assert "sentinel://host1:26379;sentinel://host2:26379" in text
    assert "broker_transport_options = {'master_name': 'mymaster'}" in text


@pytest.mark.parametrize("url", [f"redis+cluster://{BOTH}", f"rediscluster://{BOTH}"])
def test_a_broker_in_a_cluster_is_refused(url):
    app = Celery("shop", broker=url, set_as_current=False)
    with pytest.raises(SettingError, match="broker_url names a Redis Cluster") as caught:
        check_broker_url(app)
    assert SECRET not in str(caught.value)
    assert "redlock_beat_url = 'redis+cluster://" in str(caught.value)


@pytest.mark.parametrize("url", ["sentinel://u:p%2C@a:1/2;sentinel://b:2/2", "redis://:a,b@h/0"])
def test_a_broker_that_celery_reads_is_left_alone(url):
    check_broker_url(Celery("shop", broker=url, set_as_current=False))


def test_tls_is_verified_unless_it_is_said_otherwise():
    plain = wire(found("amqp://", "rediss://h/0"))
    assert (plain["ssl_cert_reqs"], plain["ssl_check_hostname"]) == (ssl.CERT_REQUIRED, True)
    less = wire(found("amqp://", "rediss://h/0?ssl_ca_certs=/ca&ssl_check_hostname=false"))
    assert (less["ssl_ca_certs"], less["ssl_check_hostname"]) == ("/ca", False)
    assert less["ssl_cert_reqs"] == ssl.CERT_REQUIRED
    none = wire(found("amqp://", "rediss://h/0?ssl_cert_reqs=CERT_NONE"))
    assert (none["ssl_cert_reqs"], none["ssl_check_hostname"]) == (ssl.CERT_NONE, False)


def test_a_ledger_with_tls_takes_the_options_of_a_redis_broker_with_tls():
    tls = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": "/ca"}
    for url in ("rediss://other/0", "rediss+cluster://other", "rediss+sentinel://a/main"):
        server = found("rediss://h", url, broker_use_ssl=tls)
        assert server._endpoint.params["ssl_ca_certs"] == "/ca"
    assert "ssl_ca_certs" not in wire(found("rediss://h", "redis://other/0", broker_use_ssl=tls))
    assert "ssl_ca_certs" not in wire(found("amqp://", "rediss://other", broker_use_ssl=tls))


@pytest.mark.parametrize(("scheme", "kombus"), [("valkey", "redis"), ("valkeys", "rediss")])
def test_a_valkey_is_written_as_one(scheme, kombus):
    assert found("amqp://", f"{scheme}://{CREDENTIALS}h/3").label == f"{kombus}://u@h:6379/3"
