"""What a server has done, and what has gone over its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True)
class Traffic:
    """Commands that were done, those within scripts included, and bytes in and out."""

    commands: float = 0.0
    bytes: float = 0.0

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.commands - other.commands, self.bytes - other.bytes)

    def __truediv__(self, number: float) -> Traffic:
        return Traffic(self.commands / number, self.bytes / number)

    def __mul__(self, number: float) -> Traffic:
        return Traffic(self.commands * number, self.bytes * number)


class Meter:
    """All traffic of a server from now on, but for what it costs to ask."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        first = self._now()
        self._began = self._now()
        self._asking = self._began - first

    def read(self) -> Traffic:
        return self._now() - self._began - self._asking

    def _now(self) -> Traffic:
        stats = self._client.info("stats")
        return Traffic(
            stats["total_commands_processed"],
            stats["total_net_input_bytes"] + stats["total_net_output_bytes"],
        )
