from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from celery import Celery

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.setting_values import mask
from celery_redlock_beat.settings import PARSERS, Settings

URL = "redis://ledger/3"


def shop(**changes):
    app = Celery("shop", set_as_current=False)
    app.conf.update(changes)
    return app


def read(**changes):
    return Settings.from_app(shop(**changes))


def refusal(**changes):
    with pytest.raises(SettingError) as caught:
        read(**changes)
    return str(caught.value)


def as_module(names):
    module = ModuleType("some_config")
    vars(module).update(names)
    return module


def as_class(names):
    return type("Config", (), names)


def as_object(names):
    return SimpleNamespace(**names)


SOURCES = pytest.mark.parametrize("source", [dict, as_module, as_class, as_object])


class TestDefaults:
    def test_an_app_that_sets_nothing_gets_the_defaults_and_its_own_name(self):
        assert read() == Settings(namespace="shop")

    def test_the_default_hold_down_is_the_one_that_would_be_derived(self):
        assert read(redlock_beat_socket_timeout=1.0).hold_down == Settings().hold_down

    def test_every_setting_has_a_parser(self):
        ours = set(Settings.__dataclass_fields__) - {"cron_starting_deadline"}
        assert set(PARSERS) == ours

    def test_settings_are_frozen(self):
        with pytest.raises(AttributeError):
            read().lease = 7.0


class TestSpelling:
    """Celery itself translates neither case nor prefix of a setting that it does not know."""

    @SOURCES
    @pytest.mark.parametrize(
        ("prefix", "broker", "namespace"),
        [
            ("redlock_beat_", "broker_url", None),
            ("REDLOCK_BEAT_", "BROKER_URL", None),
            ("REDLOCK_BEAT_", "broker_url", None),
            ("CELERY_REDLOCK_BEAT_", "broker_url", None),
            ("CELERY_REDLOCK_BEAT_", "CELERY_BROKER_URL", "CELERY"),
            ("CELERY_REDLOCK_BEAT_", "CELERY_BROKER_URL", "CELERY_"),
            ("REDLOCK_BEAT_", "CELERY_BROKER_URL", "CELERY"),
            ("redlock_beat_", "CELERY_BROKER_URL", "CELERY"),
            ("celery_redlock_beat_", "celery_broker_url", "celery"),
            ("SHOP_REDLOCK_BEAT_", "SHOP_BROKER_URL", "SHOP"),
        ],
    )
    def test_settings_are_found_in_a_source_in_every_style(self, source, prefix, broker, namespace):
        upper = prefix.isupper()
        names = {
            broker: "redis://broker/0",
            prefix + ("URL" if upper else "url"): URL,
            prefix + ("LEASE" if upper else "lease"): 7,
        }
        app = Celery("shop", set_as_current=False)
        app.config_from_object(source(names), namespace=namespace)
        settings = Settings.from_app(app)
        assert (settings.url, settings.lease) == (URL, 7.0)

    def test_settings_are_found_in_a_module_given_by_name(self, tmp_path, monkeypatch):
        (tmp_path / "config_by_name.py").write_text(f"CELERY_REDLOCK_BEAT_URL = {URL!r}\n")
        monkeypatch.syspath_prepend(tmp_path)
        app = Celery("shop", set_as_current=False)
        app.config_from_object("config_by_name", namespace="CELERY")
        assert Settings.from_app(app).url == URL

    def test_an_attribute_an_update_an_argument_and_a_default_are_settings(self):
        by_attribute = shop()
        by_attribute.conf.redlock_beat_url = URL
        by_upper_attribute = shop()
        by_upper_attribute.conf.REDLOCK_BEAT_URL = URL
        by_argument = Celery("shop", set_as_current=False, redlock_beat_url=URL)
        by_default = shop()
        by_default.add_defaults({"redlock_beat_url": URL})
        apps = [
            by_attribute,
            by_upper_attribute,
            by_argument,
            by_default,
            shop(redlock_beat_url=URL),
            shop(REDLOCK_BEAT_URL=URL),
        ]
        assert [Settings.from_app(app).url for app in apps] == [URL] * len(apps)

    @pytest.mark.parametrize("loaded_first", [False, True])
    @pytest.mark.parametrize("name", ["redlock_beat_url", "REDLOCK_BEAT_URL"])
    def test_a_change_wins_over_the_source_however_it_is_spelt(self, name, loaded_first):
        app = Celery("shop", set_as_current=False)
        app.config_from_object({"CELERY_REDLOCK_BEAT_URL": "redis://old/0"}, namespace="CELERY")
        if loaded_first:
            app.conf.get("broker_url")
        app.conf[name] = URL
        assert Settings.from_app(app).url == URL

    def test_settings_of_another_prefix_belong_to_another_app(self):
        app = Celery("shop", set_as_current=False)
        source = {"SHOP_REDLOCK_BEAT_URL": URL, "CELERY_REDLOCK_BEAT_LEESE": 1}
        app.config_from_object(source, namespace="SHOP")
        assert Settings.from_app(app).url == URL

    def test_one_setting_with_two_values_in_one_place_is_refused(self):
        text = refusal(redlock_beat_lease=7, REDLOCK_BEAT_LEASE=8)
        assert "redlock_beat_lease and REDLOCK_BEAT_LEASE" in text
        assert "keep one" in text

    def test_one_setting_spelt_twice_with_one_value_is_accepted(self):
        assert read(redlock_beat_lease=7, REDLOCK_BEAT_LEASE=7).lease == 7.0

    def test_nothing_else_of_a_source_is_touched(self):
        class Config:
            redlock_beat_url = URL

            @property
            def database(self):
                raise AssertionError

        app = Celery("shop", set_as_current=False)
        app.config_from_object(Config())
        assert Settings.from_app(app).url == URL


