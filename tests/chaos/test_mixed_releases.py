"""Two releases of this package on one ledger: of one format they share it, of two they say so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import celery_redlock_beat
from support.trial import LIMIT, Trial

PRELUDE = Path("ledger") / "lua" / "prelude.lua"
FORMAT = "local FORMAT = '1'\n"


@pytest.fixture
def other_release(tmp_path):
    """Return a function that makes a release with another prelude of the scripts."""

    def make(line: str) -> dict[str, str]:
        home = tmp_path / "other release"
        package = home / "celery_redlock_beat"
        shutil.copytree(Path(celery_redlock_beat.__file__).parent, package)
        prelude = package / PRELUDE
        text = prelude.read_text()
        assert FORMAT in text
        prelude.write_text(text.replace(FORMAT, line))
        return {"PYTHONPATH": str(home)}

    return make


def test_a_release_of_the_same_format_shares_the_ledger(redis_server, other_release, tmp_path):
    env = {2: other_release(f"-- of another release\n{FORMAT}")}
    with Trial(tmp_path, redis_server, env=env) as trial:
        trial.go_on(3)
        for node in trial.nodes[:2]:
            trial.end(node)
        before = len(trial.collector.arrivals)
        trial.wait_for(lambda came: len(came) > before + 5)
        trial.begin(trial.nodes[:2])
        redis_server.restart()
        trial.go_on(2)
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.parametrize("first", ["older", "newer"])
def test_a_release_of_another_format_sends_nothing_and_says_why(
    redis_server, other_release, tmp_path, first
):
    newer = other_release("local FORMAT = '2'\n")
    env = dict.fromkeys((0, 1), newer) if first == "newer" else {2: newer}
    with Trial(tmp_path, redis_server, env=env, start=False) as trial:
        *running, stranger = trial.nodes
        trial.begin(running)
        stranger.start()
        said = stranger.wait_for_log("the ledger is kept in format.*", LIMIT)[0]
        assert f"format {2 if first == 'newer' else 1}, which this release does not know" in said
        assert "run the release that wrote it on every node" in said
        trial.go_on(2)
        assert stranger.alive
        assert ": sent " not in stranger.log
        assert stranger.log.count("kept in format") == 1, "said once, not per pass"
        account = trial.conclude()
    assert account.faults == {}
