"""Faults that come together: each is borne alone elsewhere, and they do not come alone."""

from __future__ import annotations

from support.trial import LEASE, Trial


def test_lost_replies_a_killed_node_a_frozen_one_and_a_restarted_server_together(
    redis_server, proxy, tmp_path
):
    with Trial(tmp_path, redis_server, url=proxy.url) as trial:
        dying, sleeping, _ = trial.nodes
        proxy.drop_replies(0.1, seed=11)
        for _ in range(2):
            trial.next_burst()
            sleeping.freeze()
            trial.next_burst()
            dying.kill()
            redis_server.restart()
            trial.go_on(LEASE + 1)
            sleeping.thaw()
            trial.begin([dying])
            trial.go_on(2)
        account = trial.conclude()
    assert proxy.dropped > 20
    assert account.faults == {}
