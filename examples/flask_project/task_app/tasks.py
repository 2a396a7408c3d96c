"""Tasks, which run within the context of the Flask app."""

from celery import shared_task
from celery.utils.log import get_task_logger
from flask import current_app

from celery_redlock_beat import current_tick

logger = get_task_logger(__name__)


@shared_task(ignore_result=True)
def greet(name: str) -> None:
    tick = current_tick()  # None, if somebody else has sent the task
    when = tick.instant.time() if tick else "somebody's own wish"
    logger.info("%s to %s, as of %s", current_app.config["GREETING"], name, when)
