"""RedBeat's settings in every spelling and dialect: understood, or answered; without any server."""

from __future__ import annotations

import ssl

import pytest
from celery import Celery
from redis import CredentialProvider, SSLConnection

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.predecessors.redbeat.keys import Keys
from celery_redlock_beat.predecessors.redbeat.place import connect, label
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import locate
from celery_redlock_beat.store.redbeat import endpoint_of, place_of

SECRET = "s3cr3t"
LOG = "celery_redlock_beat.assembly"
NODES = [("192.168.1.1", 26379), ["192.168.1.2", "26380"]]

OF_SENTINEL = {
    "sentinels": NODES,
    "service_name": "mine",
    "sentinel_kwargs": {"password": "own"},
    "password": SECRET,
    "username": "u",
    "db": 3,
    "socket_timeout": 0.1,
    "retry_period": 60,
}


class Tokens(CredentialProvider):
    def get_credentials(self):
        return ("u", SECRET)


def shop(broker="redis://broker/0", **conf):
    app = Celery("shop", broker=broker, set_as_current=False)
    app.conf.update(conf)
    return app


def read(**conf):
    return RedBeatSettings.from_app(shop(**conf))


def refusal(**conf):
    with pytest.raises(SettingError) as caught:
        endpoint(**conf)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def endpoint(**conf):
    app = shop(**conf)
    return endpoint_of(app, place_of(app))


class TestDefaults:
    def test_without_any_setting_all_is_as_redbeat_has_it(self):
        settings = read()
        assert settings.key_prefix == "redbeat:"
        assert settings.schedule_key == "redbeat::schedule"
        assert settings.statics_key == "redbeat::statics"
        assert settings.lock_key == "redbeat::lock"
        assert settings.lock_timeout is None
        assert settings.answers == ()

    def test_the_lock_is_always_behind_the_prefix(self):
        assert read(redbeat_lock_key=":own").lock_key == "redbeat::own"
        assert read(redbeat_lock_key="redbeat:own").lock_key == "redbeat:own"
        assert read(redbeat_key_prefix="shop-").lock_key == "shop-:lock"

    @pytest.mark.parametrize("key", [None, ""])
    def test_the_lock_can_be_switched_off(self, key):
        assert read(redbeat_lock_key=key).lock_key is None

    def test_a_prefix_may_be_empty(self):
        assert read(redbeat_key_prefix="").schedule_key == ":schedule"

    def test_another_prefix_has_its_own_keys(self):
        settings = read(redbeat_lock_key=None)
        assert Keys.of(settings).lock is None
        assert Keys.of(settings, "old:") == Keys("old:", "old::lock")

    def test_settings_show_no_password(self):
        settings = read(redbeat_redis_url=f"redis://:{SECRET}@host/1")
        assert SECRET not in repr(settings)
        assert settings.url == f"redis://:{SECRET}@host/1"


class TestSpelling:
    @pytest.mark.parametrize("name", ["redbeat_key_prefix", "REDBEAT_KEY_PREFIX"])
    def test_both_cases_are_found(self, name):
        assert read(**{name: "shop:"}).key_prefix == "shop:"

    @pytest.mark.parametrize("name", ["CELERY_REDBEAT_KEY_PREFIX", "REDBEAT_KEY_PREFIX"])
    def test_djangos_names_are_found(self, name):
        app = Celery("shop", set_as_current=False)
        app.config_from_object({name: "shop:", "CELERY_BROKER_URL": "redis://"}, namespace="CELERY")
        assert RedBeatSettings.from_app(app).key_prefix == "shop:"

    def test_one_setting_with_two_values_is_refused(self):
        with pytest.raises(SettingError, match="one setting with two values"):
            read(redbeat_key_prefix="a", REDBEAT_KEY_PREFIX="b")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("redbeat_key_prefix", 3),
            ("redbeat_lock_key", 3),
            ("redbeat_lock_timeout", "long"),
            ("redbeat_redis_url", "host:6379"),
            ("redbeat_redis_options", ["socket_timeout"]),
        ],
    )
    def test_what_cannot_be_meant_is_named(self, name, value):
        with pytest.raises(SettingError, match=name):
            read(**{name: value})


