"""The worlds that are explored: small enough to be seen whole, each with what may happen in it."""

from __future__ import annotations

from model.bounds import Bounds

DELIVERIES = ("enqueue", "publish")


def _world(name: str, most: int, faults: str = "", **bounds: object) -> list[Bounds]:
    allowed = tuple((fault, faults.split().count(fault)) for fault in set(faults.split()))
    deliveries = bounds.pop("delivery", None)
    return [
        Bounds(name, delivery=delivery, faults=tuple(sorted(allowed)), most=most, **bounds)
        for delivery in ([deliveries] if deliveries else DELIVERIES)
    ]


NETWORK = "reply_lost late crash sleep"

ONE = "enqueue"
KEPT = {"stored": True, "delivery": ONE}
TWO_FAILOVERS = ("pause", "change", "failover", "failover")
ASLEEP = ("remove", "sleep", "failover", "pause")

WORLDS: list[Bounds] = [
    *_world("calm", 0, ticks=3),
    *_world("hasty clocks", 1, "reply_lost crash", ticks=2, hasty=True),
    *_world("bad network", 2, f"{NETWORK} reply_lost late", attempts=3),
    *_world("bad network, two ticks", 1, NETWORK, ticks=2),
    *_world("bad network, latest", 1, NETWORK, ticks=2, catch_up="latest"),
    *_world("latest of three", 1, "reply_lost crash", ticks=3, catch_up="latest", delivery=ONE),
    *_world("nothing late is wanted", 1, "crash reply_lost", ticks=2, catch_up="none"),
    *_world("poison", 1, "crash reply_lost", poison=True, delivery="publish"),
    *_world("an entry that few have", 2, "crash crash", nodes=3, without_entry=1),
    *_world("first start", 2, f"{NETWORK} flush", run_on_start=True),
    *_world("failover", 2, f"{NETWORK} failover flush"),
    *_world("failover and a late request", 2, "late failover"),
    *_world("failover, two ticks", 1, "failover flush", ticks=2),
    *_world("failover, latest", 1, "failover flush", ticks=2, catch_up="latest", delivery=ONE),
    *_world("failover during a recovery", 2, "failover failover flush"),
    *_world("failover to a slow clock", 1, "failover", ticks=2, clock_back=True, delivery=ONE),
    *_world("an old snapshot", 2, "blind reply_lost", nodes=1, ticks=2),
    *_world("a key is lost", 2, "lose_key crash sleep reply_lost"),
    *_world("pause", 1, "pause", ticks=2, caught_up=True),
    *_world("pause and a lost reply", 2, "pause reply_lost late"),
    *_world("pause and failover", 2, "pause failover"),
    *_world("pause and a lost key", 2, "pause lose_key"),
    *_world("pause until", 2, "pause_until crash", ticks=2),
    *_world("pause until now", 2, "pause_until crash", delivery=ONE),
    *_world("pause until, failover", 2, "pause_until failover", delivery=ONE),
    *_world("skip", 2, "skip crash reply_lost", ticks=2),
    *_world("skip and failover", 2, "skip failover", delivery=ONE),
    *_world("remove", 1, "remove", ticks=2, stored=True),
    *_world("remove twice", 2, "remove remove reply_lost late", stored=True),
    *_world("remove and failover", 2, "remove failover", stored=True, delivery=ONE),
    *_world("remove and a lost key", 2, "remove lose_key", stored=True, delivery=ONE),
    *_world("remove, a slow clock", 2, in_order=("failover", "remove"), clock_back=True, **KEPT),
    *_world("change", 1, "change", ticks=2, stored=True),
    *_world("change and crash", 2, "change crash late", stored=True, delivery="publish"),
    *_world("change and failover", 2, "change failover", **KEPT),
    *_world("add and change", 1, "change", ticks=2, absent=True, **KEPT),
    *_world("the feed", 2, "remove change pause failover sleep crash", ticks=0, **KEPT),
    *_world("the feed, two failovers", 3, in_order=TWO_FAILOVERS, ticks=0, **KEPT),
    *_world("the feed, asleep", 3, in_order=ASLEEP, ticks=0, **KEPT),
    *_world("the feed, a node joins", 3, "pause change failover", ticks=0, new=1, **KEPT),
    *_world("the feed, first entry", 3, "pause failover sleep", ticks=0, absent=True, **KEPT),
    *_world("a node joins", 1, "failover", new=1),
    *_world("the entry goes", 3, "crash drop_entry failover", nodes=3, new=1, delivery=ONE),
    *_world("at most one", 1, f"{NETWORK} pause", ticks=3, limit=1),
    *_world("at most one, resumed", 2, "pause crash", ticks=2, limit=1),
    *_world("at most one, failover", 2, "crash failover", ticks=2, limit=1),
    *_world("at most one, flush", 2, "crash flush sleep", ticks=2, limit=1),
    *_world("at most one, none late", 1, "crash failover", ticks=2, limit=1, catch_up="none"),
    *_world("at most two", 1, "reply_lost crash flush", ticks=3, limit=2, delivery=ONE),
    *_world("at most two", 1, "failover flush", ticks=3, limit=2, delivery="publish"),
]