class TestUnknownNames:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ("redlock_beat_leese", "redlock_beat_lease"),
            ("REDLOCK_BEAT_SOCKETTIMEOUT", "REDLOCK_BEAT_SOCKET_TIMEOUT"),
            ("CELERY_REDLOCK_BEAT_CATCHUP", "CELERY_REDLOCK_BEAT_CATCH_UP"),
        ],
    )
    def test_a_misspelt_name_is_refused_with_the_right_one_in_the_same_style(self, wrong, right):
        text = refusal(**{wrong: 1})
        assert wrong in text
        assert f"did you mean {right}?" in text

    def test_a_name_like_no_other_is_refused_with_all_there_are(self):
        text = refusal(redlock_beat_xyz=1)
        assert all(f"redlock_beat_{name}" in text for name in PARSERS)

    def test_a_misspelt_name_is_refused_in_a_module_too(self):
        app = Celery("shop", set_as_current=False)
        app.config_from_object(as_module({"CELERY_REDLOCK_BEAT_LEESE": 1}), namespace="CELERY")
        with pytest.raises(SettingError, match="CELERY_REDLOCK_BEAT_LEASE"):
            Settings.from_app(app)

    def test_the_package_imported_in_a_config_module_is_no_setting(self):
        app = Celery("shop", set_as_current=False)
        names = {"celery_redlock_beat": object(), "redlock_beat": object()}
        app.config_from_object(as_module(names))
        assert Settings.from_app(app) == Settings(namespace="shop")


