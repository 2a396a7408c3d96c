"""Count what came of one call of ``send``, and make it one try; sends nothing itself."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from celery.signals import after_task_publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kombu import Producer


@dataclass(slots=True)
class Tally:
    """What came of one call of ``send``.

    ``calls`` of our producer for a task, how many messages are ``out`` through it, and how many
    tasks Celery says were published on whatever producer.
    """

    calls: int = 0
    out: int = 0
    published: int = 0

    @property
    def elsewhere(self) -> int:
        """Messages that went past our producer: an ``apply_async`` that does not pass it on."""
        return max(0, self.published - self.calls)


class Counter:
    """Counts the messages of our producer, and those that go past it in the same thread.

    ``count`` tells how many messages are out so far, where that is not one for each publish.
    """

    def __init__(self, event_exchange: str, count: Callable[[], int] | None = None) -> None:
        self._event_exchange = event_exchange
        self._count = count
        self._thread = 0
        self._tally = Tally()

    def listen(self) -> None:
        """Hear of all that Celery publishes in this process, as long as this object lives."""
        # Named, since Celery 5.6 tells bound methods apart by the id of a passing object.
        after_task_publish.connect(self._on_published, dispatch_uid=f"{__name__}:{id(self)}")

    @contextmanager
    def counting(self) -> Iterator[Tally]:
        """Count from here on, and only in this thread."""
        self._tally, self._thread = Tally(), threading.get_ident()
        try:
            yield self._tally
        finally:
            self._thread = 0

    def attach(self, producer: Producer, confirm_timeout: float | None) -> None:
        """Make a producer count, and try each message once."""
        producer.publish = partial(self._publish, producer.publish, confirm_timeout)

    def _publish(
        self,
        publish: Callable[..., Any],
        confirm_timeout: float | None,
        /,  # Celery 5.7 passes a confirm_timeout of its own
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # With retry, kombu sleeps, and writes the policy into the transport options.
        kwargs["retry"] = False
        if confirm_timeout:
            kwargs["confirm_timeout"] = kwargs.get("confirm_timeout") or confirm_timeout
        exchange = kwargs.get("exchange")
        if getattr(exchange, "name", exchange) == self._event_exchange:
            return publish(*args, **kwargs)  # "task-sent" is no message of a tick
        tally, before = self._tally, self._count() if self._count else 0
        tally.calls += 1
        result = publish(*args, **kwargs)
        tally.out += self._count() - before if self._count else 1
        return result

    def _on_published(self, **_kwargs: Any) -> None:
        if self._thread == threading.get_ident():
            self._tally.published += 1
