"""The package's TCP proxy, by the name that tests use."""

from __future__ import annotations

from celery_redlock_beat.verify.proxy import Proxy

__all__ = ["Proxy"]