class TestAnswers:
    def test_an_unknown_setting_is_answered_with_what_may_have_been_meant(self):
        (answer,) = read(REDBEAT_LOCK_TIMOUT=5).answers
        assert answer.startswith("REDBEAT_LOCK_TIMOUT has no effect: ")
        assert "did you mean 'redbeat_lock_timeout'?" in answer

    @pytest.mark.parametrize(
        ("name", "value"), [("redbeat_lock_key", "own"), ("redbeat_lock_timeout", 60)]
    )
    def test_the_lock_has_no_effect_without_the_interlock(self, name, value):
        (answer,) = read(**{name: value}).answers
        assert answer.startswith(f"{name} has no effect: nodes need no lock")
        assert "redlock_beat_interlock = 'redbeat'" in answer

    def test_with_the_interlock_the_lock_is_held_as_long_as_ours_are(self):
        told = {"redbeat_lock_key": "own", "redlock_beat_interlock": "redbeat"}
        assert read(**told).answers == ()
        (answer,) = read(**told, redbeat_lock_timeout=60).answers
        assert "redlock_beat_lease" in answer

    def test_options_that_change_nothing_are_answered_in_one_line(self):
        options = {"retry_period": 60, "socket_timeout": 0.1, "single_connection_client": True}
        (answer,) = read(redbeat_redis_options=options).answers
        assert "'retry_period' is not needed" in answer
        assert "'single_connection_client' would change nothing" in answer
        assert "socket_timeout" not in answer

    def test_understood_settings_need_no_answer(self):
        told = {
            "redbeat_redis_url": "rediss://host",
            "redbeat_redis_use_ssl": {"ssl_ca_certs": "x"},
        }
        assert read(**told, redbeat_key_prefix="shop:").answers == ()

    def test_beat_logs_each_answer_once_when_it_starts(self, caplog):
        app = shop(
            redbeat_lock_timeout=60, redbeat_redis_ulr="redis://", redlock_beat_url="memory://"
        )
        RedlockScheduler(app=app, lazy=True)
        assert not [each for each in caplog.records if each.name == LOG]
        RedlockScheduler(app=app)
        told = [each.getMessage() for each in caplog.records if each.name == LOG]
        assert sorted(told) == sorted(RedBeatSettings.from_app(app).answers)
        assert len(told) == 2


class TestPlace:
    def test_it_is_the_broker_where_nothing_else_is_said(self):
        assert endpoint(broker=f"redis://:{SECRET}@host:6380/3").label == "redis://host:6380/3"
        assert (
            endpoint(broker="redis://host/3", redbeat_redis_url=None).label == "redis://host:6379/3"
        )

    def test_without_a_url_another_broker_is_refused(self):
        assert "redbeat_redis_url is not set" in refusal(broker="amqp://host")

    def test_the_tls_of_the_broker_counts_too(self):
        tls = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": "ca.pem"}
        found = endpoint(broker="rediss://host/1", broker_use_ssl=tls)
        assert found.params["ssl_ca_certs"] == "ca.pem"

    def test_tls_wants_certificates_unless_it_is_said_otherwise(self):
        found = endpoint(redbeat_redis_url="rediss://host/1")
        assert found.params["ssl_cert_reqs"] == ssl.CERT_REQUIRED
        assert issubclass(found.params["connection_class"], SSLConnection)
        told = {"ssl_cert_reqs": ssl.CERT_NONE, "ssl_keyfile": "k"}
        found = endpoint(redbeat_redis_url="rediss://host/1", redbeat_redis_use_ssl=told)
        assert (found.params["ssl_cert_reqs"], found.params["ssl_keyfile"]) == (ssl.CERT_NONE, "k")

    def test_own_options_are_passed_on_and_those_of_the_broker_are_not(self):
        told = {
            "password": SECRET,
            "username": "u",
            "socket_timeout": 0.25,
            "visibility_timeout": 9,
        }
        own = endpoint(redbeat_redis_url="redis://host/1", redbeat_redis_options=told)
        assert {name: own.params.get(name) for name in told} == told | {"visibility_timeout": None}
        inherited = endpoint(redbeat_redis_url="redis://host/1", broker_transport_options=told)
        assert inherited.params.get("password") is None

    def test_what_the_url_says_counts_more_than_options(self):
        told = {"password": "other", "db": 7}
        url = f"redis://:{SECRET}@host/1"
        found = endpoint(redbeat_redis_url=url, redbeat_redis_options=told)
        assert (found.params["password"], found.params["db"]) == (SECRET, 1)
        found = endpoint(redbeat_redis_url="redis://host", redbeat_redis_options=told)
        assert (found.params["password"], found.params["db"]) == ("other", 7)

    def test_a_credential_provider_takes_the_place_of_user_and_password(self):
        told = {"credential_provider": Tokens()}
        found = endpoint(redbeat_redis_url=f"redis://u:{SECRET}@host", redbeat_redis_options=told)
        assert found.params.keys().isdisjoint({"username", "password"})
        found.connect(1.0).close()

    def test_waits_are_as_short_as_ours(self):
        app = shop(redbeat_redis_options={"socket_timeout": 30}, redlock_beat_socket_timeout=0.5)
        client = connect(app, RedBeatSettings.from_app(app))
        told = client.connection_pool.connection_kwargs
        assert (told["socket_timeout"], told["socket_connect_timeout"]) == (0.5, 0.5)
        assert "decode_responses" not in told
        client.close()

    def test_a_client_may_answer_with_texts(self):
        app = shop()
        client = connect(app, RedBeatSettings.from_app(app), decode=True)
        assert client.connection_pool.connection_kwargs["decode_responses"] is True
        client.close()

    def test_another_url_is_taken_as_it_is(self):
        app = shop(redbeat_redis_options={"password": SECRET})
        settings = RedBeatSettings.from_app(app)
        assert label(app, settings, "redis://old:6380/4") == "redis://old:6380/4"
        client = connect(app, settings, "redis://old:6380/4")
        assert client.connection_pool.connection_kwargs["password"] is None
        client.close()