class TestDurations:
    @pytest.mark.parametrize("value", [7, 7.0, timedelta(seconds=7)])
    def test_a_duration_is_a_number_of_seconds_or_a_timedelta(self, value):
        lease = read(redlock_beat_lease=value).lease
        assert (lease, type(lease)) == (7.0, float)

    @pytest.mark.parametrize("value", ["7", True, None, [7], 7j, b"7"])
    def test_anything_else_is_refused(self, value):
        text = refusal(redlock_beat_lease=value)
        assert text.startswith(f"redlock_beat_lease = {value!r} is no duration")
        assert "timedelta" in text

    @pytest.mark.parametrize(
        "value", [-1, timedelta(seconds=-1), float("inf"), float("nan"), 10**400, timedelta.max]
    )
    def test_a_duration_out_of_range_is_refused(self, value):
        text = refusal(redlock_beat_catch_up_window=value)
        assert text.startswith("redlock_beat_catch_up_window = ")
        assert "between 0 and ten years" in text

    @pytest.mark.parametrize(
        "name", ["lease", "socket_timeout", "poll", "hold_down", "catch_up_window"]
    )
    def test_none_of_them_may_be_zero(self, name):
        assert "more than 0 seconds" in refusal(**{f"redlock_beat_{name}": 0})

    def test_a_poll_that_would_keep_a_processor_busy_is_refused(self):
        assert "redlock_beat_poll = 0.001" in refusal(redlock_beat_poll=0.001)
        assert "at least 0.01 seconds" in refusal(redlock_beat_poll=0.001)
        assert read(redlock_beat_poll=0.01).poll == 0.01

    def test_the_error_names_the_setting_as_the_user_spelt_it(self):
        assert refusal(CELERY_REDLOCK_BEAT_LEASE="7").startswith("CELERY_REDLOCK_BEAT_LEASE = '7'")


class TestChoices:
    @pytest.mark.parametrize("value", ["latest", "all", "none"])
    def test_catch_up_is_one_of_three(self, value):
        assert read(redlock_beat_catch_up=value).catch_up == value

    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            ("al", "did you mean 'all'?"),
            ("Latest", "did you mean 'latest'?"),
            (None, "did you mean 'none'?"),
            (True, "write one of 'latest', 'all', 'none'"),
            (["all"], "did you mean 'all'?"),
        ],
    )
    def test_another_catch_up_is_refused_with_a_hint(self, value, hint):
        text = refusal(redlock_beat_catch_up=value)
        assert f"redlock_beat_catch_up = {value!r}" in text
        assert hint in text

    def test_delivery_is_one_of_two(self):
        assert read(redlock_beat_delivery="at_most_once").delivery == "at_most_once"
        assert "'at_most_once'?" in refusal(redlock_beat_delivery="at-most-once")

    def test_strict_is_a_bool(self):
        assert read(redlock_beat_strict=True).strict is True

    @pytest.mark.parametrize("value", ["false", "True", 1, 0, None])
    def test_what_only_looks_like_a_bool_is_refused(self, value):
        text = refusal(redlock_beat_strict=value)
        assert f"redlock_beat_strict = {value!r}" in text
        assert "without quotes" in text


class TestCombinations:
    def test_a_lease_must_outlive_a_call(self):
        text = refusal(redlock_beat_lease=1)
        assert "redlock_beat_lease must be longer than redlock_beat_socket_timeout" in text
        assert "redlock_beat_lease = 1, redlock_beat_socket_timeout = 1" in text

    def test_a_poll_must_come_twice_in_a_lease(self):
        assert "at most half of redlock_beat_lease" in refusal(redlock_beat_poll=2.6)
        assert read(redlock_beat_poll=2.5).poll == 2.5

    def test_a_hold_down_must_let_every_node_notice(self):
        text = refusal(redlock_beat_hold_down=1.5)
        assert "longer than redlock_beat_socket_timeout plus redlock_beat_poll" in text
        assert read(redlock_beat_hold_down=1.6).hold_down == 1.6

    def test_a_hold_down_that_is_not_set_follows_the_timeout_and_the_poll(self):
        settings = read(redlock_beat_socket_timeout=4, redlock_beat_poll=1, redlock_beat_lease=20)
        assert settings.hold_down == 10.0

    def test_a_hold_down_that_is_not_set_is_never_below_its_default(self):
        assert read(redlock_beat_socket_timeout=0.1).hold_down == 3.0

    def test_settings_made_by_hand_are_held_to_the_same(self):
        with pytest.raises(SettingError):
            Settings(lease=0.5)


