"""Many nodes at once: a tick has one live grant, and one message."""

from __future__ import annotations

import time
from collections import Counter

from celery_redlock_beat.ledger import MOST_PER_CALL, Ask, Closing, Verdict
from ledger.places import LIMIT, all_at_once, due_ticks, message, messages

THREADS = 8
TICKS = 200


def test_of_eight_nodes_that_claim_the_same_ticks_each_tick_is_granted_to_one(ledgers):
    nodes = [ledgers.node() for _ in range(THREADS)]
    ticks = due_ticks(ledgers, nodes[0], count=TICKS)

    def claim_all(node):
        sent = []
        for start in range(0, TICKS, 10):
            asks = [Ask(tick, tick.at) for tick in ticks[start : start + 10]]
            for answer in node.claim(asks).answers:
                if answer.grant is not None:
                    sent.append(answer.tick)
                    closing = node.enqueue(answer.grant, [message(answer.tick)], {})
                    assert closing is Closing.DONE
        return sent

    granted = Counter(tick for sent in all_at_once(nodes, claim_all) for tick in sent)
    assert granted == Counter(ticks)
    assert messages(ledgers) == Counter(ticks)
    assert ledgers.totals() == {"sent": TICKS}
    assert ledgers.open_ticks() == {}


def test_nodes_that_take_over_from_each_other_all_the_time_send_each_tick_once(ledgers):
    # A lease of 1 µs: whoever asks next is granted the tick.
    nodes = [ledgers.node(lease=1) for _ in range(THREADS)]
    ticks = due_ticks(ledgers, nodes[0], count=TICKS // 4)
    assert len(ticks) <= MOST_PER_CALL

    def send_all(node):
        closings = Counter()
        asked, ends = ticks, time.monotonic() + LIMIT
        while asked and time.monotonic() < ends:
            answers = node.claim([Ask(tick, tick.at) for tick in asked]).answers
            if ledgers.kind == "memory":
                ledgers.pass_time(1)
            for held in filter(None, (answer.grant for answer in answers)):
                closings[node.enqueue(held, [message(held.tick)], {})] += 1
            asked = [answer.tick for answer in answers if answer.verdict is not Verdict.SETTLED]
        assert not asked
        return closings

    closings = sum(all_at_once(nodes, send_all), Counter())
    assert closings[Closing.DONE] == len(ticks)
    assert messages(ledgers) == Counter(ticks)
    assert ledgers.totals() == {"sent": len(ticks)}
