"""How a node keeps up with what is stored and paused, on a ledger in memory."""

from dataclasses import replace

import pytest

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.errors import LedgerDisorder, LedgerRecovering
from celery_redlock_beat.feed import DISORDER_PAUSE, MOST_BYTES, MOST_PUSHED, Feed
from celery_redlock_beat.ledger import Registration
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.ledger.memory_server import MemoryServer
from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.steering import (
    Change,
    Definition,
    Kind,
    Remainder,
    Removal,
    Resumption,
)
from celery_redlock_beat.ledger.testimony import Testimony
from celery_redlock_beat.ledger.wire_steering import MOST_CHANGES
from support.fleet import START

ENTRY, PAUSE = Kind.ENTRY, Kind.PAUSE


class Follower:
    """A node's feed, and what it took: by kind and name the text, or that it is gone."""

    def __init__(self, place):
        self.ledger = MemoryLedger(place.server, hold_down=0, clock=place.clock())
        while self.ledger.recover(Testimony()).wait:
            pass
        self.asked = []
        self.taken = []
        self.feed = Feed(self, self.taken.append, lambda: place.now)

    def changes(self, since, *, going_on=False):
        self.asked.append(since)
        return self.ledger.changes(since, going_on=going_on)

    def keep_up(self):
        """Pass once, as a node does: claim, then follow as long as there is more."""
        try:
            self.feed.hear(self.ledger.claim([]))
        except LedgerRecovering:
            self.recover()
            self.feed.hear(self.ledger.claim([]))
        while self.feed.follow():
            pass

    def news(self):
        """Return what was taken since the last time: kind, name, and whether it is there."""
        self.keep_up()
        told = [(change.kind, change.name, change.text is not None) for change in self.taken]
        self.taken.clear()
        return told

    def recover(self):
        """Tell all that it knows, after a loss."""
        told = self.ledger.recover(Testimony())
        for part in self.feed.what_came_after(told.revision):
            self.ledger.restore(part)


class Place:
    """A server in memory and an operator; time stands still until it is moved."""

    def __init__(self):
        self.now = START
        self.server = MemoryServer(lambda: self.now)
        self.nodes = [Follower(self)]
        self.operator = MemorySteering(self.server, who="ann", hold_down=0, clock=self.clock())

    def clock(self):
        return LedgerClock(monotonic=lambda: self.now)

    def store(self, *names, expected=0):
        for name in names:
            known = Registration(name, "every second")
            (done,) = self.operator.store([Definition('{"task": "t"}', known, expected)])
            assert done.done
        return done.revision

    def remove(self, name):
        look = self.operator.look([name])[0]
        left = Remainder(look.record.mark, look.now)
        assert self.operator.remove([Removal(name, look.revision, left)])[0].done

    def resume(self, name):
        revision = self.operator.look([name])[0].pause.revision
        assert self.operator.resume([Resumption(name, revision)])[0].done

    def join(self):
        self.nodes.append(Follower(self))
        return self.nodes[-1]


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def node(place):
    return place.nodes[0]


def test_nothing_is_asked_for_as_long_as_there_is_nothing_new(place, node):
    for _ in range(5):
        assert node.news() == []
    place.store("a")
    assert node.news() == [(ENTRY, "a", True)]
    asked = len(node.asked)
    for _ in range(5):
        assert node.news() == []
    assert len(node.asked) == asked


def test_what_is_stored_changed_paused_resumed_and_removed_is_told_once_each(place, node):
    revision = place.store("a")
    assert node.news() == [(ENTRY, "a", True)]
    place.store("a", expected=revision)
    place.operator.pause(["a"])
    assert node.news() == [(ENTRY, "a", True), (PAUSE, "a", True)]
    place.resume("a")
    assert node.news() == [(PAUSE, "a", False)]
    place.remove("a")
    assert node.news() == [(ENTRY, "a", False)]


def test_of_several_changes_of_one_thing_only_the_last_is_told(place, node):
    place.store("a", expected=place.store("a"))
    place.remove("a")
    place.store("b")
    place.remove("b")
    place.store("b")
    assert node.news() == [(ENTRY, "a", False), (ENTRY, "b", True)]


def test_a_node_that_starts_learns_all_in_parts(place):
    place.store(*(f"entry {number}" for number in range(MOST_CHANGES + 1)))
    node = place.join()
    node.feed.hear(node.ledger.claim([]))
    assert node.feed.follow()
    assert len(node.taken) == MOST_CHANGES
    node.keep_up()
    assert len(node.taken) == MOST_CHANGES + 1
    assert len(node.asked) == 2


def test_a_change_between_two_parts_is_not_missed(place):
    names = [f"entry {number}" for number in range(MOST_CHANGES + 1)]
    revision = place.store(*names)
    node = place.join()
    node.feed.hear(node.ledger.claim([]))
    node.feed.follow()
    place.store(names[-1], expected=revision)
    place.remove(names[0])
    node.keep_up()
    there = {change.name for change in node.taken if change.text is not None}
    assert there == set(names)
    assert node.taken[-1] == replace(node.taken[-1], name=names[0], text=None)


