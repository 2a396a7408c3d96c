"""OpenTelemetry's own instrumentation, in beats and worker: one span for each tick that is sent.

Each process writes the spans that it ends to a file.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from celery_redlock_beat.testing.server import wait_until
from support.nodes import BeatNode, WorkerNode, write_project
from support.requirements import require
from support.servers import Server, have_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2, "task_ignore_result": True}
INSTRUMENTED = """
import json
import os

from opentelemetry import trace
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from celery_redlock_beat import current_tick


class ToFile(SpanExporter):
    def export(self, spans):
        with open(os.environ["SPANS"], "a") as file:
            for span in spans:
                told = {
                    "kind": span.kind.name,
                    "name": span.name,
                    "id": span.attributes.get("messaging.message.id"),
                    "trace": span.context.trace_id,
                    "span": span.context.span_id,
                    "parent": span.parent and span.parent.span_id,
                    "tick": span.attributes.get("tick"),
                }
                file.write(json.dumps(told) + "\\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ToFile()))
trace.set_tracer_provider(provider)
CeleryInstrumentor().instrument()


@app.task
def work(*args):
    tick = current_tick()
    trace.get_current_span().set_attribute("tick", f"{tick.entry} {tick.instant.isoformat()}")
"""
SENT = {
    "number": "1",
    "cron string": '"* * * * * *"',
    "rule": '"FREQ=SECONDLY"',
    "two seconds": "timedelta(seconds=2)",
}
# It fails when its span has begun, which nobody ends: that must not colour the spans of others.
UNSENT = '"unsent": {"task": "proj.work", "schedule": 1, "args": [object()]}'
ENOUGH = 4


@dataclass
class Seen:
    """The spans of the beats together, those of the worker, and the logs of the beats."""

    beats: list
    worker: list
    logs: list

    def of(self, kind):
        spans = self.beats if kind == "PRODUCER" else self.worker
        return [span for span in spans if span["kind"] == kind]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def everything():
    """Return the source of the schedule."""
    form = '{!r}: {{"task": "proj.work", "schedule": {}, "catch_up": "all"}}'
    return "{" + ", ".join([*(form.format(*each) for each in SENT.items()), UNSENT]) + "}"


def run_instrumented(place, broker_url, **config):
    """Run two beats and a worker until there is enough of each entry; return their spans."""
    config = {**QUICK, **config}
    write_project(place, broker_url, everything(), config=config, extra=INSTRUMENTED)
    names = ["one", "two"]

    def look():
        return Seen(
            [span for name in names for span in read(place / f"spans-{name}")],
            read(place / "spans-worker"),
            [],
        )

    def env(name):
        return {"SPANS": str(place / f"spans-{name}")}

    def enough():
        ran = Counter(span["tick"].rpartition(" ")[0] for span in look().of("CONSUMER"))
        return all(ran[name] >= ENOUGH for name in SENT)

    with ExitStack() as stack:
        beats = [stack.enter_context(BeatNode(place, name, env=env(name))) for name in names]
        worker = stack.enter_context(WorkerNode(place, env=env("worker"), args=["-P", "solo"]))
        wait_until(enough, 60, f"{ENOUGH} runs of each entry", 0.1)
        # Not while they send: what is begun then has no end.
        wait_until(lambda: 0.4 < time.time() % 1 < 0.6, 2, "half a second")
        for beat in beats:
            beat.ask_to_end()
        for beat in beats:
            assert beat.wait_for_exit() == 0, beat.log
        sent = len(look().of("PRODUCER"))
        wait_until(lambda: len(look().of("CONSUMER")) >= sent, 30, "the last run")
        worker.stop()
        seen = look()
        seen.logs = [beat.log for beat in beats]
    return seen


@pytest.fixture(scope="module")
def redis():
    require("redis-server", have_server())
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def enqueued(redis, tmp_path_factory):
    return run_instrumented(tmp_path_factory.mktemp("enqueue"), redis.url)


@pytest.fixture(scope="module")
def published(redis, rabbitmq, tmp_path_factory):
    rabbitmq.delete_queues("celery")
    place = tmp_path_factory.mktemp("publish")
    return run_instrumented(place, rabbitmq.url, redlock_beat_url=redis.url)


@pytest.fixture(params=["enqueued", pytest.param("published", marks=pytest.mark.needs_rabbitmq)])
def seen(request):
    """What is seen of messages that the ledger enqueues, and of those that a broker takes."""
    return request.getfixturevalue(request.param)


def test_each_tick_that_is_sent_has_one_span_and_on_one_node(seen):
    sent = Counter(span["id"] for span in seen.of("PRODUCER"))
    ran = Counter(span["id"] for span in seen.of("CONSUMER"))
    assert sent == ran
    assert set(sent.values()) == {1}
    ticks = Counter(span["tick"] for span in seen.of("CONSUMER"))
    assert set(ticks.values()) == {1}
    assert {span["name"] for span in seen.of("PRODUCER")} == {"apply_async/proj.work"}


def test_the_workers_span_continues_that_of_beat(seen):
    sent = {span["id"]: (span["trace"], span["span"]) for span in seen.of("PRODUCER")}
    ran = {span["id"]: (span["trace"], span["parent"]) for span in seen.of("CONSUMER")}
    assert ran == sent


def test_each_tick_begins_a_trace_although_another_ones_message_failed(seen):
    assert any("unsent" in log and "EncodeError" in log for log in seen.logs)
    assert [span for span in seen.of("PRODUCER") if span["parent"]] == []
    assert len({span["trace"] for span in seen.of("PRODUCER")}) == len(seen.of("PRODUCER"))