class TestHistory:
    @pytest.mark.parametrize("value", [0, 1, 10_000_000])
    def test_it_is_a_number_of_outcomes_or_none_of_them(self, value):
        assert read(redlock_beat_history=value).history == value

    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            (-1, "0 to keep none"),
            (10_000_001, "at most 10000000"),
            ("10000", "is no whole number"),
            (1e4, "is no whole number"),
            (True, "0 to keep none"),
            (None, "0 to keep none"),
        ],
    )
    def test_another_one_is_refused(self, value, hint):
        text = refusal(redlock_beat_history=value)
        assert text.startswith(f"redlock_beat_history = {value!r} is ")
        assert hint in text


class TestHealthFile:
    @pytest.mark.parametrize("value", ["/run/beat/health", Path("/run/beat/health")])
    def test_it_is_a_path_and_need_not_be_there_in_a_build(self, value):
        assert read(redlock_beat_health_file=value).health_file == "/run/beat/health"

    def test_none_means_that_there_is_none(self):
        assert read(redlock_beat_health_file=None).health_file is None

    def test_a_home_is_found(self, monkeypatch):
        monkeypatch.setenv("HOME", "/home/anna")
        assert read(redlock_beat_health_file="~/health").health_file == "/home/anna/health"

    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            ("", "is no path"),
            (7, "such as '/var/lib/celery/file'"),
            (True, "is no path"),
            (b"/tmp/health", "is no path"),
            (Path("/tmp/a\0"), "is no path"),
            ("/tmp/a\nb", "is no path"),
            ("/tmp/", "names a folder"),
            ("~nobody-of-that-name/health", "write the whole path"),
        ],
    )
    def test_another_value_is_refused(self, value, hint):
        text = refusal(redlock_beat_health_file=value)
        assert text.startswith(f"redlock_beat_health_file = {value!r} ")
        assert hint in text


class TestNamespace:
    def test_it_can_be_set(self):
        assert read(redlock_beat_namespace="till").namespace == "till"

    @pytest.mark.parametrize(
        "value", ["", "a{b", "a}b", "a b", "a\tb", "a\n", "a\x00", "\u2028", 7]
    )
    def test_one_that_cannot_be_part_of_a_key_is_refused(self, value):
        text = refusal(redlock_beat_namespace=value)
        assert text.startswith(f"redlock_beat_namespace = {value!r}")
        assert "such as 'shop'" in text

    def test_letters_of_every_script_are_accepted(self):
        assert read(redlock_beat_namespace="магазин-β_1:x").namespace == "магазин-β_1:x"

    def test_none_means_that_the_name_of_the_app_is_taken(self):
        assert read(redlock_beat_namespace=None).namespace == "shop"

    def test_an_app_whose_name_cannot_serve_is_told_which_setting_to_use(self):
        with pytest.raises(SettingError, match=r"redlock_beat_namespace .* = 'my shop'"):
            Settings.from_app(Celery("my shop", set_as_current=False))

    @pytest.mark.parametrize("name", [None, "", "__main__"])
    def test_an_app_without_a_name_is_told_so_once(self, name, caplog):
        app = Celery(name, set_as_current=False)
        with caplog.at_level(logging.WARNING):
            assert Settings.from_app(app).namespace == "celery"
            assert Settings.from_app(app).namespace == "celery"
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "redlock_beat_namespace" in caplog.text

    def test_an_app_without_a_name_but_with_a_namespace_is_told_nothing(self, caplog):
        app = Celery(set_as_current=False, redlock_beat_namespace="till")
        assert Settings.from_app(app).namespace == "till"
        assert not caplog.records


