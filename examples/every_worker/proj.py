"""No process of its own: every worker embeds beat, and any worker may be lost.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A proj worker -B --scheduler redlock -n one@%h -l info
    celery -A proj worker -B --scheduler redlock -n two@%h -l info

Write --scheduler in full: for "celery worker", -S is the short form of --statedb. Celery advises
against -B with more than one worker, because each would send everything; here they do not.
"""

from celery import Celery
from celery.schedules import crontab
from celery.utils.log import get_task_logger

from celery_redlock_beat import cron, current_tick

app = Celery("every_worker", broker="redis://localhost:6379/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.task_ignore_result = True

logger = get_task_logger(__name__)


@app.task
def work(what: str) -> None:
    tick = current_tick()
    logger.info("%s of %s", what, tick.instant.time() if tick else "somebody's own wish")


app.conf.beat_schedule = {
    # Seconds, a crontab, and a cron string, here of six fields: the first one is the second.
    "pulse": {"task": "proj.work", "schedule": 1.0, "args": ["pulse"]},
    "nightly": {
        "task": "proj.work",
        "schedule": crontab(minute="30", hour="3"),
        "args": ["the nightly report"],
    },
    # Each late tick is sent, also after an outage of hours: see "catch_up" in the settings.
    "readings": {
        "task": "proj.work",
        "schedule": cron("*/3 * * * * *", timezone="Europe/Berlin"),
        "args": ["readings"],
        "catch_up": "all",
    },
}
