"""A pytest plugin for Celery's own tests: our scheduler stands where Celery's stood.

Loaded with ``-p``, before the tests import ``celery.beat``. It patches nothing that the tests are
about: neither ``tick`` nor anything that they call.
"""

from __future__ import annotations

import celery.beat
from celery.app.defaults import DEFAULTS

from celery_redlock_beat.scheduler import RedlockScheduler

DEFAULTS["redlock_beat_url"] = "memory://"  # no app in the tests needs a server
celery.beat.Scheduler = RedlockScheduler
# A scheduler with a store of its own, as plugins write them: its base becomes ours.
celery.beat.PersistentScheduler.__bases__ = (RedlockScheduler,)
