"""Crontabs against the stock beat of the installed Celery; tests/oracles has it run for a year."""

from __future__ import annotations

from datetime import time

import celery
from hypothesis import assume, given
from hypothesis import strategies as st

from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import CeleryCrontab
from celery_redlock_beat.timetables.zones import zone_of
from support.drawn import crontabs, examples
from support.stock_beat import start_stock_beat
from support.turns import DAY, MINUTE, SECOND, TURNS
from support.windows import ticks_within


def leaps_over_midnight(turn):
    """Whether clocks go forward from an evening into the next date, as Toronto's did in 1919.

    Celery before 5.7 compares the date of its clock with that of the last run, and then loses what
    is due before the next full hour.
    """
    old_offset = zone_of(turn.zone).offset(turn.at - SECOND)
    shown = to_datetime(turn.at + old_offset)
    reached = to_datetime(turn.at + old_offset + turn.shift)
    return shown.time() != time() and shown.date() < reached.date()


@examples(100)
@given(st.sampled_from(TURNS), st.integers(3 * 60, 40 * 60), st.data())
def test_their_ticks_are_what_a_stock_beat_sends_and_no_other(turn, minutes_before, data):
    assume(celery.VERSION >= (5, 7) or not leaps_over_midnight(turn))
    spec, _ = data.draw(crontabs(turn, dst="celery"))
    start = turn.at - minutes_before * MINUTE + SECOND // 2
    end = start + 2 * DAY
    beat = start_stock_beat({"report": spec}, turn.zone, to_datetime(start))
    sent = [to_micros(at) for _, at in beat.run(to_datetime(end))]
    assert ticks_within(CeleryCrontab.of(spec, zone_of(turn.zone)), start, end) == sent
