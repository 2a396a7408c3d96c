"""RedBeat's own tests pass with our shim in its place, but for a list of decisions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from conformance.redbeat_release import VERSION, RedBeatRelease
from conformance.releases import VERSIONS, FetchError
from support.requirements import require
from support.servers import Server, have_server

LIST = tomllib.loads(Path(__file__).with_name("redbeat_deviations.toml").read_text())
BROKEN = {each["test"] for each in LIST["broken"]}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def redbeat(request):
    require("redis-server", have_server())
    with Server() as server:
        wanted = RedBeatRelease(request.config.cache.mkdir("redbeat-release"), server.url)
        try:
            wanted.fetch()
        except FetchError as problem:
            require(f"RedBeat {VERSION}, which pip could not fetch: {problem}", found=False)
        yield wanted


@pytest.fixture(scope="module")
def stock(redbeat, release):
    return redbeat.run(release, "redbeat_redis")


@pytest.fixture(scope="module")
def ours(redbeat, release):
    return redbeat.run(release, "redbeat_redis", "redbeat_in_place")


def listed_for(release):
    """Return the deviations on a release of Celery; one that names none is on each."""
    return {
        each["test"] for each in LIST["deviation"] if release.series in each.get("in", VERSIONS)
    }


def test_the_tests_pass_with_redbeat_itself(stock):
    surprises = {test: why for test, why in stock.items() if why and test not in BROKEN}
    assert surprises == {}


def test_the_same_tests_run_with_our_shim(stock, ours):
    assert set(ours) == set(stock)


def test_only_the_listed_tests_fail_with_our_shim(release, ours):
    expected = listed_for(release) | BROKEN
    surprises = {test: why for test, why in ours.items() if why and test not in expected}
    assert not surprises, "\n\n".join(f"{test}\n{why}" for test, why in surprises.items())


def test_every_listed_test_still_fails_with_our_shim(release, ours):
    assert {test for test in listed_for(release) if not ours.get(test)} == set()


@pytest.mark.parametrize("deviation", LIST["deviation"], ids=lambda each: each["test"])
def test_a_deviation_says_why_in_a_sentence_under_a_known_reason(deviation):
    assert deviation["reason"] in LIST["reasons"]
    assert deviation["why"].endswith(".")
    assert set(deviation.get("in", ())) <= set(VERSIONS)


def test_no_test_is_listed_twice_and_no_reason_is_left_over():
    listed = [each["test"] for each in (*LIST["deviation"], *LIST["broken"])]
    assert len(listed) == len(set(listed))
    assert {each["reason"] for each in LIST["deviation"]} == set(LIST["reasons"])