LARGE: list[Bounds] = [
    *_world("asleep through a failover", 2, "failover sleep", ticks=2),
    *_world("bad network, two ticks, two faults", 2, NETWORK, ticks=2),
    *_world("the feed, three faults", 3, "remove change pause failover sleep", ticks=0, **KEPT),
    *_world("remove, two ticks", 2, "remove reply_lost crash", ticks=2, stored=True),
    *_world("remove and change, failover", 3, "remove change failover", **KEPT),
    *_world("pause until, three ticks", 2, "pause_until crash", ticks=3, catch_up="latest"),
    *_world("pause twice", 2, "pause pause reply_lost", ticks=2),
    *_world("failover, three faults", 3, f"{NETWORK} failover flush"),
    *_world("three nodes and a failover", 2, "crash failover", nodes=3),
    *_world("at most one, two faults", 2, f"{NETWORK} failover flush", ticks=2, limit=1),
    *_world("at most one, a lost key", 2, "lose_key crash sleep reply_lost", ticks=2, limit=1),
]

NOTICED: dict[str, tuple[str, str]] = {
    "identity_beside_marks": ("a key is lost", "enqueue"),
    "previous_stored": ("nothing late is wanted", "enqueue"),
    "settled_kept": ("a node joins", "enqueue"),
    "sentinels": ("a key is lost", "enqueue"),
    "fence_of_time": ("a key is lost", "enqueue"),
    "highest_fence": ("an old snapshot", "enqueue"),
    "identity": ("a node joins", "enqueue"),
    "epoch": ("asleep through a failover", "enqueue"),
    "start_in_one_script": ("first start", "enqueue"),
    "early_refused": ("hasty clocks", "enqueue"),
    "paused_changes_nothing": ("pause and a lost key", "publish"),
    "first_previous": ("hasty clocks", "enqueue"),
    "counted_in_script": ("nothing late is wanted", "enqueue"),
    "already_by_fence": ("bad network", "publish"),
    "enqueue_looks_at_fence": ("bad network", "enqueue"),
    "enqueue_looks_at_pause": ("pause and a lost key", "enqueue"),
    "resume_raises_mark": ("pause and a lost key", "publish"),
    "store_registers": ("remove", "enqueue"),
    "known_since_stored": ("change and failover", "enqueue"),
    "change_catches_up_nothing": ("change", "enqueue"),
    "claim_looks_at_revision": ("remove", "enqueue"),
    "register_looks_at_revision": ("remove twice", "enqueue"),
    "revision_compared": ("pause and a lost reply", "enqueue"),
    "mark_compared": ("remove", "enqueue"),
    "ended_under_new_fence": ("remove", "enqueue"),
    "remove_closes_open": ("remove", "enqueue"),
    "leases_spared": ("pause", "publish"),
    "attempted_stays_run": ("at most one, resumed", "publish"),
    "mark_ahead_stays": ("remove, a slow clock", "enqueue"),
    "skip_refuses_open": ("skip", "enqueue"),
    "skip_told_to_all": ("skip", "enqueue"),
    "over_is_not_held_back": ("pause until now", "enqueue"),
    "nodes_end_pauses": ("pause until now", "enqueue"),
    "ends_at_its_time": ("pause until", "enqueue"),
    "limit_is_looked_at": ("at most one", "enqueue"),
    "open_is_waited_for": ("at most one", "enqueue"),
    "runs_rise_with_mark": ("at most one", "enqueue"),
    "skipped_is_no_run": ("at most one, none late", "enqueue"),
    "retried_is_a_run": ("at most one, none late", "publish"),
    "cursor_is_answered": ("hasty clocks", "enqueue"),
    "ascending": ("hasty clocks", "enqueue"),
    "newest_is_claimed": ("nothing late is wanted", "enqueue"),
    "forlorn": ("an entry that few have", "enqueue"),
    "most_attempts": ("poison", "publish"),
    "names_differ": ("an entry that few have", "enqueue"),
    "lease_is_looked_at": ("bad network", "publish"),
    "own_orphan": ("bad network", "publish"),
    "tried_is_dropped": ("failover", "enqueue"),
    "asks_after_recovery": ("remove and failover", "enqueue"),
    "recovery_begins_anew": ("the feed, asleep", "enqueue"),
    "gone_is_told": ("the feed, a node joins", "enqueue"),
    "untold_is_gone": ("the feed, first entry", "enqueue"),
    "marks_of_others": ("the entry goes", "enqueue"),
    "another_identity": ("failover during a recovery", "enqueue"),
    "one_discovery": ("a node joins", "enqueue"),
    "full_hold_down": ("a node joins", "enqueue"),
    "push_marks": ("a node joins", "enqueue"),
    "push_runs": ("at most one, failover", "enqueue"),
    "runs_of_copy": ("at most one, none late", "enqueue"),
    "push_fence": ("a node joins", "enqueue"),
    "push_closed": ("a node joins", "enqueue"),
    "closed_above_open": ("failover, two ticks", "enqueue"),
    "push_settled": ("a node joins", "enqueue"),
    "push_held": ("a node joins", "enqueue"),
    "push_tried": ("an old snapshot", "enqueue"),
    "tried_until_closed": ("failover and a late request", "enqueue"),
    "push_feed": ("the feed", "enqueue"),
    "push_gone": ("the feed", "enqueue"),
    "feed_revision": ("the feed", "enqueue"),
    "late_is_later": ("the feed, first entry", "enqueue"),
    "restore_of_epoch": ("the feed, two failovers", "enqueue"),
    "lost_is_told_anew": ("remove and a lost key", "enqueue"),
    "closed_wins": ("a node joins", "enqueue"),
    "refused_is_dropped": ("first start", "publish"),
    "done_beats_held": ("failover", "enqueue"),
    "higher_fence_wins": ("a key is lost", "publish"),
    "doubts": ("failover", "enqueue"),
    "doubts_of_epoch": ("failover during a recovery", "enqueue"),
    "floor_kept": ("failover during a recovery", "enqueue"),
    "counted_above_floor": ("a key is lost", "enqueue"),
    "reopened_above_floor": ("a key is lost", "enqueue"),
    "passed_is_no_doubt": ("failover, latest", "enqueue"),
    "doubt_is_a_run": ("at most one, failover", "enqueue"),
    "closed_is_no_new_run": ("at most two", "publish"),
    "marks_not_cut": ("failover to a slow clock", "enqueue"),
}
"""The world in which the loss of each rule is noticed."""


def world_of(noticed: tuple[str, str]) -> Bounds:
    """Return a world by its name and delivery."""
    worlds = [*WORLDS, *LARGE]
    return next(each for each in worlds if (each.name, each.delivery) == noticed)
