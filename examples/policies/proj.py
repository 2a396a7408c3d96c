"""What an entry may say beside its schedule: when it begins, how often, how punctually.

When is what due? No server is needed for this:

    celery -A proj redlock next

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A proj worker -l info
    celery -A proj beat -S redlock -l info
    celery -A proj beat -S redlock -l info

"welcome" is printed at once, and once only: not for each beat, and not after a restart. "three
cheers" is printed three times. "poll" keeps coming every two seconds, each time by another part of
a second later. Stop the worker for a while: after that there is no pile of polls.
"""

from celery import Celery
from celery.schedules import crontab
from celery.utils.log import get_task_logger

from celery_redlock_beat import current_tick, once

app = Celery("policies", broker="redis://localhost:6379/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.task_ignore_result = True

logger = get_task_logger(__name__)


@app.task
def say(what: str) -> None:
    tick = current_tick()
    logger.info("%s, as of %s", what, tick.instant.time() if tick else "no tick")


def entry(what: str, schedule: object, **policies: object) -> dict[str, object]:
    return {"task": "proj.say", "args": [what], "schedule": schedule, **policies}


app.conf.beat_schedule = {
    "welcome": entry("welcome", "@daily", run_on_start=True, tags=["greetings"]),
    "cheers": entry("three cheers", 1, max_runs=3),
    "poll": entry("poll", "@every 2s", jitter=1, expires="next"),
    # Each has its own zone; the hour that New York has twice in autumn is reported twice.
    "tokyo": entry("good morning", "0 9 * * MON-FRI", timezone="Asia/Tokyo"),
    "new york": entry("report", crontab(minute=0), timezone="America/New_York", dst="real"),
    # The minute, and the hour after midnight, are chosen by the entry's name.
    "tidy": entry("tidy", "H H(0-5) * * *", misfire_grace_time=3600, catch_up="none"),
    "launch": entry("launch", once("2030-01-01T00:00"), description="The new site goes live"),
}
