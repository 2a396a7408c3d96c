"""In turns with RedBeat: its lock is held while we send, its records are kept true; sends nothing.

So old nodes with RedBeat and new ones may run side by side, in a rolling deploy and back again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.clock import monotonic_micros, wall_micros
from celery_redlock_beat.errors import LedgerError, LedgerUnavailable, SettingError
from celery_redlock_beat.predecessors.predecessor import Predecessor
from celery_redlock_beat.predecessors.redbeat.keys import Keys
from celery_redlock_beat.predecessors.redbeat.lock import Lock
from celery_redlock_beat.predecessors.redbeat.place import connect
from celery_redlock_beat.predecessors.redbeat.records import read
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.predecessors.redbeat.turn_log import TurnLog
from celery_redlock_beat.predecessors.redbeat.writing import Ran, write_back
from celery_redlock_beat.ticks import SECOND, to_datetime, to_micros
from celery_redlock_beat.timetables import app_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.predecessors.predecessor import Settled
    from celery_redlock_beat.predecessors.redbeat.lock import Held
    from celery_redlock_beat.ticks import Micros

SETTING = "redlock_beat_interlock"
AWAY = "RedBeat's Redis is away, nothing is sent until it is back"
LOOK_EVERY: Micros = SECOND // 2
WRITE_EVERY: Micros = SECOND // 10
LEASES = 3
"""How many leases the lock holds: what was claimed under it is sent or not, long before it ends."""


class RedBeatInterlock(Predecessor):
    """Hold RedBeat's lock together with the other nodes of a namespace.

    ``lease`` is that of a tick; ``names`` returns the entries that this node has.
    """

    in_turns = True

    def __init__(
        self, app: Celery, namespace: str, lease: Micros, names: Callable[[], Collection[str]]
    ) -> None:
        self._app = app
        self._namespace = namespace
        self._span = LEASES * lease
        self._names = names
        self._settings = RedBeatSettings.from_app(app)
        self._keys = Keys.of(self._settings)
        self._lock: Lock | None = None
        self._log = TurnLog(self._keys.lock or "")
        self._turn: str | None = None
        self._is_away = False
        self._looked: Micros | None = None
        self._sure_until: Micros = 0
        self._write_at: Micros = 0
        self._seen: tuple[str, Any] = ("", None)
        self._last_runs: dict[str, datetime | None] = {}
        self._written: dict[str, Micros] = {}

    def check(self) -> None:
        """Refuse settings with which there is no lock, or no server.

        Raises:
            SettingError: They are such.

        """
        if self._keys.lock is None:
            raise SettingError(
                f"{SETTING} holds RedBeat's lock, and redbeat_lock_key switches that off: remove "
                "one of the two settings"
            )
        connect(self._app, self._settings).close()

    def last_run(self, name: str) -> datetime | None:
        """Return when RedBeat had sent an entry last at the beginning of this turn."""
        return self._last_runs.get(name)

    def turn(self) -> str | None:
        """Return the token under which the fleet has the lock, or ``None`` while it has it not."""
        now = monotonic_micros()
        if self._looked is not None and now < self._looked + LOOK_EVERY:
            return self._turn
        self._looked = now
        try:
            held = self._own_lock().hold()
            if held.token and held.token != self._turn and not self._begin(held):
                self._turn = None
                return None
        except LedgerUnavailable as exc:
            if now > self._sure_until:
                self._turn = None
                self._is_away = True
                self._log.away(exc)
            return self._turn
        self._is_away = False
        self._log.hear(held, now)
        self._turn = held.token or None
        self._sure_until = now + self._span // LEASES
        return self._turn

    def problem(self) -> str:
        """Tell that nothing is sent since RedBeat's Redis is away."""
        return AWAY if self._is_away else ""

    def passed(self, settled: Callable[[], Settled]) -> None:
        """Write into RedBeat's records what was sent since, by whichever node."""
        now = monotonic_micros()
        if self._turn is None or now < self._write_at:
            return
        self._write_at = now + WRITE_EVERY
        try:
            self._write_back(self._client, self._news(settled()))
        except LedgerUnavailable as exc:
            self._log.is_behind(exc)

    def leave(self, settled: Callable[[Collection[str]], Settled]) -> None:
        """Give the lock back if this is the last node, with RedBeat's records as they must be."""
        if self._lock is None or self._turn is None:
            return
        # A connection of its own: in a signal handler another one may be in the middle of a call.
        client = connect(self._app, self._settings)
        lock, self._lock = self._lock.over(client), None
        try:
            is_last = lock.leave()
            # What was exported meanwhile, too: RedBeat did not have it when this turn began.
            self._write_back(client, settled({*self._last_runs, *self._written}))
            if is_last:
                lock.let_go()
                self._log.gave_back()
        except LedgerError as exc:
            self._log.cannot_give_back(exc, self._span)

    def _own_lock(self) -> Lock:
        if self._lock is None:
            self._client = connect(self._app, self._settings)
            self._lock = Lock(self._client, self._keys.lock or "", self._namespace, self._span)
        return self._lock

    def _begin(self, held: Held) -> bool:
        """Learn what RedBeat has sent until now; return whether it has surely stopped.

        Until two looks have found the same, nobody of the fleet begins.
        """
        zone, now = app_zone(self._app), to_datetime(wall_micros())
        records = read(self._client, self._keys, zone, now)
        last_runs = {record.name: record.last_run_at for record in records}
        if not held.has_begun:
            is_still = self._seen == (held.token, last_runs)
            self._seen = held.token, last_runs
            if not is_still:
                return False
            self._own_lock().begin(held.token)
        self._last_runs = last_runs
        self._written = {name: to_micros(at) for name, at in self._last_runs.items() if at}
        self._log.begin({record.name for record in records if not record.is_static}, self._names())
        return True

    def _news(self, settled: Settled) -> Settled:
        return {name: at for name, at in settled.items() if at > self._written.get(name, 0)}

    def _write_back(self, client: Any, settled: Settled) -> None:
        if settled:
            ran = {name: Ran(at) for name, at in settled.items()}
            write_back(client, self._keys, ran, app_zone(self._app), wall_micros())
            self._written.update(settled)
