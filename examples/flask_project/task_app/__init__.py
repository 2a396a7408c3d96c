"""A Flask app made by a factory, with Celery as Flask's documentation has it."""

from celery import Celery, Task
from flask import Flask


def create_app() -> Flask:
    app = Flask(__name__)
    app.config.from_mapping(
        GREETING="hello from Flask",
        CELERY={
            "broker_url": "redis://localhost:6379/0",
            "broker_connection_retry_on_startup": True,
            "task_ignore_result": True,
            "beat_schedule": {
                "greet": {"task": "task_app.tasks.greet", "schedule": 2.0, "args": ["world"]},
            },
        },
    )
    app.config.from_prefixed_env()
    celery_init_app(app)

    from . import tasks  # noqa: F401, PLC0415 - they need the Celery app to be there

    return app


def celery_init_app(app: Flask) -> Celery:
    class FlaskTask(Task):
        def __call__(self, *args: object, **kwargs: object) -> object:
            with app.app_context():
                return self.run(*args, **kwargs)

    celery_app = Celery(app.name, task_cls=FlaskTask)
    celery_app.config_from_object(app.config["CELERY"])
    celery_app.set_default()
    app.extensions["celery"] = celery_app
    return celery_app
