"""What was stored, removed, paused and resumed outlives a loss of data with whoever knew it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import Registration, Verdict
from celery_redlock_beat.ledger.steering import Change, Definition, Kind, Resumption
from celery_redlock_beat.ledger.testimony import Memory, Recovery, Testimony
from celery_redlock_beat.ticks import Tick
from ledger.places import (
    HOLD_DOWN,
    MINUTE,
    MOMENT,
    claim,
    due_ticks,
    join,
    patient_nodes,
    register,
    remove,
    stored,
)

ALL = ["marks", "open", "grants", "paused", "entries"]


class Mind:
    """What a node has heard of the feed, from its first day on."""

    def __init__(self, node):
        self.node = node
        self.known: dict[tuple[Kind, str], Change] = {}
        self.upto = 0

    def follow(self):
        told = self.node.changes(self.upto)
        self.known |= {(each.kind, each.name): each for each in told.changes}
        self.upto = told.upto
        return self

    def testify(self, memories=()):
        """Take part in a recovery, and restore what the copy lacks."""
        told = self.node.recover(Testimony(memories))
        later = [each for each in self.known.values() if each.revision > told.revision]
        self.node.restore(sorted(later, key=lambda each: each.revision))
        return told


@pytest.fixture
def minds(ledgers):
    """Two that follow the feed from its first day on, in whose recoveries all can be heard."""
    return [Mind(node) for node in patient_nodes(ledgers)[:2]]


@pytest.fixture
def mind(minds):
    return minds[0]


@pytest.fixture
def op(ledgers, minds):
    return ledgers.operator(hold_down=HOLD_DOWN)


def recover(place, *minds):
    """Have them all heard, and the recovery end; return what the first one was told at first."""
    told, *_ = [mind.testify() for mind in minds]
    place.pass_time(HOLD_DOWN)
    for mind in minds:
        assert mind.testify().wait == 0
    return told


def what_is_kept(place):
    return place.stored(), place.pauses(), place.revisions()


DISASTERS = {
    "everything": lambda place: place.flush(),
    "the entries": lambda place: place.lose_entries(),
    "the pauses": lambda place: place.lose_pauses(),
    "the marks": lambda place: place.lose_marks(),
}


@pytest.fixture(params=DISASTERS.values(), ids=DISASTERS)
def disaster(request, ledgers):
    return lambda: request.param(ledgers)


class TestWhateverIsLost:
    def test_comes_back_with_its_revisions(self, ledgers, op, mind, disaster):
        stored(op)
        op.pause(["tidy", "other"], "why")
        before = what_is_kept(ledgers)
        highest = mind.follow().upto
        disaster()
        recover(ledgers, mind)
        assert what_is_kept(ledgers) == before
        claimed = mind.node.claim([])
        assert (claimed.revision, claimed.stirred) == (highest, False)
        assert mind.node.changes(highest).changes == []
        assert stored(op, "later") > highest

    def test_comes_back_from_whoever_knows_it_in_any_order(self, ledgers, op, minds, disaster):
        early, late = minds
        stored(op)
        early.follow()
        op.pause(["tidy"])
        stored(op, "other")
        late.follow()
        before = what_is_kept(ledgers)
        for order in ((early, late), (late, early)):
            disaster()
            recover(ledgers, *order)
            assert what_is_kept(ledgers) == before

    def test_nothing_comes_back_that_was_removed_or_resumed_since(
        self, ledgers, op, minds, disaster
    ):
        early, late = minds
        stored(op)
        stored(op, "kept")
        (paused,) = op.pause(["other"])
        early.follow()
        late.follow()
        remove(op)
        op.resume([Resumption("other", paused)])
        late.follow()
        before = what_is_kept(ledgers)
        for order in ((early, late), (late, early)):
            disaster()
            recover(ledgers, *order)
            assert what_is_kept(ledgers) == before
            assert ledgers.gone().keys() == {"e:tidy", "p:other"}

    def test_what_is_still_there_stays_though_nobody_remembers_it(self, ledgers, op, disaster):
        stored(op)
        op.pause(["tidy"])
        entries, pauses, _ = what_is_kept(ledgers)
        disaster()
        late = Mind(ledgers.node(joined=False, hold_down=HOLD_DOWN))
        recover(ledgers, late)
        assert ledgers.stored() in (entries, {})
        assert ledgers.pauses() in (pauses, {})
        claimed = late.node.claim([])
        assert not claimed.stirred
        assert claimed.revision == max(ledgers.revisions().values(), default=0)
        assert late.follow().upto == claimed.revision
        assert {each.name for each in late.known.values()} == (
            ledgers.stored().keys() | ledgers.pauses().keys()
        )


class TestAnOlderCopy:
    def test_is_brought_up_to_date_by_what_came_after_it(self, ledgers, op, mind):
        first = stored(op)
        stored(op, "other")
        mind.follow()
        old = ledgers.snapshot()
        op.store([Definition("{}", Registration("tidy", "daily"), first)])
        op.pause(["tidy"])
        remove(op, "other")
        mind.follow()
        before = what_is_kept(ledgers)
        ledgers.restore(old)
        ledgers.restart()
        assert recover(ledgers, mind).revision < mind.upto
        assert what_is_kept(ledgers) == before
        assert "e:other" in ledgers.gone()

    def test_gives_no_revision_again_though_whoever_heard_it_is_gone(self, ledgers, op, mind):
        stored(op)
        mind.follow()
        old = ledgers.snapshot()
        (lost,) = op.pause(["tidy"])
        ledgers.restore(old)
        ledgers.restart()
        ledgers.pass_time(MOMENT)
        recover(ledgers, mind)
        assert ledgers.operator("bob@ops").pause(["tidy"])[0] > lost

    def test_is_not_what_an_operator_saw(self, ledgers, op, mind):
        first = stored(op)
        mind.follow()
        old = ledgers.snapshot()
        change = Definition("{}", Registration("tidy", "daily"), first)
        (told,) = op.store([change])
        ledgers.restore(old)
        ledgers.restart()
        with pytest.raises(LedgerRecovering):
            op.store([change])
        recover(ledgers, mind)
        (again,) = op.store([replace(change, expected=told.revision)])
        assert (again.done, again.revision) == (False, first)


class TestWhatIsRestored:
    def test_is_older_than_what_is_known_and_changes_nothing(self, ledgers, a, op):
        revision = stored(op)
        (paused,) = op.pause(["tidy"])
        before = what_is_kept(ledgers)
        a.restore(
            [
                Change(Kind.ENTRY, "tidy", revision - 1, b"older"),
                Change(Kind.ENTRY, "tidy", revision, b"the same"),
                Change(Kind.PAUSE, "tidy", paused, None),
            ]
        )
        assert what_is_kept(ledgers) == before

    def test_is_told_to_others_by_the_feed(self, ledgers, a, b, op):
        begin = stored(op)
        later = begin + MINUTE
        a.restore(
            [
                Change(Kind.ENTRY, "größe", later, b"text \xff\x00"),
                Change(Kind.PAUSE, "x", later + 1, None),
            ]
        )
        told = b.changes(begin)
        assert told.changes == [
            Change(Kind.ENTRY, "größe", later, b"text \xff\x00"),
            Change(Kind.PAUSE, "x", later + 1, None),
        ]
        assert told.upto == later + 1

    def test_holds_back_as_before(self, ledgers, op, mind):
        (tick,) = due_ticks(ledgers, mind.node)
        op.pause(["tidy"])
        mind.follow()
        ledgers.flush()
        mind.testify([Memory("tidy", tick.at - 1, sure=tick.at - 1)])
        recover(ledgers, mind)
        assert claim(mind.node, tick).verdict is Verdict.PAUSED

    def test_does_not_come_back_to_a_node_that_has_not_told_its_marks(self, ledgers, a):
        register(a, "tidy")
        ledgers.restart()
        a.restore([Change(Kind.ENTRY, "other", 7, b"7 {}")])
        with pytest.raises(LedgerRecovering):
            a.claim([])
        join(a)
        a.claim([])

    def test_is_pushed_in_parts(self, ledgers, a):
        changes = [Change(Kind.ENTRY, f"entry {each}", each, b"{}") for each in range(1, 1202)]
        a.restore(changes)
        assert len(ledgers.stored()) == 1201
        assert ledgers.revisions()["e:entry 1201"] == 1201

    def test_is_heard_while_the_recovery_runs(self, ledgers, op, minds):
        mind, second = minds[0], minds[1].node
        stored(op)
        mind.follow()
        ledgers.flush()
        assert second.recover(Testimony()).wait > 0
        assert mind.testify().wait > 0
        with pytest.raises(LedgerRecovering):
            op.pause(["tidy"])
        ledgers.pass_time(HOLD_DOWN)
        assert second.recover(Testimony()).wait == 0
        assert second.changes(0).upto == mind.upto


class TestALedgerThatBeganEmpty:
    def test_is_one_where_nobody_remembers_anything(self, ledgers):
        node = ledgers.node(joined=False)
        earliest = ledgers.now()
        told = node.recover(Testimony())
        assert told.lost == ALL
        assert earliest <= told.began <= ledgers.now()
        assert ledgers.node(joined=False).recover(Testimony()).began == told.began
        again = node.recover(Testimony())
        assert again == Recovery(0, began=told.began)

    @pytest.mark.parametrize(
        "remember",
        [
            lambda node: node.recover(Testimony([Memory("tidy", 5, sure=5)])),
            lambda node: node.restore([Change(Kind.PAUSE, "tidy", 5, None)]),
        ],
    )
    def test_is_none_if_somebody_remembers(self, ledgers, a, b, remember):
        ledgers.flush()
        assert a.recover(Testimony()).began > 0
        remember(b)
        assert a.recover(Testimony()).began == 0

    def test_is_none_that_lost_only_a_key_or_moved(self, ledgers, a):
        a.recover(Testimony([Memory("tidy", 5, sure=5)]))
        for disaster in (ledgers.lose_entries, ledgers.lose_pauses, ledgers.restart):
            disaster()
            assert a.recover(Testimony()).began == 0


def test_revisions_rise_although_the_clock_was_set_back_and_the_marks_were_lost(ledgers, a):
    ahead = ledgers.now() + 1000 * MINUTE
    a.restore([Change(Kind.ENTRY, "tidy", ahead, b"{}")])
    ledgers.lose_marks()
    late = ledgers.node()
    assert late.claim([]).revision == ahead
    op = ledgers.operator()
    assert stored(op, "other") > ahead
    assert op.begin() == 0
    late.claim([])
    assert claim(late, Tick("tidy", 5), revision=ahead).verdict is Verdict.UNREGISTERED


class TestWhoComesLate:
    def test_brings_nothing_back_that_nobody_would_hear_of(self, ledgers, op, mind):
        revision = stored(op)
        mind.follow()
        remove(op)
        highest = stored(op, "later")
        mind.node.restore([mind.known[Kind.ENTRY, "tidy"]])
        assert ledgers.stored().keys() == {"later"}
        assert mind.node.claim([]).revision == highest > revision

    def test_tells_what_nobody_else_has_heard(self, ledgers, op, mind):
        revision = stored(op)
        later = Change(Kind.PAUSE, "tidy", revision + 7, b"%d 0 {}" % (revision + 7))
        mind.node.restore([later])
        assert ledgers.pauses().keys() == {"tidy"}
        assert mind.node.claim([]).revision == later.revision

    def test_is_not_believed_by_a_server_that_it_has_not_asked(self, ledgers, op, mind):
        stored(op)
        mind.follow()
        ledgers.flush()
        asked = replace_epoch(mind.node, "of another server")
        mind.node.restore(list(mind.known.values()))
        assert ledgers.stored() == {}
        replace_epoch(mind.node, asked)


def replace_epoch(node, epoch):
    before, node.epoch = node.epoch, epoch
    return before
