"""Three nodes, one worker, one kill: ``python -m celery_redlock_beat.demo``; no API is in here."""
