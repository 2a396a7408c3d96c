"""The Flask app and its Celery app for the command line, as in Flask's documentation.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A make_celery worker -l info
    celery -A make_celery beat -S redlock -l info
    celery -A make_celery beat -S redlock -l info

Two beats run, and each task is sent once. The scheduler's name is all that it takes.
"""

from task_app import create_app

flask_app = create_app()
celery_app = flask_app.extensions["celery"]
