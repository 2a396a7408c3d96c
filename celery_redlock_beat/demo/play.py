"""What happens in the demo, from its first process to its verdict; it draws nothing itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from celery_redlock_beat.demo.verdict import Note, Tally, faults, judge
from celery_redlock_beat.errors import RedlockBeatError
from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.verify.signals import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.demo.cast import Cast, Celery

START_LIMIT = 30.0
ARRIVAL_LIMIT = 15.0
KILL_AFTER = 0.45  # of the run


class Problem(RedlockBeatError):
    """The demo could not go on; the message says why."""


class Screen(Protocol):
    """What the demo tells while it runs."""

    def say(self, text: str) -> None:
        """Tell one step, in a line."""

    def draw(self, scene: Scene) -> None:
        """Show how things stand, a few times per second."""


@dataclass(slots=True)
class Scene:
    """How things stand: the window in which ticks count, and what the worker has noted.

    ``after`` and ``until`` are the server's time; 0 while they are not known.
    """

    nodes: list[Celery]
    seconds: float
    now: Micros = 0
    after: Micros = 0
    until: Micros = 0
    notes: list[Note] = field(default_factory=list)

    @property
    def counted(self) -> list[Note]:
        """The messages that the worker received of ticks in the window."""
        messages = (note for note in self.notes if note.what == "message")
        return [note for note in messages if self.after < note.tick <= self.until]

    @property
    def killed(self) -> Celery | None:
        """The node that was killed."""
        return next((node for node in self.nodes if node.killed_at), None)

    def sent_by(self, node: Celery) -> int:
        """Return how many messages of the window a node has sent."""
        return sum(note.sender == node.pid for note in self.counted)


class Play:
    """One run of the demo; ``interrupted`` is asked ten times per second."""

    def __init__(
        self, cast: Cast, screen: Screen, seconds: float, interrupted: Callable[[], bool]
    ) -> None:
        self.cast = cast
        self.screen = screen
        self.scene = Scene(cast.nodes, seconds)
        self._interrupted = interrupted

    def run(self, *, kill: bool) -> list[Tally]:
        """Go through all of it; return what became of the ticks.

        Raises:
            Problem: A process ended by itself, or something did not happen in time.
            Interrupted: Somebody wants it to end.

        """
        self._start()
        self._let_it_tick(kill=kill)
        self._wait_for_arrivals()
        self._finish()
        return self._judge()

    def _start(self) -> None:
        cast, count = self.cast, len(self.cast.nodes)
        self.screen.say(
            f"Starting a {cast.server_name} server, {count} nodes (celery beat -S redlock) "
            "and one worker."
        )
        cast.start()
        self.screen.say("The ledger is empty, so it waits 3 s for nodes that may remember more.")
        self._until(cast.are_all_in, START_LIMIT, "every node to be in touch with the ledger")
        self.scene.after = cast.now()
        self.scene.until = self.scene.after + round(self.scene.seconds * SECOND)
        self.screen.say(f"All {count} nodes are up. Which of them sends which tick?")

    def _let_it_tick(self, *, kill: bool) -> None:
        scene, limit = self.scene, self.scene.seconds + START_LIMIT
        if kill:
            moment = scene.after + round(KILL_AFTER * scene.seconds * SECOND)
            self._until(lambda: scene.now >= moment, limit, "the moment of the kill")
            busiest = max(scene.nodes, key=scene.sent_by)
            busiest.must_live = False
            busiest.kill()
            busiest.killed_at = self.cast.now()
            self.screen.say(
                f"{busiest.name.capitalize()} (pid {busiest.pid}), the busiest so far, "
                "is killed with SIGKILL."
            )
        self._until(lambda: scene.now >= scene.until, limit, "the end of the run")

    def _wait_for_arrivals(self) -> None:
        """Wait for what is due; what is missing after the limit is the verdict's business."""
        ends = time.monotonic() + ARRIVAL_LIMIT
        self._until(
            lambda: time.monotonic() > ends or not any(t.lost or t.unrun for t in self._judge()),
            2 * ARRIVAL_LIMIT,
            "what was due",
        )

    def _finish(self) -> None:
        """Stop the nodes, let the worker empty the queue, and stop it: then nothing can follow."""
        for node in self.cast.nodes:
            node.must_live = False
            node.stop()
        self._until(self.cast.are_queues_empty, ARRIVAL_LIMIT, "the worker to empty the queue")
        self.cast.worker.must_live = False
        self.cast.worker.stop()
        self.scene.notes += self.cast.new_notes()

    def _judge(self) -> list[Tally]:
        return judge(self.scene.notes, self.scene.after, self.scene.until)

    def _until(self, condition: Callable[[], bool], limit: float, what: str) -> None:
        deadline = time.monotonic() + limit
        while not self._holds(condition):
            if time.monotonic() > deadline:
                raise Problem(f"waited {limit:g} s for {what}")
            time.sleep(0.1)

    def _holds(self, condition: Callable[[], bool]) -> bool:
        self._look()
        return condition()

    def _look(self) -> None:
        if self._interrupted():
            raise Interrupted("ended before its time")
        if died := self.cast.died():
            raise Problem(f"a process ended by itself; its log ends:\n{died.log[-2000:]}")
        self.scene.now = self.cast.now()
        self.scene.notes += self.cast.new_notes()
        self.screen.draw(self.scene)


def verdict(tallies: list[Tally], killed: Celery | None) -> tuple[bool, str]:
    """Return whether all is well, and one sentence about it."""
    if wrong := faults(tallies):
        return False, "; ".join(wrong)
    due = sum(tally.due for tally in tallies)
    despite = f", though {killed.name} was killed" if killed else ""
    return True, f"{due} ticks were due: each was sent once and ran once{despite}."
