"""The periodic tasks of Celery's own user guide, as they stand there.

With a Redis on this machine, and in this directory, each in a terminal of its own:

    celery -A tasks worker -l info
    celery -A tasks beat -S redlock -l info
    celery -A tasks beat -S redlock -l info

Two beats run, and nothing is sent twice. The scheduler's name is all that is not in the guide:
without "-S redlock" this is the guide's own example again, for which there may be one beat.
"""

from celery import Celery
from celery.schedules import crontab

app = Celery("tasks", broker="redis://localhost:6379/0")


@app.on_after_configure.connect
def setup_periodic_tasks(sender: Celery, **kwargs: object) -> None:  # noqa: ARG001
    # Calls test('hello') every 10 seconds.
    sender.add_periodic_task(10.0, test.s("hello"), name="add every 10")

    # Calls test('hello') every 30 seconds.
    # It uses the same signature of previous task, an explicit name is
    # defined to avoid this task replacing the previous one defined.
    sender.add_periodic_task(30.0, test.s("hello"), name="add every 30")

    # Calls test('world') every 30 seconds
    sender.add_periodic_task(30.0, test.s("world"), expires=10)

    # Executes every Monday morning at 7:30 a.m.
    sender.add_periodic_task(
        crontab(hour=7, minute=30, day_of_week=1),
        test.s("Happy Mondays!"),
    )


@app.task
def test(arg: str) -> None:
    print(arg)


@app.task
def add(x: int, y: int) -> None:
    z = x + y
    print(z)
