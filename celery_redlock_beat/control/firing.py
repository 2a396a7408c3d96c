"""Send an entry's message beside its schedule, as a node would, once per key; it moves no mark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from celery_redlock_beat.control.checks import check_text
from celery_redlock_beat.control.describing import pause_of
from celery_redlock_beat.control.views import Fired
from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.enqueue import Enqueue
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.delivery.publish import Publish
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    ControlError,
    DeliveryImpossible,
    EntryError,
    EntryPaused,
    LedgerRecovering,
)
from celery_redlock_beat.ledger import Closing, Grant
from celery_redlock_beat.ledger.steering import Firing, Shot, Step
from celery_redlock_beat.ticks import Tick, id_in, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery.beat import ScheduleEntry

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue
    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.ledger import Command, Ledger
    from celery_redlock_beat.ledger.steering import Steering
    from celery_redlock_beat.ticks import Reason

FIRED_BY = "redlock_fired_by"
CLOSINGS = {
    Firing.DONE: Closing.DONE,
    Firing.ALREADY: Closing.ALREADY,
    Firing.PAUSED: Closing.PAUSED,
}


@dataclass(frozen=True, slots=True)
class Order:
    """What of a message is decided by who wants it.

    ``key`` makes several askers of the same thing send it once; without one, each sends.
    """

    key: str | None
    force: bool
    note: str

    def check(self) -> None:
        """Refuse one that cannot be kept.

        Raises:
            ControlError: Its key or its note is no text that can be, or the key is empty.
        """
        check_text("note", self.note)
        if self.key is not None:
            check_text("key", self.key)
        if self.key == "":
            raise ControlError(
                "key is empty: give one that names what is wanted, such as 'release-42', or none "
                "to send a message each time"
            )


class Gun:
    """Send messages; one delivery serves all of them."""

    def __init__(self, access: Access, catalogue: Catalogue) -> None:
        self._access = access
        self._catalogue = catalogue
        self._delivery: Enqueue | Publish | None = None
        self._push: _Push | None = None
        self._lock = Lock()

    def check(self, found: Found, order: Order) -> None:
        """Refuse what cannot be sent, before anything is.

        Raises:
            EntryError: It is a bad one.
            EntryPaused: It is paused or disabled, and that is not overruled.
            ControlError: There is a key, and its task id is fixed.
        """
        known = found.known
        if known.entry is None or known.slot is None:
            raise EntryError(found.name, known.problem)
        if not order.force and pause_of(found.look):
            raise _held_back(found.name, "paused")
        if not order.force and not known.slot.policy.enabled:
            raise _held_back(found.name, "disabled")
        if order.key is not None and _fixed_id(known.entry):
            raise ControlError(
                f"entry {shown(found.name)!r}: its options fix the 'task_id', so that a key "
                "cannot make an id of its own; leave out one of them"
            )

    def fire(self, found: Found, order: Order) -> Fired:
        """Send the message of an entry that was checked.

        Raises:
            EntryPaused: It was paused just now.
            DeliveryError: The broker did not take it.
        """
        shot = self._shot(found, order)
        fixed = _fixed_id(found.known.entry)
        message, grant = self._message(found, fixed or shot.task_id)
        try:
            with self._lock:  # one connection to the broker, for all threads
                delivery = self._delivery_of_app()
                firing = self._access.patiently(lambda: self._sent(delivery, shot, message, grant))
        except DeliveryImpossible as exc:
            raise DeliveryImpossible(f"entry {shown(found.name)!r}: {exc}") from exc
        if firing is Firing.PAUSED:
            raise _held_back(found.name, "paused")
        return Fired(found.name, fixed or shot.task_id, already=firing is Firing.ALREADY)

    def close(self) -> None:
        """Let go of the broker."""
        if self._delivery:
            self._delivery.close()

    def _shot(self, found: Found, order: Order) -> Shot:
        key = uuid4().hex if order.key is None else order.key
        task_id = id_in(self._access.settings.namespace, f"fire:{found.name}:{key}")
        told = {"note": order.note, "task_id": _fixed_id(found.known.entry) or task_id}
        note = json.dumps(told, ensure_ascii=False)
        return Shot(found.name, task_id, force=order.force, note=note)

    def _message(self, found: Found, task_id: str) -> tuple[ScheduleEntry, Grant]:
        entry, now = found.known.entry, self._access.now()
        assert entry  # noqa: S101 - it was checked
        copy = shallow_copy(entry, options={**(entry.options or {}), "task_id": task_id})
        grant = Grant(Tick(found.name, now), fence=0, attempt=1, previous=now, deadline=now)
        # It does not expire with the next tick: no tick stands for it.
        message = message_for(copy, grant, self._access.settings.namespace)
        message.options["headers"][FIRED_BY] = self._access.who
        return message, grant

    def _sent(
        self, delivery: Enqueue | Publish, shot: Shot, message: ScheduleEntry, grant: Grant
    ) -> Firing:
        if self._push:
            self._push.shot = shot
            try:
                return self._enqueued(delivery.deliver(grant, message, {}), shot)
            except LedgerRecovering:
                delivery.reset()  # the routing tables may be gone with the rest
                raise
        steering = self._access.steering
        firing = steering.fire(shot, Step.RESERVE)
        if firing is not Firing.DONE:
            return firing
        try:
            delivered = delivery.deliver(grant, message, {})
            if delivered is Delivered.NOTHING:
                raise _nothing()
        except (BrokerUnreachable, DeliveryImpossible):
            steering.fire(shot, Step.FAILED)  # else it may have left: nobody sends it again so soon
            raise
        return steering.fire(shot, Step.DONE)

    def _enqueued(self, delivered: Delivered, shot: Shot) -> Firing:
        assert self._push  # noqa: S101 - it is asked for by the caller
        if delivered is Delivered.NOTHING:
            raise _nothing()
        if delivered is Delivered.PUBLISHED:  # on a way of the user's own, past the ledger
            return self._access.steering.fire(shot, Step.DONE)
        return self._push.firing

    def _delivery_of_app(self) -> Enqueue | Publish:
        if self._delivery is None:
            access, send = self._access, self._catalogue.scheduler().send
            timeout = access.settings.socket_timeout
            if access.server.is_broker:
                self._push = _Push(access.steering)
                pushed = cast("Ledger", self._push)  # no other verb of it is asked for
                self._delivery = Enqueue(access.app, pushed, send, timeout)
            else:
                self._delivery = Publish(access.app, send, timeout)
        return self._delivery


class _Push:
    """What ``Enqueue`` takes for a ledger: pushes the one message that is to be sent."""

    def __init__(self, steering: Steering) -> None:
        self._steering = steering
        self.shot = Shot("", "")
        self.firing = Firing.DONE

    def enqueue(
        self,
        grant: Grant,  # noqa: ARG002 - it proves nothing: the ledger has granted none
        commands: Sequence[Command],
        passed: Mapping[Reason, int],  # noqa: ARG002 - nothing was passed over
    ) -> Closing:
        """Push the commands in one step, if they were not before."""
        self.firing = self._steering.fire(self.shot, Step.PUSH, commands)
        return CLOSINGS[self.firing]


def _fixed_id(entry: Any) -> str:
    options = getattr(entry, "options", None) or {}
    return str(options.get("task_id") or "")


def _held_back(name: str, how: str) -> EntryPaused:
    return EntryPaused(
        f"entry {shown(name)!r} is {how}: its message was not sent; resume or enable it, or say "
        "force=True"
    )


def _nothing() -> DeliveryImpossible:
    return DeliveryImpossible(
        "no message came of it: an eager mode, an unroutable queue, or its own apply_async took it"
    )
