"""A beat within each of three workers, as `celery worker -B --scheduler redlock` has it."""

from __future__ import annotations

from support.every_second import FIVE, RECORD, RUNS, every_second
from support.nodes import EmbeddedBeat
from support.trial import Trial


def test_each_tick_is_executed_once_by_three_workers_with_a_beat_each(redis_server, tmp_path):
    with Trial(
        tmp_path,
        redis_server,
        schedule=every_second(FIVE, "proj.record"),
        extra=RECORD,
        queue=RUNS,
        make_node=EmbeddedBeat,
    ) as trial:
        trial.go_on(10)
        # Whoever asks first takes a whole burst, so how soon each has had one is chance.
        for share in (" sent ", " succeeded in "):
            trial.until(
                lambda share=share: all(share in node.log for node in trial.nodes),
                f"{share!r} in the log of each",
            )
        account = trial.conclude(exact=False)
    assert account.faults == {}
