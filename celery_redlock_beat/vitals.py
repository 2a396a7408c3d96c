"""What this node tells of itself, to the fleet with its claims and to probes by a file.

It looks at the node and at nothing else, and stops nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.clock import wall_micros
from celery_redlock_beat.health_file import HealthFile
from celery_redlock_beat.heartbeat import About, Heartbeat
from celery_redlock_beat.ticks import SECOND, SENT, Micros, Reason, listed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from celery_redlock_beat.node import Node
    from celery_redlock_beat.settings import Settings
    from celery_redlock_beat.ticks import Event

FAILED = (Reason.ERROR, Reason.ATTEMPTS)
LOOKED_BACK: Micros = 3600 * SECOND
MOST_NAMED = 3


class Vitals:
    """The heartbeat and the health file of one node; the heartbeat begins with its process."""

    def __init__(
        self,
        settings: Settings,
        entries: Callable[[], Iterable[tuple[str, str, str]]],
        faults: Callable[[], Collection[str]],
    ) -> None:
        self._poll = settings.poll
        self._entries = entries
        self._faults = faults
        self._file = HealthFile(settings.health_file) if settings.health_file else None
        self._failing: dict[str, Micros] = {}
        self._heartbeat: Heartbeat | None = None
        self._node: Node | None = None

    def check(self) -> None:
        """Raise ``SettingError`` where the health file has no place."""
        if self._file:
            self._file.check()

    def begin(self, node: Node, delivery: str) -> None:
        """Tell of this node from now on, in this process."""
        about = About.this_process(wall_micros(), delivery, self._poll)
        self._node = node
        self._heartbeat = Heartbeat(about, self._entries, self._faults, self._offset)

    def changed(self) -> None:
        """Note that the entries are others."""
        if self._heartbeat:
            self._heartbeat.changed()

    def observe(self, event: Event, _node: str) -> None:
        """Note how late a tick was sent, or that it could not be."""
        if not (self._heartbeat and self._node):
            return
        now = self._node.dispatcher.clock.monotonic()
        self._failing.pop(event.tick.entry, None)
        if event.outcome == SENT:
            self._heartbeat.sent(event.lateness, now)
        elif event.outcome.reason in FAILED:
            self._failing[event.tick.entry] = now

    def tell(self) -> str:
        """Return what there is to tell with a claim, if it is news."""
        if not (self._heartbeat and self._node):
            return ""
        return self._heartbeat.told(self._node.dispatcher.clock.monotonic())

    def passed(self, duration: Micros, elsewhere: str = "") -> None:
        """Note that a pass is over, how the node stands, and what is wrong ``elsewhere``."""
        if not (self._heartbeat and self._node):
            return
        self._heartbeat.passed(duration)
        own = {"pass": "", "elsewhere": elsewhere, "failing": self._told_failing()}
        problems = {**own, **self._node.problems()}
        for kind, problem in problems.items():
            self._heartbeat.problem(kind, problem)
        self._write(self._heartbeat.problems)

    def failed(self, exc: Exception) -> None:
        """Note that a pass came to nothing."""
        problem = f"a pass failed: {exc!r}"
        if self._heartbeat:
            self._heartbeat.problem("pass", problem)
        self._write([problem])

    def _write(self, problems: Sequence[str]) -> None:
        if self._file:
            name = self._node.dispatcher.ledger.node if self._node else ""
            self._file.write(name, problems, wall_micros() / SECOND)

    def close(self) -> str:
        """Take the file away; return what there is to tell last."""
        if self._file:
            self._file.close()
        if not (self._heartbeat and self._node):
            return ""
        return self._heartbeat.last_words(self._node.dispatcher.clock.monotonic())

    def forget(self, name: str) -> None:
        """Note that an entry is another one: whether it can be sent is to be seen."""
        self._failing.pop(name, None)

    def _told_failing(self) -> str:
        """Return in words which entries failed when this node last tried, within an hour."""
        if not (self._failing and self._node):
            return ""
        long_ago = self._node.dispatcher.clock.monotonic() - LOOKED_BACK
        self._failing = {name: at for name, at in self._failing.items() if at > long_ago}
        names = [repr(shown(name)) for name in sorted(self._failing)]
        return f"cannot be sent: {listed(names, MOST_NAMED)}; see the log" if names else ""

    def _offset(self) -> Micros | None:
        clock = self._node.dispatcher.clock if self._node else None
        return wall_micros() - clock.now() if clock and clock.is_known else None
