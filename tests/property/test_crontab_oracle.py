"""Crontabs against the stock beat of the installed Celery; tests/oracles has it run for a year."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import CeleryCrontab
from celery_redlock_beat.timetables.zones import zone_of
from support.drawn import crontabs, examples
from support.stock_beat import start_stock_beat
from support.turns import DAY, MINUTE, SECOND, TURNS
from support.windows import ticks_within


@examples(100)
@given(st.sampled_from(TURNS), st.integers(3 * 60, 40 * 60), st.data())
def test_their_ticks_are_what_a_stock_beat_sends_and_no_other(turn, minutes_before, data):
    spec, _ = data.draw(crontabs(turn, dst="celery"))
    start = turn.at - minutes_before * MINUTE + SECOND // 2
    end = start + 2 * DAY
    beat = start_stock_beat({"report": spec}, turn.zone, to_datetime(start))
    sent = [to_micros(at) for _, at in beat.run(to_datetime(end))]
    assert ticks_within(CeleryCrontab.of(spec, zone_of(turn.zone)), start, end) == sent