class TestStartingDeadline:
    def test_celerys_own_setting_is_read(self):
        assert read(beat_cron_starting_deadline=3600).cron_starting_deadline == 3600.0
        assert read(beat_cron_starting_deadline=0).cron_starting_deadline == 0.0
        assert read().cron_starting_deadline is None

    def test_it_is_read_with_a_prefix(self):
        app = Celery("shop", set_as_current=False)
        app.config_from_object({"CELERY_BEAT_CRON_STARTING_DEADLINE": 60}, namespace="CELERY")
        assert Settings.from_app(app).cron_starting_deadline == 60.0

    def test_a_wrong_one_is_refused_under_its_own_name(self):
        text = refusal(beat_cron_starting_deadline="1h")
        assert text.startswith("beat_cron_starting_deadline = '1h' is no duration")


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "masked"),
        [
            ("redis://host/0", "redis://host/0"),
            ("redis://:pw@host:6379/0", "redis://:***@host:6379/0"),
            (
                "rediss://me:pw@host/0?ssl_cert_reqs=none",
                "rediss://me:***@host/0?ssl_cert_reqs=none",
            ),
            ("redis://pw@host", "redis://***@host"),
            ("redis://:p@/;w@host/0", "redis://:***@host/0"),
            ("redis://host/0?password=pw&db=1", "redis://host/0?password=***&db=1"),
            (
                "unix:///run/redis.sock?sentinel_password=pw",
                "unix:///run/redis.sock?sentinel_password=***",
            ),
            (
                "sentinel://:pw@h1:26379;sentinel://:pw@h2:26379/0",
                "sentinel://:***@h1:26379;sentinel://:***@h2:26379/0",
            ),
            ("sentinel://h1:26379;sentinel://h2:26379", "sentinel://h1:26379;sentinel://h2:26379"),
            ("sentinel://:pw@h1;h2;h3/0", "sentinel://:***@h1;h2;h3/0"),
            ("sentinel://:pw@h1;:pw@h2", "sentinel://:***@h2"),
            (
                "redis+sentinel://u:pw@h1:26379,h2:26379/mymaster/0?sentinel_password=pw",
                "redis+sentinel://u:***@h1:26379,h2:26379/mymaster/0?sentinel_password=***",
            ),
            ("redis+sentinel://:pw@h1,:pw@h2/mymaster", "redis+sentinel://:***@h2/mymaster"),
            ("rediss+cluster://u:pw@h1:1,h2:2", "rediss+cluster://u:***@h1:1,h2:2"),
            ("pw@host", "***"),
        ],
    )
    def test_a_url_is_shown_without_its_passwords(self, url, masked):
        assert mask(url) == masked

    def test_the_repr_shows_everything_but_the_password(self):
        text = repr(read(redlock_beat_url="redis://:pw@host/0", redlock_beat_lease=7))
        assert "url='redis://:***@host/0'" in text
        assert "lease=7.0" in text
        assert "pw" not in text

    def test_a_repr_without_a_url_says_none(self):
        assert "url=None" in repr(read())

    @pytest.mark.parametrize(
        "value", ["pw@host", ":pw", "redis://:p w@host", ["redis://:pw@host"], b"redis://:pw@host"]
    )
    def test_a_refused_url_does_not_show_its_password(self, value):
        text = refusal(redlock_beat_url=value)
        assert "redlock_beat_url = " in text
        assert "redis://host:6379/0" in text
        assert "pw" not in text
        assert "p w" not in text

    def test_a_url_that_went_to_the_wrong_setting_does_not_show_its_password(self):
        assert "pw" not in refusal(redlock_beat_lease="redis://:pw@host")

    def test_two_urls_for_one_setting_do_not_show_their_passwords(self):
        text = refusal(redlock_beat_url="redis://:pw@a", REDLOCK_BEAT_URL="redis://:pw@b")
        assert "pw" not in text

    def test_the_traceback_of_a_refusal_has_no_cause_with_the_value(self):
        with pytest.raises(SettingError) as caught:
            read(redlock_beat_url="pw")
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
