"""What time costs a beat with ten thousand entries: CPU, before it talks to anybody."""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from celery import Celery
from celery.beat import Scheduler
from celery.schedules import crontab

from celery_redlock_beat.due import DueQueue
from celery_redlock_beat.scheduler import RedlockScheduler
from celery_redlock_beat.ticks import SECOND, Micros

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRIES = 10_000
ROUNDS = 3
CACHED = type(lru_cache(len))
START: Micros = 1_800_000_000 * SECOND  # 15 January 2027, 08:00 UTC
MINUTE: Micros = 60 * SECOND
DAY: Micros = 86_400 * SECOND


@dataclass(frozen=True)
class Load:
    """What is scheduled, and the span in which each entry is due once, all in one pass or not."""

    name: str
    schedule: Callable[[int], Any]
    begin: Micros
    end: Micros


def _one_of_thirty(number: int) -> crontab:
    return crontab(minute=f"0,{number % 30 + 1}")


def _its_own(number: int) -> crontab:
    hours, minute = divmod(number, 60)
    day, hour = divmod(hours, 24)
    return crontab(minute=minute, hour=hour, day_of_month=day + 1)


THIRTY = Load("30 crontabs", _one_of_thirty, START + 31 * MINUTE, START + 60 * MINUTE)
DISTINCT = Load(f"{ENTRIES} crontabs", _its_own, START, START + 31 * DAY)
HASHED = Load("cron strings H H H * *", lambda _: "H H H * *", START, START + 31 * DAY)


@dataclass
class Cost:
    """Seconds of CPU: to start, for a pass with nothing due, and to find each entry due once."""

    start: float
    idle: float
    due: float


def stock(load: Load) -> Cost:
    """Measure Celery's own scheduler, without its file."""
    return _best(lambda: _stock(load))


def ours(load: Load) -> Cost:
    """Measure this scheduler, without its ledger."""
    return _best(lambda: _ours(load))


def _stock(load: Load) -> Cost:
    app = _app(load)
    with Stopwatch() as start:
        scheduler = Scheduler(app)
        scheduler.apply_entry = lambda *_, **__: None  # where a minute ends just now
        scheduler.tick()
    with Stopwatch() as idle:
        scheduler.tick()
    for entry in scheduler.schedule.values():
        entry.last_run_at -= timedelta(days=31)
    with Stopwatch() as due:
        for entry in scheduler.schedule.values():
            scheduler.is_due(entry)
    return Cost(start.seconds, idle.seconds, due.seconds)


def _ours(load: Load) -> Cost:
    app = _app(load)
    queue = DueQueue(_fail)
    with Stopwatch() as start:
        scheduler = RedlockScheduler(app)
        for slot in scheduler.roster.slots():
            slot.cursor = slot.since = load.begin  # as the ledger answers
            queue.put(slot)
        queue.asks(load.begin, ENTRIES)
    with Stopwatch() as idle:
        scheduler._merge_conf()  # noqa: SLF001 - a part of each pass
        scheduler.roster.compare(scheduler.schedule)
        queue.asks(load.begin + 1, ENTRIES)
        queue.next_look()
    with Stopwatch() as due:
        _pass_through(queue, load.begin, load.end)
    return Cost(start.seconds, idle.seconds, due.seconds)


def _pass_through(queue: DueQueue, now: Micros, end: Micros) -> None:
    """Wake whenever something is due, as a node does."""
    while (look := queue.next_look()) is not None and (now := max(now, look)) <= end:
        for ask in queue.asks(now, ENTRIES):
            queue.advance(ask.tick.entry, ask.tick.at)


def _app(load: Load) -> Celery:
    app = Celery("bench", broker="memory://", set_as_current=False)
    app.conf.update(timezone="Europe/Berlin", redlock_beat_url="memory://")
    app.conf.beat_schedule = {
        f"entry-{number}": {"task": "bench.noop", "schedule": load.schedule(number)}
        for number in range(ENTRIES)
    }
    return app


def _fail(names: list[str], exc: Exception) -> None:
    raise RuntimeError(names[0]) from exc


def _best(measure: Callable[[], Cost]) -> Cost:
    costs = []
    for _ in range(ROUNDS):
        forget()
        costs.append(measure())
    return Cost(*(min(getattr(each, name) for each in costs) for name in vars(costs[0])))


def forget() -> None:
    """Have this scheduler remember nothing, as a process that has just been started."""
    for name, module in list(sys.modules.items()):
        if name.startswith("celery_redlock_beat"):
            for each in vars(module).values():
                if isinstance(each, CACHED):
                    each.cache_clear()


class Stopwatch:
    """Seconds of this process's CPU within the block, the collection of garbage left out."""

    seconds = 0.0

    def __enter__(self) -> Self:
        gc.collect()
        gc.disable()
        self._started = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._started
        gc.enable()