def test_what_somebody_wrote_or_deleted_by_hand_is_told_too(place, node):
    place.store("a", "b")
    node.keep_up()
    node.taken.clear()
    place.server.entries["by hand"] = b"no json"
    assert node.news() == [(ENTRY, "by hand", True)]
    del place.server.entries["a"]
    assert node.news() == [(ENTRY, "a", False)]


def test_a_node_in_doubt_asks_from_the_beginning_and_drops_what_is_not_told(place, node):
    place.store("a", "b")
    node.keep_up()
    node.taken.clear()
    place.server.changes.pop((ENTRY, "a"))
    place.server.entries.pop("a")  # with no trace in the feed
    assert node.news() == []
    node.feed.doubt()
    assert node.news() == [(ENTRY, "a", False)]
    assert node.asked[-1] == 0


def test_a_doubt_when_there_is_news_anyway_does_not_begin_anew(place, node):
    place.store("a")
    node.keep_up()
    place.store("b")
    node.feed.hear(node.ledger.claim([]))
    node.feed.doubt()
    node.keep_up()
    assert 0 not in node.asked[1:]


def test_after_a_flush_a_node_tells_the_ledger_all_that_it_knows(place, node):
    place.store("a", "b", "gone")
    place.operator.pause(["a", "from code"], "stock-taking", "ann")
    place.remove("gone")
    node.keep_up()
    kept = dict(place.server.entries), dict(place.server.paused), dict(place.server.changes)
    place.server.flush()
    node.recover()
    server = place.server
    assert (dict(server.entries), dict(server.paused), dict(server.changes)) == kept
    assert (ENTRY, "gone") in server.gone
    node.taken.clear()
    assert node.news() == []


def test_an_older_copy_is_told_only_what_it_lacks(place, node):
    place.store("a", "b")
    copy = place.server.snapshot()
    place.remove("a")
    place.store("c")
    node.keep_up()
    place.server.restore(copy)
    lacking = [each for part in node.feed.what_came_after(copy.revision) for each in part]
    assert [(each.name, each.text is None) for each in lacking] == [("a", True), ("c", False)]


def test_a_node_that_slept_brings_nothing_back_that_another_one_knows_to_be_gone(place, node):
    place.store("a", "b")
    place.operator.pause(["b"])
    node.keep_up()
    place.remove("a")
    place.resume("b")
    other = place.join()
    other.keep_up()  # and has never heard of them
    place.server.flush()
    node.recover()
    other.recover()
    assert dict(place.server.paused) == {}
    assert list(place.server.entries) == ["b"]
    node.keep_up()
    assert [change.name for change in node.taken if change.text is None] == ["a", "b"]


def test_what_is_told_to_a_ledger_comes_in_parts_ascending(place, node):
    large = b"x" * (MOST_BYTES + 1)
    for revision in range(1, MOST_PUSHED + 10):
        text = large if revision in {3, 4} else b""
        node.feed._learn(Change(ENTRY, f"entry {revision}", revision, text))
    parts = list(node.feed.what_came_after(1))
    told = [change.revision for part in parts for change in part]
    assert told == list(range(2, MOST_PUSHED + 10))
    assert [len(part) for part in parts[:2]] == [2, 1]
    assert max(map(len, parts)) == MOST_PUSHED


def test_keys_that_are_not_ours_are_told_once_and_looked_at_again_soon(place, node, caplog):
    place.store("a")
    asked, changes = [], node.ledger.changes

    def foreign(since, *, going_on=False):
        asked.append(since)
        raise LedgerDisorder("the key 'entries' holds a string", "delete or rename it")

    node.ledger.changes = foreign
    for _ in range(3):
        node.keep_up()
    assert len(asked) == 1
    place.now += DISORDER_PAUSE
    node.keep_up()
    assert len(asked) == 2
    assert caplog.text.count("all else goes on: the key 'entries' holds a string") == 1
    node.ledger.changes = changes
    place.now += DISORDER_PAUSE
    assert node.news() == [(ENTRY, "a", True)]


def test_after_a_recovery_all_is_told_anew_also_what_has_an_old_revision(place, node):
    other = place.join()
    place.store("a")
    other.news()
    node.news()
    copy = place.server.snapshot()
    place.remove("a")
    assert node.news() == [(ENTRY, "a", False)]
    # Only the other one, which knows less, takes part in what comes now.
    place.server.restore(copy)
    place.server.restart()
    other.keep_up()
    place.store("b")
    node.keep_up()
    assert (ENTRY, "a", True) not in [(c.kind, c.name, c.text is not None) for c in node.taken]
    node.feed.begin_anew()
    assert (ENTRY, "a", True) in node.news()
