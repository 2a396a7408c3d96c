"""Put a node together from the settings: it chooses the parts, and connects to nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.clock import LedgerClock, wall_micros
from celery_redlock_beat.delivery.enqueue import Enqueue
from celery_redlock_beat.delivery.publish import AtMostOnce, Publish
from celery_redlock_beat.dispatch import Dispatcher
from celery_redlock_beat.due import DueQueue
from celery_redlock_beat.ledger.memory import MemoryLedger, MemoryServer
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.node import Node
from celery_redlock_beat.predecessors.predecessor import Predecessor
from celery_redlock_beat.predecessors.redbeat.interlock import RedBeatInterlock
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.predecessors.seed_file import SeedFile
from celery_redlock_beat.store.client import locate
from celery_redlock_beat.store.eviction import eviction_warning
from celery_redlock_beat.ticks import SECOND, listed
from celery_redlock_beat.timetables import app_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from celery import Celery

    from celery_redlock_beat.delivery import Delivery, Send
    from celery_redlock_beat.host import Host
    from celery_redlock_beat.ledger import Ledger
    from celery_redlock_beat.settings import Settings
    from celery_redlock_beat.store.client import Server
    from celery_redlock_beat.ticks import Micros

MOST_NAMES = 5

logger = logging.getLogger(__name__)


def check(app: Celery, settings: Settings) -> None:
    """Raise ``SettingError`` where nothing could ever be sent; touches no network."""
    if locate(app, settings).is_redbeats:
        logger.warning(
            "Only redbeat_redis_url says where the ledger is: set redlock_beat_url to the same "
            "before you remove it, or the ledger begins anew somewhere else"
        )
    app_zone(app)
    for answer in RedBeatSettings.from_app(app).answers:
        logger.warning("%s", answer)
    if app.conf.task_always_eager:
        logger.warning(
            "task_always_eager is set: beat runs the tasks that it knows itself, on each tick in "
            "one of the nodes, and sends no messages for them. It is meant for tests."
        )


def micros(seconds: float) -> Micros:
    """Convert seconds to whole microseconds."""
    return round(seconds * SECOND)


def assemble(app: Celery, settings: Settings, *, send: Send, host: Host) -> Node:
    """Return a node for this app; raise ``SettingError`` where no ledger can be found."""
    server = locate(app, settings)
    clock = LedgerClock()
    ledger = _ledger(server, settings, clock)
    dispatcher = Dispatcher(
        ledger,
        _delivery(app, settings, server, ledger, send),
        clock,
        DueQueue(_report_fault),
        host,
        namespace=settings.namespace,
        lease=micros(settings.lease),
    )
    return Node(dispatcher, micros(settings.poll), lambda: _warn_of_eviction(server))


def predecessor_of(
    app: Celery, settings: Settings, names: Callable[[], Collection[str]]
) -> Predecessor:
    """Return what is known of the scheduler that sent the entries before; touches no network.

    ``names`` returns the entries of this node.
    """
    if settings.interlock:
        return RedBeatInterlock(app, settings.namespace, micros(settings.lease), names)
    if settings.seed:
        return SeedFile(settings.seed, app.timezone)
    return Predecessor()


def delivery_name(settings: Settings, server: Server) -> str:
    """Return in words how a message will leave."""
    if server.is_broker:
        return "enqueue (message and settlement in one step)"
    if settings.delivery == "at_most_once":
        return "publish, at most once"
    return "publish, at least once with the same task id"


def _ledger(server: Server, settings: Settings, clock: LedgerClock) -> Ledger:
    if server.is_memory:
        logger.warning("The ledger is in this process's memory: for tests, not for several nodes.")
        memory = MemoryServer(wall_micros)
        return MemoryLedger(
            memory, node=uuid4().hex, lease=micros(settings.lease), hold_down=0, clock=clock
        )
    return RedisLedger(
        server.connect,
        clock,
        settings.namespace,
        prefix=server.prefix,
        lease=micros(settings.lease),
        socket_timeout=micros(settings.socket_timeout),
        hold_down=micros(settings.hold_down),
        history=settings.history,
    )


def _delivery(
    app: Celery, settings: Settings, server: Server, ledger: Ledger, send: Send
) -> Delivery:
    if server.is_broker:
        return Enqueue(app, ledger, send, settings.socket_timeout)
    if server.why_not:
        logger.info("Messages are published, not enqueued by the ledger: %s", server.why_not)
    if settings.delivery == "at_most_once":
        return AtMostOnce(app, ledger, send, settings.socket_timeout)
    return Publish(app, send, settings.socket_timeout)


def _report_fault(names: list[str], exc: Exception) -> None:
    told = listed([*map(repr, names)], MOST_NAMES)
    logger.error("%s: the schedule failed, it is tried again in a minute", told, exc_info=exc)


def _warn_of_eviction(server: Server) -> None:
    if server.is_memory:
        return
    with server.connect() as client:
        warning = eviction_warning(client)
    if warning:
        logger.warning(warning)
