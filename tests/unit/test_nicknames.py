from __future__ import annotations

import pytest

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables.nicknames import NICKNAMES, spelled_out


@pytest.mark.parametrize(
    ("nickname", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_nickname_stands_for_five_fields(nickname, fields):
    assert spelled_out(nickname) == fields
    assert spelled_out(f"  {nickname.upper()} ") == fields


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("2d", 172_800),
        ("1.5h", 5400),
        ("1m30.25s", 90.25),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("1h 30m", 5400),
        ("0h90s", 90),
    ],
)
def test_every_takes_a_duration(duration, seconds):
    assert spelled_out(f"@every {duration}") == seconds * SECOND
    assert spelled_out(f" @EVERY\t{duration} ") == seconds * SECOND


@pytest.mark.parametrize(
    "duration",
    ["", "90", "s", "1x", "-5s", "+5s", "1M", "1h30", "1_0s", "5s, 6s", "9" * 5000],
)
def test_every_without_a_duration_is_refused_with_what_is_understood(duration):
    with pytest.raises(ConfigurationError, match="understood are d, h, m, s, ms and us"):
        spelled_out(f"@every {duration}")


@pytest.mark.parametrize("duration", ["0s", "0.1us", "1.5us", "0.0000001s"])
def test_a_period_of_nothing_or_of_a_part_of_a_microsecond_is_refused(duration):
    with pytest.raises(ConfigurationError, match=r"above zero, and of whole\s+microseconds"):
        spelled_out(f"@every {duration}")


@pytest.mark.parametrize(
    ("expression", "meant"),
    [("@dayly", "@daily"), ("@dialy", "@daily"), ("@ hourly", "@hourly"), ("@every90s", "@every")],
)
def test_a_misspelt_nickname_is_refused_with_a_suggestion(expression, meant):
    with pytest.raises(ConfigurationError, match=f"did you mean '{meant}'") as caught:
        spelled_out(expression)
    assert repr(expression) in str(caught.value)


@pytest.mark.parametrize("expression", ["@reboot", "@", "@x 1 2 3", "@daily @weekly or so"])
def test_an_unknown_nickname_is_refused_with_all_there_are(expression):
    with pytest.raises(ConfigurationError, match="unknown nickname; known are") as caught:
        spelled_out(expression)
    assert all(nickname in str(caught.value) for nickname in [*NICKNAMES, "@every"])
