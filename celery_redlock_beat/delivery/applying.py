"""Celery's own ``apply_entry``, which only logs what it catches; it sends in no other way."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery.beat import ScheduleEntry, Scheduler
    from kombu import Producer


def apply_entry(scheduler: Scheduler, entry: ScheduleEntry, producer: Producer) -> None:
    """Send through the scheduler's ``apply_entry``, and raise what that only logs."""
    failures: list[Exception] = []
    own = vars(scheduler)
    replaced = own.get("apply_async")
    apply_async = scheduler.apply_async

    def apply_and_tell(*args: Any, **kwargs: Any) -> Any:
        try:
            return apply_async(*args, **kwargs)
        except Exception as exc:
            failures.append(exc)
            raise

    # On the instance and for this one call: apply_entry itself may be wrapped or overridden.
    own["apply_async"] = apply_and_tell
    try:
        # In a context of its own: tracers begin a span for a message and end it once that is
        # published, so one that failed would stay the parent of all that follow.
        copy_context().run(scheduler.apply_entry, entry, producer=producer)
    finally:
        del own["apply_async"]
        if replaced:
            own["apply_async"] = replaced
    if failures:
        raise failures[0]
