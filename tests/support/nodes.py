"""The package's nodes and projects, by the names that tests use, and beats within workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.verify.nodes import BeatNode, Node, NodeFailed, WorkerNode
from celery_redlock_beat.verify.project import EVERY_SECOND, PROJECT, write_project

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "EVERY_SECOND",
    "PROJECT",
    "BeatNode",
    "EmbeddedBeat",
    "Node",
    "NodeFailed",
    "WorkerNode",
    "write_project",
]


class EmbeddedBeat(WorkerNode):
    """A real ``celery -A <module> worker -B --scheduler redlock``, with the prefork pool."""

    def __init__(self, directory: Path, name: str = "worker", **options: Any) -> None:
        super().__init__(directory, name, beat=True, args=["--pool=prefork"], **options)
