"""The settings of the project: of Django as few as will do, and those of Celery."""

from pathlib import Path

from celery.schedules import crontab

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = "django-insecure-for-an-example-only"  # noqa: S105
DEBUG = True
ALLOWED_HOSTS: list[str] = []
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "demoapp",
]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"

CELERY_BROKER_URL = "redis://localhost:6379/0"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_BEAT_SCHEDULER = "redlock"
CELERY_REDLOCK_BEAT_NAMESPACE = "mysite"
CELERY_BEAT_SCHEDULE = {
    "count users": {
        "task": "demoapp.tasks.count_users",
        "schedule": 2.0,
    },
    "nightly": {
        "task": "demoapp.tasks.clean_up",
        "schedule": crontab(hour=3, minute=30),
    },
}
