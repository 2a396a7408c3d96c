"""Judge whether a server keeps what it was told; pure functions, one per kind of finding.

What a server keeps to itself is judged from what it tells otherwise, or named as unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import Finding, Severity, many
from celery_redlock_beat.store.eviction import ADVICE, WHAT_IT_MEANS, may_evict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.store.facts import ServerFacts

NEARLY = 0.9


def _policy(facts: ServerFacts) -> str:
    return facts.config.get("maxmemory-policy") or facts.info.get("maxmemory_policy", "")


def _memory(facts: ServerFacts) -> tuple[int, int]:
    """Return what is used and the limit, in bytes; 0 where there is none, or it is not told."""
    limit = facts.config.get("maxmemory") or facts.info.get("maxmemory", "0")
    return int(facts.info.get("used_memory", 0)), int(limit)


def eviction(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a policy that may delete our keys."""
    policy, (_, limit) = _policy(facts), _memory(facts)
    known = "maxmemory" in facts.config or "maxmemory" in facts.info
    if may_evict(policy, limit if known else None):
        yield Finding(
            Severity.WARNING,
            "eviction",
            "maxmemory-policy",
            f"the policy is {policy}: {WHAT_IT_MEANS}",
            ADVICE,
        )


def memory(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a server that takes no more writes, or soon, because its memory is full."""
    used, limit = _memory(facts)
    if not limit or used < limit * NEARLY or may_evict(_policy(facts), limit):
        return
    share = f"{used / 2**20:,.0f} of {limit / 2**20:,.0f} MiB are used"
    advice = "raise maxmemory, drain the queues, and keep the policy noeviction"
    if used >= limit:
        meaning = f"the memory is full, {share}: the server takes no writes, and nothing is sent"
        yield Finding(Severity.ERROR, "memory-full", "maxmemory", meaning, advice)
    else:
        meaning = f"the memory is nearly full, {share}: then the server takes no more writes"
        yield Finding(Severity.WARNING, "memory-nearly-full", "maxmemory", meaning, advice)


def persistence(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a server that forgets all, or the last minutes, when it is restarted."""
    if facts.info.get("aof_enabled") != "0" or "save" not in facts.config:
        return
    advice = "set appendonly yes, with appendfsync everysec or always"
    if facts.config["save"]:
        yield Finding(
            Severity.HINT,
            "snapshots-only",
            "appendonly",
            "the server keeps snapshots and no log: a crash loses what came after the last one, "
            "messages in the queues too; of the ledger, nodes that live say what they remember",
            advice,
        )
    else:
        yield Finding(
            Severity.WARNING,
            "no-persistence",
            "appendonly, save",
            "the server keeps nothing on disk: a restart loses the ledger and the messages in the "
            "queues; if no node lives then to say what it remembers, all begins anew",
            advice,
        )


def fsync(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a log that the operating system writes when it likes."""
    if facts.info.get("aof_enabled") == "1" and facts.config.get("appendfsync") == "no":
        yield Finding(
            Severity.WARNING,
            "fsync-off",
            "appendfsync",
            "the log is written to disk when the operating system likes: when the machine crashes, "
            "half a minute may be lost",
            "set appendfsync everysec or always",
        )


def split_brain(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a primary that goes on taking writes when it is cut off from its replicas."""
    replicas = int(facts.info.get("connected_slaves", 0))
    # INFO tells this number only where both settings are on.
    if (
        facts.info.get("role") == "master"
        and replicas
        and ("min_slaves_good_slaves" not in facts.info)
    ):
        yield Finding(
            Severity.WARNING,
            "split-brain",
            "min-replicas-to-write, min-replicas-max-lag",
            f"the primary has {many(replicas, 'replica', 'replicas')} and takes writes without "
            "one: cut off, with nodes on both sides, it and its successor grant the same ticks",
            "set min-replicas-to-write 1 and min-replicas-max-lag 10",
        )


def saving(facts: ServerFacts) -> Iterator[Finding]:
    """Tell of a server that fails to write to its disk."""
    if facts.info.get("aof_last_write_status") == "err":
        yield Finding(
            Severity.ERROR,
            "cannot-save",
            "INFO persistence: aof_last_write_status",
            "the server cannot write its log to disk: it takes no writes, and nothing is sent",
            "free its disk, or see its log for why writing fails",
        )
    if facts.info.get("rdb_last_bgsave_status") != "err":
        return
    stops = facts.config.get("stop-writes-on-bgsave-error") != "no" and facts.config.get("save")
    yield Finding(
        Severity.ERROR if stops else Severity.WARNING,
        "cannot-save",
        "INFO persistence: rdb_last_bgsave_status",
        "the server's last snapshot failed: it takes no writes, and nothing is sent"
        if stops
        else "the server's last snapshot failed: a restart may bring old data back",
        "free its disk, or see its log for why saving fails",
    )


def untold(facts: ServerFacts) -> Iterator[Finding]:
    """Tell what could not be judged, because the server does not tell."""
    what = {
        "CONFIG GET": "appendfsync, snapshots",
        "INFO memory": "memory and its policy",
        "INFO persistence": "AOF, failed saves",
        "INFO server": "version",
        "INFO clients": "clients",
    }
    refused = [name for name in facts.refused if name in what]
    if "CONFIG GET" not in refused:
        what["INFO memory"] = "memory"
    if refused:
        yield Finding(
            Severity.HINT,
            "settings-unknown",
            ", ".join(refused),
            f"the server does not tell this user about {', '.join(what[name] for name in refused)}",
            "allow +info +config|get to the user that runs doctor, or look at redis.conf yourself",
        )


JUDGES: tuple[Callable[[ServerFacts], Iterator[Finding]], ...] = (
    eviction,
    memory,
    persistence,
    fsync,
    split_brain,
    saving,
    untold,
)
