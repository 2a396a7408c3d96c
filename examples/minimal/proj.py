"""The least that is needed: an app with a name, a schedule, and beat on every node.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A proj worker -l info
    celery -A proj beat -S redlock -l info
    celery -A proj beat -S redlock -l info

Two beats run, and "hello" is printed once every two seconds. Stop one of them, or kill it: nothing
changes.
"""

from celery import Celery
from celery.utils.log import get_task_logger

from celery_redlock_beat import current_tick

app = Celery("minimal", broker="redis://localhost:6379/0")
app.conf.broker_connection_retry_on_startup = True
app.conf.task_ignore_result = True

logger = get_task_logger(__name__)


@app.task
def hello(name: str) -> None:
    tick = current_tick()  # None, if somebody else has sent the task
    logger.info("hello %s, it is %s", name, tick.instant.time() if tick else "not on the schedule")


app.conf.beat_schedule = {
    "greet": {"task": "proj.hello", "schedule": 2.0, "args": ["world"]},
}
