"""Celery's own tests of beat pass with our scheduler, but for a list of decisions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from conformance.releases import VERSIONS

LIST = tomllib.loads(Path(__file__).with_name("deviations.toml").read_text())

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stock(release):
    return release.run()


@pytest.fixture(scope="module")
def ours(release):
    return release.run("in_place")


def listed_for(release):
    return {each["test"] for each in LIST["deviation"] if release.series in each["in"]}


def test_the_tests_pass_with_celerys_own_scheduler(stock):
    assert {test: failure for test, failure in stock.items() if failure} == {}


def test_the_same_tests_run_with_ours(stock, ours):
    # A parameter that is the scheduler's class shows in the name of a test.
    assert {test.replace("[Redlock", "[") for test in ours} == set(stock)


def test_only_the_listed_tests_fail_with_ours(release, ours):
    listed = listed_for(release)
    surprises = {test: why for test, why in ours.items() if why and test not in listed}
    assert not surprises, "\n\n".join(f"{test}\n{why}" for test, why in surprises.items())


def test_every_listed_test_still_fails_with_ours(release, ours):
    assert {test for test in listed_for(release) if not ours.get(test)} == set()


@pytest.mark.parametrize("deviation", LIST["deviation"], ids=lambda each: each["test"])
def test_a_deviation_says_why_in_a_sentence_under_a_known_reason(deviation):
    assert deviation["reason"] in LIST["reasons"]
    assert deviation["why"].endswith(".")
    assert set(deviation["in"]) <= set(VERSIONS)


def test_no_test_is_listed_twice_and_no_reason_is_left_over():
    tests = [each["test"] for each in LIST["deviation"]]
    assert len(tests) == len(set(tests))
    assert {each["reason"] for each in LIST["deviation"]} == set(LIST["reasons"])