class TestSentinel:
    @pytest.mark.parametrize("scheme", ["redis-sentinel", "redis+sentinel"])
    def test_hosts_and_name_are_in_the_options(self, scheme):
        url = f"{scheme}://ignored:1/9"
        found = endpoint(redbeat_redis_url=url, redbeat_redis_options=OF_SENTINEL)
        assert found.nodes == (("192.168.1.1", 26379), ("192.168.1.2", 26380))
        assert (found.master, found.params["db"]) == ("mine", 3)
        assert (found.params["username"], found.params["password"]) == ("u", SECRET)
        assert found.sentinel_options["sentinel_kwargs"] == {"password": "own"}
        assert found.params["socket_timeout"] == 0.1
        found.connect(1.0).close()

    def test_the_name_is_master_and_the_database_0_by_default(self):
        options = {"sentinels": NODES[:1]}
        found = endpoint(redbeat_redis_url="redis-sentinel://x", redbeat_redis_options=options)
        assert (found.master, found.params["db"]) == ("master", 0)

    def test_the_options_of_the_broker_do_as_well(self):
        url = "redis-sentinel://x:26379/0"
        found = endpoint(redbeat_redis_url=url, broker_transport_options=OF_SENTINEL)
        assert (found.master, found.params["password"]) == ("mine", SECRET)

    def test_tls_is_that_of_the_data_servers(self):
        found = endpoint(
            redbeat_redis_url="redis-sentinel://x",
            redbeat_redis_options={"sentinels": NODES},
            redbeat_redis_use_ssl={"ssl_ca_certs": "ca.pem"},
        )
        assert found.params["ssl_ca_certs"] == "ca.pem"
        assert found.params["ssl_cert_reqs"] == ssl.CERT_REQUIRED
        assert not found.sentinel_options["sentinel_kwargs"]

    @pytest.mark.parametrize("nodes", [["host"], [("host", "port")], [(1, 2)], [{"port": 1}]])
    def test_what_is_no_server_is_named(self, nodes):
        told = refusal(
            redbeat_redis_url="redis-sentinel://x", redbeat_redis_options={"sentinels": nodes}
        )
        assert "sentinels" in told


class TestCluster:
    NODES = ({"host": "192.168.1.1", "port": "30001"}, {"host": "192.168.1.2", "port": 30002})

    def test_nodes_are_dicts_whose_ports_may_be_texts(self):
        options = {"startup_nodes": list(self.NODES), "password": SECRET}
        found = endpoint(redbeat_redis_url="redis-cluster://x:1/0", redbeat_redis_options=options)
        assert found.label == "redis+cluster://192.168.1.1:30001,192.168.1.2:30002"
        assert found.params["password"] == SECRET
        found.connect(1.0).close()

    def test_the_option_makes_a_cluster_of_any_url(self):
        url = f"rediss://u:{SECRET}@host:7000"
        found = endpoint(redbeat_redis_url=url, redbeat_redis_options={"cluster": True})
        assert found.label == "rediss+cluster://u@host:7000"
        assert found.params["ssl_cert_reqs"] == ssl.CERT_REQUIRED

    def test_without_nodes_those_of_the_url_are_taken(self):
        found = endpoint(redbeat_redis_url="redis-cluster://host:30001/0")
        assert found.label == "redis+cluster://host:30001"


class TestLedger:
    """Where neither ``redlock_beat_url`` nor a Redis broker is there, RedBeat's Redis has it."""

    def located(self, broker, **conf):
        app = shop(broker, redbeat_redis_url="redis://redbeat/2", **conf)
        return locate(app, Settings.from_app(app))

    def test_it_comes_before_the_result_backend(self):
        server = self.located("amqp://host", result_backend="redis://results/1")
        assert server.label == "redis://redbeat:6379/2"
        assert "not Redis" in server.why_not

    def test_it_comes_behind_the_broker_and_our_own_setting(self):
        assert self.located("redis://host/0").label == "redis://host:6379/0"
        own = self.located("amqp://host", redlock_beat_url="redis://ours/5")
        assert own.label == "redis://ours:6379/5"

    def test_without_its_url_it_has_none(self):
        app = shop("amqp://host", result_backend="redis://results/1", redbeat_key_prefix="x")
        assert locate(app, Settings.from_app(app)).label == "redis://results:6379/1"
