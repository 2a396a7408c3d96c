"""What is in a queue of a Redis broker, read without a worker; it takes nothing out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Message:
    """A message as a scheduler sent it; ``tick`` is ``None`` where that was not one of ours."""

    entry: str
    tick: datetime | None
    id: str
    headers: dict[str, Any]


def messages(client: Any, queue: str = "celery") -> list[Message]:
    """Return the messages in a queue, oldest first."""
    found = [json.loads(each)["headers"] for each in reversed(client.lrange(queue, 0, -1))]
    return [
        Message(
            headers.get("redlock_entry") or headers.get("periodic_task_name") or headers["task"],
            datetime.fromisoformat(headers["redlock_tick"]) if "redlock_tick" in headers else None,
            headers["id"],
            headers,
        )
        for headers in found
    ]


def ticks(client: Any, entry: str, queue: str = "celery") -> list[datetime]:
    """Return the ticks of an entry that are in a queue, in the order in which they were sent."""
    return [each.tick for each in messages(client, queue) if each.entry == entry and each.tick]
