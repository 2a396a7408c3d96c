"""The rules of the protocol as switches; a rule that is off is one that somebody left out.

Says nothing about how they work: the verbs and the steps look here at each place where one bites.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any


def _rule(text: str) -> Any:
    return field(default=True, metadata={"text": text})


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules that the model knows; each is on unless it is taken out."""

    # Records
    identity_beside_marks: bool = _rule("who loses the marks loses the server's identity with them")
    previous_stored: bool = _rule("a grant remembers the mark before it")
    settled_kept: bool = _rule("a settled grant is remembered")
    sentinels: bool = _rule("the loss of one essential key starts a recovery")
    # Fence
    fence_of_time: bool = _rule("a fence is higher than any that was ever given")
    highest_fence: bool = _rule("a server that knows a lower fence than the node must recover")
    # Verbs
    identity: bool = _rule("a server with another identity must recover")
    epoch: bool = _rule("a node that has not pushed under the present epoch must do so")
    start_in_one_script: bool = _rule("registration opens the tick of run_on_start itself")
    early_refused: bool = _rule("nothing is granted before its instant")
    paused_changes_nothing: bool = _rule("PAUSED moves no mark and counts nothing")
    first_previous: bool = _rule("a takeover is told the first grant's previous mark")
    counted_in_script: bool = _rule("settling counts what was passed over in the same script")
    already_by_fence: bool = _rule("ALREADY is told only to the fence that settled")
    enqueue_looks_at_fence: bool = _rule("enqueue pushes nothing under a stale fence")
    enqueue_looks_at_pause: bool = _rule("enqueue pushes nothing while the entry is paused")
    resume_raises_mark: bool = _rule("resuming raises the mark over what fell due meanwhile")
    # Deeds of operators
    store_registers: bool = _rule("an entry is registered with its storing")
    known_since_stored: bool = _rule("... and, where that was lost, since then")
    change_catches_up_nothing: bool = _rule("a changed timetable catches up nothing")
    claim_looks_at_revision: bool = _rule("a claim is refused whose entry is another one by now")
    register_looks_at_revision: bool = _rule("... and so is a registration")
    revision_compared: bool = _rule("a deed is done on that revision only that was seen")
    mark_compared: bool = _rule("... and its remainder counted from that mark only")
    ended_under_new_fence: bool = _rule("what a deed ends is closed under a new fence")
    remove_closes_open: bool = _rule("removing closes what is open")
    leases_spared: bool = _rule("resuming leaves open what somebody may be sending")
    attempted_stays_run: bool = _rule("what a deed ends stays a run if it was attempted")
    mark_ahead_stays: bool = _rule("removing leaves a mark that is ahead of the clock")
    skip_refuses_open: bool = _rule("what is open cannot be skipped")
    skip_told_to_all: bool = _rule("whoever takes a tick over is told that it shall be skipped")
    over_is_not_held_back: bool = _rule("an orphan is told of whose pause is over")
    nodes_end_pauses: bool = _rule("nodes end pauses whose time is over")
    ends_at_its_time: bool = _rule("... and count what fell due before its end only")
    # Runs
    limit_is_looked_at: bool = _rule("an entry is granted no more runs than it may have")
    open_is_waited_for: bool = _rule("... nor told that it is over while a tick may be skipped")
    runs_rise_with_mark: bool = _rule("the runs rise with the mark, not with the settlement")
    skipped_is_no_run: bool = _rule("what is skipped is no run any more")
    retried_is_a_run: bool = _rule("... unless an attempt before may have sent it")
    # Nodes
    cursor_is_answered: bool = _rule("the cursor is the mark that was answered, not what was asked")
    ascending: bool = _rule("ticks are asked for in ascending order")
    newest_is_claimed: bool = _rule("the newest due tick is claimed even if it may not be sent")
    forlorn: bool = _rule("anybody settles an orphan whose entry nobody has")
    most_attempts: bool = _rule("a tick is settled after so many attempts")
    names_differ: bool = _rule("each process has a name of its own")
    lease_is_looked_at: bool = _rule("nothing is published after the lease")
    own_orphan: bool = _rule("who published a tick settles it, and does not publish it again")
    tried_is_dropped: bool = _rule("a grant that was tried is never tried again")
    asks_after_recovery: bool = _rule("after a recovery a node asks before it tries what it holds")
    recovery_begins_anew: bool = _rule("... and fetches all anew")
    gone_is_told: bool = _rule("... also what is gone")
    untold_is_gone: bool = _rule("... and drops what is not told")
    marks_of_others: bool = _rule("a mark is remembered also for an entry the node has no more")
    # Recovery
    another_identity: bool = _rule("another identity starts the recovery anew")
    one_discovery: bool = _rule("a second node's discovery does not restart a recovery")
    full_hold_down: bool = _rule("a recovery never ends before the hold-down")
    push_marks: bool = _rule("marks are pushed")
    push_runs: bool = _rule("... and with each the runs that were told with it")
    runs_of_copy: bool = _rule("... but a copy that has the mark keeps its own")
    push_fence: bool = _rule("the highest fence is pushed")
    push_closed: bool = _rule("what is known closed is pushed")
    closed_above_open: bool = _rule("... also above a tick that is still open")
    push_settled: bool = _rule("what the node settled itself is pushed")
    push_held: bool = _rule("grants that were never tried are pushed")
    push_tried: bool = _rule("grants that were tried without an answer are pushed")
    tried_until_closed: bool = _rule("... until the tick is known closed or granted anew")
    closed_wins: bool = _rule("what anyone knows closed is closed, whatever the copy says")
    refused_is_dropped: bool = _rule("a node drops a pushed grant that was not reopened")
    done_beats_held: bool = _rule("a pushed grant does not reopen what is closed")
    higher_fence_wins: bool = _rule("a pushed grant does not replace one with a higher fence")
    doubts: bool = _rule("what nobody can account for is counted as in doubt")
    doubts_of_epoch: bool = _rule("... and only by a node of the running recovery, at its end")
    floor_kept: bool = _rule("... reckoned from the mark before the first unfinished recovery")
    counted_above_floor: bool = _rule("what a copy had closed by its own mark is not counted again")
    reopened_above_floor: bool = _rule("... and not reopened by a pushed grant")
    passed_is_no_doubt: bool = _rule("... but not what a known grant counts as passed over")
    doubt_is_a_run: bool = _rule("what is in doubt stays a run")
    closed_is_no_new_run: bool = _rule("what a recovery closes is among the runs already")
    push_feed: bool = _rule("what a copy lacks of the feed is pushed")
    push_gone: bool = _rule("... also what is gone")
    feed_revision: bool = _rule("... and yields to what is later")
    late_is_later: bool = _rule("... after the recovery, to anything that is later")
    restore_of_epoch: bool = _rule(
        "... and is taken only under the epoch under which it was asked for"
    )
    lost_is_told_anew: bool = _rule("where a key was lost, all of the feed is")
    marks_not_cut: bool = _rule("pushed marks are not cut to the server's clock")

    def without(self, name: str) -> Rules:
        """Return these rules but one."""
        return replace(self, **{name: False})


TEXTS: dict[str, str] = {each.name: each.metadata["text"] for each in fields(Rules)}
