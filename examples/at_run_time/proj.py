"""Entries that come and go while everything runs: a digest per customer, stored by a task.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A proj worker -l info
    celery -A proj beat -S redlock -l info

In a third one, let customers come, look, and steer:

    celery -A proj call proj.sign_up --args '["anna"]'
    celery -A proj call proj.sign_up --args '["bert"]'
    celery -A proj redlock list
    celery -A proj redlock pause digest-anna --note "she is on holiday"
    celery -A proj redlock fire digest-bert --key first
    celery -A proj redlock show digest-anna
    python maintenance.py
    celery -A proj redlock resume digest-anna
    celery -A proj call proj.sign_off --args '["bert"]'
    celery -A proj redlock history -n 10

Nobody restarts beat, on however many nodes it runs: each of them follows within a second.
"""

from celery import Celery
from celery.utils.log import get_task_logger

from celery_redlock_beat import Control, EntryExists, NoSuchEntry, current_tick

app = Celery("at_run_time", broker="redis://localhost:6379/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.task_ignore_result = True
app.conf.beat_schedule = {
    "pulse": {"task": "proj.digest", "schedule": 10.0, "args": ["everybody"]},
}

logger = get_task_logger(__name__)


@app.task
def digest(customer: str) -> None:
    tick = current_tick()
    on_schedule = tick and tick.fence  # what somebody fired was granted by no ledger
    logger.info("digest for %s, %s", customer, tick.instant.time() if on_schedule else "by hand")


@app.task
def sign_up(customer: str) -> None:
    try:
        Control(app, who="sign_up").add(
            f"digest-{customer}",
            task="proj.digest",
            schedule=2,
            args=[customer],
            tags=["digest"],
        )
    except EntryExists:
        logger.info("%s is here already", customer)


@app.task
def sign_off(customer: str) -> None:
    try:
        Control(app, who="sign_off").remove(f"digest-{customer}")
    except NoSuchEntry:
        logger.info("%s is gone already", customer)
