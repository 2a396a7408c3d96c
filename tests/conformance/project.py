"""A project as users have it: each of its processes says on its output what it sent or ran.

Run as a script it starts beat the way its first argument says, until its input ends.
"""

from __future__ import annotations

import os
import sys
import threading

from celery import Celery
from celery.beat import EmbeddedService, Service
from celery.signals import after_task_publish

QUEUE = os.environ.get("PROJECT_QUEUE")  # a folder; without one, the broker is in the process

app = Celery("project", broker="filesystem://" if QUEUE else "memory://")
app.conf.update(
    redlock_beat_url="memory://",
    beat_schedule={"every second": {"task": "project.work", "schedule": 1.0}},
    worker_redirect_stdouts=False,
)
if QUEUE:
    folders = {"data_folder_in": QUEUE, "data_folder_out": QUEUE, "control_folder": QUEUE}
    app.conf.broker_transport_options = folders
if "PROJECT_SCHEDULER" in os.environ:
    app.conf.beat_scheduler = os.environ["PROJECT_SCHEDULER"]


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


@app.task(name="project.work")
def work():
    say("the task ran")


@after_task_publish.connect
def tell(headers, **_):
    say("published", headers["task"], headers["id"])


def embedded(*, thread: bool) -> None:
    service = EmbeddedService(app, thread=thread, scheduler_cls="redlock")
    service.start()
    sys.stdin.readline()
    service.stop()
    service.join(10)
    say("alive" if service.is_alive() else "stopped")


def controlled() -> None:
    service = Service(app, scheduler_cls="redlock", remote_control=True, hostname="beat@here")
    thread = threading.Thread(target=service.start)
    thread.start()
    replies = []
    while not replies and thread.is_alive():
        replies = app.control.ping(destination=["beat@here"], timeout=1)
    say("answered", replies)
    service.stop(wait=True)
    thread.join(10)
    say("alive" if thread.is_alive() else "stopped")


WAYS = {
    "thread": lambda: embedded(thread=True),
    "process": lambda: embedded(thread=False),
    "controlled": controlled,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
