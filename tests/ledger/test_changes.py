"""One feed of what was stored, removed, paused and resumed; also what somebody wrote by hand."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.ledger import Closing, Registration, Release, Settlement, Verdict
from celery_redlock_beat.ledger.steering import (
    Change,
    Changes,
    Definition,
    Kind,
    Removal,
    Resumption,
)
from celery_redlock_beat.ledger.wire_steering import MOST_CHANGES
from celery_redlock_beat.ticks import SENT, Tick
from ledger.places import (
    claim,
    due_ticks,
    grant,
    message,
    register,
    remove,
    stored,
)

MOST_GONE = 10_000


def store_many(operator, number):
    names = [f"entry {each}" for each in range(number)]
    told = operator.store([Definition("{}", Registration(name, "daily")) for name in names])
    return dict(zip(names, [each.revision for each in told], strict=True))


def names(changes):
    return [each.name for each in changes.changes]


def whole(node, page):
    """Return what is there of all that is told from the very beginning, page by page."""
    assert page.whole
    there = [*page.changes]
    while page.more:
        page = node.changes(page.upto, going_on=True)
        assert page.whole
        there += page.changes
    return [each for each in there if each.text is not None], page.upto


def test_an_empty_ledger_has_no_changes(ledgers, a):
    before = ledgers.records()
    assert a.changes(0) == Changes(0, [])
    assert ledgers.records() == before
    claimed = a.claim([])
    assert (claimed.revision, claimed.stirred) == (0, False)


def test_each_thing_is_told_once_as_it_is_now_in_the_order_of_its_revision(ledgers, a, op):
    first, other = stored(op), stored(op, "other")
    (paused,) = op.pause(["tidy"])
    changed = op.store([Definition("{}", Registration("tidy", "daily"), first)])[0].revision
    told = a.changes(0)
    texts = ledgers.stored()
    assert told.changes == [
        Change(Kind.ENTRY, "other", other, texts["other"]),
        Change(Kind.PAUSE, "tidy", paused, ledgers.pauses()["tidy"].encode()),
        Change(Kind.ENTRY, "tidy", changed, texts["tidy"]),
    ]
    assert (told.upto, told.more, told.whole) == (changed, False, False)
    assert a.changes(other).changes == told.changes[1:]
    assert a.changes(changed) == Changes(changed, [])


def test_what_is_gone_is_told_also_to_those_who_knew_nothing(ledgers, a, op):
    revision = stored(op)
    (paused,) = op.pause(["other"])
    resumed = op.resume([Resumption("other", paused)])[0].revision
    removed = remove(op).revision
    gone = [
        Change(Kind.PAUSE, "other", resumed, None),
        Change(Kind.ENTRY, "tidy", removed, None),
    ]
    assert a.changes(revision) == Changes(removed, gone)
    assert a.changes(0) == Changes(removed, gone), "so that they can vouch for it"


def test_a_node_that_asks_for_changes_hears_the_fence(ledgers, a, op):
    revision = stored(op)
    a.changes(0)
    assert a.fence == revision


def test_very_many_changes_are_told_page_by_page(ledgers, a, op):
    revisions = store_many(op, 2 * MOST_CHANGES + 7)
    told, upto, pages = {}, 0, []
    while True:
        page = a.changes(upto)
        told |= {each.name: each.revision for each in page.changes}
        pages.append(len(page.changes))
        upto = page.upto
        if not page.more:
            break
    assert pages == [MOST_CHANGES, MOST_CHANGES, 7]
    assert told == revisions
    assert upto == max(revisions.values())


def test_what_is_there_and_what_is_gone_is_told_in_one_order_over_all_pages(ledgers, a, op):
    begin = stored(op)
    revisions = store_many(op, MOST_CHANGES + 100)
    removed = op.remove([Removal(*each) for each in list(revisions.items())[::2]])
    store_many(op, MOST_CHANGES + 100)  # again, and the others are refused
    told, upto = [], begin
    while True:
        page = a.changes(upto)
        told += page.changes
        upto = page.upto
        if not page.more:
            break
    assert [each.revision for each in told] == sorted({each.revision for each in told})
    there = {each.name: each.revision for each in told if each.text is not None}
    assert {f"e:{name}": at for name, at in there.items()} | {"e:tidy": begin} == (
        ledgers.revisions()
    )
    assert not [each for each in told if each.text is None], "all that was removed is there again"
    assert removed[0].revision < min(there[each.entry] for each in removed)


def test_a_page_that_is_cut_off_within_what_is_gone_goes_on_there(ledgers, a, op):
    begin = stored(op)
    revisions = store_many(op, MOST_CHANGES + 100)
    kept = stored(op, "kept")
    op.pause(list(revisions))
    for start in range(0, len(revisions), 50):
        op.remove([Removal(*each) for each in list(revisions.items())[start : start + 50]])
    last = stored(op, "last")
    told, upto = [], begin
    while True:
        page = a.changes(upto)
        told += page.changes
        assert page.upto > upto
        upto = page.upto
        if not page.more:
            break
    gone = {(each.kind, each.name) for each in told if each.text is None}
    assert gone == {(kind, name) for kind in Kind for name in revisions}
    assert [each.revision for each in told if each.text is not None] == [kept, last]
    assert [each.revision for each in told] == sorted(each.revision for each in told)


def test_whoever_knows_less_than_what_is_remembered_as_gone_is_told_all_anew(ledgers, a, op):
    kept = stored(op, "kept")
    stored(op, "removed")
    ledgers.fill_gone(MOST_GONE)
    removed = remove(op, "removed").revision
    assert len(ledgers.gone()) == MOST_GONE
    assert "e:old 1" not in ledgers.gone()
    told = a.changes(1)
    assert not told.whole, "what it does not know of is still remembered"
    assert told.more
    ledgers.fill_gone(MOST_GONE + 20)
    last = stored(op, "last")
    remove(op, "last")
    told, upto = whole(a, a.changes(1))
    assert [each.revision for each in told] == [kept]
    assert upto == a.claim([]).revision
    assert not a.changes(removed).whole
    assert last > removed


def test_all_that_is_there_is_told_over_several_pages_where_the_node_says_so(ledgers, a, op):
    store_many(op, MOST_CHANGES + 3)
    ledgers.fill_gone(MOST_GONE + 50)
    remove(op, "entry 0")
    page = a.changes(9)
    assert page.more
    told, upto = whole(a, page)
    assert [each.name for each in told] == [f"entry {n}" for n in range(1, MOST_CHANGES + 3)]
    assert upto == a.claim([]).revision


class TestWhatWasDoneByHand:
    def test_is_told_by_the_next_claim_and_gets_a_revision(self, ledgers, a, op):
        revision = stored(op)
        ledgers.write_by_hand("hand", b"not even JSON")
        assert a.claim([]).stirred
        (told,) = a.changes(revision).changes
        assert told == Change(Kind.ENTRY, "hand", told.revision, b"not even JSON")
        assert told.revision > revision
        claimed = a.claim([])
        assert (claimed.stirred, claimed.revision) == (False, told.revision)
        assert ledgers.stored()["hand"] == b"not even JSON", "it is not touched"
        assert op.look(["hand"])[0].document == b"not even JSON"

    def test_is_a_removal_if_it_was_deleted(self, ledgers, a, op):
        revision = stored(op)
        (tick,) = due_ticks(ledgers, a)
        ledgers.delete_by_hand("tidy")
        assert a.claim([]).stirred
        (told,) = a.changes(revision).changes
        assert (told.name, told.text) == ("tidy", None)
        assert claim(a, tick, revision=revision).verdict is Verdict.CHANGED
        assert not a.claim([]).stirred

    def test_is_a_pause_that_is_told_at_once(self, ledgers, a):
        (tick,) = due_ticks(ledgers, a)
        ledgers.pause("tidy")
        claimed = a.claim([])
        assert claimed.stirred
        assert claim(a, tick).verdict is Verdict.PAUSED
        (told,) = a.changes(0).changes
        assert (told.kind, told.name) == (Kind.PAUSE, "tidy")
        ledgers.unpause("tidy")
        (gone,) = a.changes(told.revision).changes
        assert (gone.kind, gone.name, gone.text) == (Kind.PAUSE, "tidy", None)
        assert claim(a, tick).verdict is Verdict.GRANTED

    def test_brings_back_what_was_gone(self, ledgers, a, op):
        revision = stored(op)
        text = ledgers.stored()["tidy"]
        remove(op)
        ledgers.write_by_hand("tidy", text)
        (told,) = a.changes(revision).changes
        assert told.text == text
        assert told.revision > revision
        assert ledgers.gone() == {}


class TestAFeedThatWasDeleted:
    def test_begins_anew_with_what_is_there_at_later_revisions(self, ledgers, a, op):
        stored(op)
        (paused,) = op.pause(["tidy"])
        texts = ledgers.stored()["tidy"], ledgers.pauses()["tidy"].encode()
        ledgers.lose_changes()
        assert a.claim([]).stirred
        told = a.changes(paused)
        assert [each.text for each in told.changes] == [*texts]
        assert all(each.revision > paused for each in told.changes)
        assert not a.claim([]).stirred
        (found,) = op.look(["tidy"])
        assert [found.revision, found.pause.revision] == [each.revision for each in told.changes]
        assert op.resume([Resumption("tidy", found.pause.revision)])[0].done
        assert remove(op).done

    @pytest.mark.parametrize("text", [b"no number", b"99999999999999999999 {}", b"0 {}", b""])
    def test_gives_a_revision_of_ours_to_any_text(self, ledgers, a, op, text):
        before = op.pause(["other"])[0]
        ledgers.write_by_hand("tidy", text)
        ledgers.lose_changes()
        told = {each.name: each.revision for each in a.changes(before).changes}
        assert told.keys() == {"tidy", "other"}
        assert before < min(told.values())
        assert stored(op, "later") > max(told.values())

    def test_grants_nothing_of_a_stored_entry_until_then(self, ledgers, a, op):
        revision = stored(op)
        (tick,) = due_ticks(ledgers, a)
        ledgers.lose_changes()
        assert claim(a, tick, revision=revision).verdict is Verdict.CHANGED
        (told,) = a.changes(revision).changes
        assert claim(a, tick, revision=told.revision).verdict is Verdict.GRANTED


class TestAForeignTypeOfWhatIsStored:
    @pytest.fixture
    def node(self, served):
        return served.node()

    @pytest.fixture(params=["entries", "changes"])
    def foreign(self, request, served, node):
        key = served.keys[request.param]
        stored(served.operator(), "stored")
        served.client.delete(key)
        served.client.set(key, "of somebody else")
        return key

    def test_is_told_by_the_name_of_the_key(self, served, node, foreign):
        op = served.operator()
        for verb in (
            lambda: node.changes(0),
            lambda: op.store([Definition("{}", Registration("new", "daily"))]),
            lambda: op.remove([Removal("stored", 1)]),
            lambda: op.pause(["tidy"]),
            lambda: op.resume([Resumption("tidy", 1)]),
        ):
            before = served.records()
            with pytest.raises(LedgerUnavailable, match=f"{foreign!r} is ours, and holds a string"):
                verb()
            assert served.records() == before

    def test_keeps_no_entry_from_code_from_being_sent(self, served, node, foreign):
        first, second, third = due_ticks(served, node, count=3)
        assert node.claim([]).stirred
        assert node.enqueue(grant(node, first), [message(first)], {}) is Closing.DONE
        assert node.settle([Settlement(grant(node, second), SENT)]) == [Closing.DONE]
        node.release([grant(node, third)], 0, Release.UNTRIED)
        assert register(node, "other", "daily")

    def test_stops_no_recovery(self, served, node, foreign):
        (tick,) = due_ticks(served, node)
        served.restart()
        late = served.node()
        late.restore([Change(Kind.ENTRY, "stored", 7, b"7 {}")])
        assert claim(late, tick).verdict is Verdict.GRANTED
        assert served.client.get(foreign) == b"of somebody else"

    def test_grants_a_stored_entry_only_where_its_revision_can_be_read(self, served, node, foreign):
        tick = Tick("stored", served.now())
        told = claim(node, tick, revision=1).verdict
        assert told is Verdict.CHANGED
