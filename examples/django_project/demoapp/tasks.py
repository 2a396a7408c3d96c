"""Tasks of the app; they know no Celery app, and need none."""

from celery import shared_task
from celery.utils.log import get_task_logger
from django.contrib.auth.models import User
from django.core.management import call_command

from celery_redlock_beat import current_tick

logger = get_task_logger(__name__)


@shared_task
def count_users() -> None:
    tick = current_tick()  # None, if somebody else has sent the task
    when = tick.instant.time() if tick else "somebody's own wish"
    logger.info("%s users, as of %s", User.objects.count(), when)


@shared_task
def clean_up() -> None:
    call_command("clearsessions")
