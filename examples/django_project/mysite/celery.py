"""A Django project with Celery as in Celery's "First steps with Django", and beat on every node.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    python manage.py migrate
    celery -A mysite worker -l info
    celery -A mysite beat -l info
    celery -A mysite beat -l info

Two beats run, and each task is sent once. What makes it so are two lines of mysite/settings.py:
CELERY_BEAT_SCHEDULER names the scheduler, and CELERY_REDLOCK_BEAT_NAMESPACE the schedule that the
nodes share. Everything else is as it was.
"""

import os

from celery import Celery

# Set the default Django settings module for the 'celery' program.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")

app = Celery("mysite")

# Using a string here means the worker doesn't have to serialize
# the configuration object to child processes.
# - namespace='CELERY' means all celery-related configuration keys
#   should have a `CELERY_` prefix.
app.config_from_object("django.conf:settings", namespace="CELERY")

# Load task modules from all registered Django apps.
app.autodiscover_tasks()
