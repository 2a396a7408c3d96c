"""Judge what a server would refuse us; pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.store.rights import Rights

IDENTITY = "INFO|replication"
HISTORY = "XADD"
# What else is found under these names tells more than the refusal of a write.
NAMES = {"READONLY": "replica", "OOM": "memory-full", "MISCONF": "cannot-save"}
SUBJECTS = {
    "replica": "INFO replication: role",
    "memory-full": "maxmemory",
    "cannot-save": "INFO persistence: rdb_last_bgsave_status",
}


def missing(rights: Rights) -> Iterator[Finding]:
    """Tell which commands and keys our user lacks, and how to grant them."""
    commands = [name for name in rights.commands if name != IDENTITY]
    if not commands and not rights.keys:
        return
    grants = [*(f"~{_pattern(key)}" for key in rights.keys), *(f"+{c.lower()}" for c in commands)]
    lacking = [
        *(f"the command {name}" for name in commands),
        *(f"the key {k}" for k in rights.keys),
    ]
    lesser = commands == [HISTORY] and not rights.keys
    yield Finding(
        Severity.WARNING if lesser else Severity.ERROR,
        "rights",
        f"ACL of the user {rights.user or 'in the URL'}",
        "the server forbids our user to keep the history and the audit of repairs: all else goes "
        "on, but celery redlock repair is refused"
        if lesser
        else "the server forbids our user what the scripts need: nothing is sent",
        f"ACL SETUSER {rights.user or '<user>'} {' '.join(dict.fromkeys(grants))}",
        tuple(lacking),
        len(lacking),
    )


def no_identity(rights: Rights, refused: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Tell that a change of the server is seen by its fence alone."""
    if IDENTITY in rights.commands or (not rights.tried and "INFO replication" in refused):
        yield Finding(
            Severity.HINT,
            "no-identity",
            "INFO replication",
            "the server does not tell our user its identity: after a failover or a restart, only "
            "the fence tells whether it has lost data",
            f"if your provider allows it: ACL SETUSER {rights.user or '<user>'} +info|replication",
        )


def no_writes(rights: Rights) -> Iterator[Finding]:
    """Tell that the server takes no writes at all, and why."""
    if rights.no_writes:
        name = NAMES.get(rights.no_writes_code, "no-writes")
        yield Finding(
            Severity.ERROR,
            name,
            SUBJECTS.get(name, "the server"),
            f"{rights.no_writes.problem}: nothing is sent",
            rights.no_writes.advice,
        )


def untried(rights: Rights) -> Iterator[Finding]:
    """Tell that rights could not be tried."""
    if not rights.tried:
        yield Finding(
            Severity.HINT,
            "rights-unknown",
            "MULTI",
            "whether our user may do what the scripts need was not tried: it may not use MULTI, "
            "and trying it otherwise would write",
            f"allow it, or see for yourself: ACL GETUSER {rights.user or '<user>'}",
        )


def _pattern(key: str) -> str:
    """Return the ACL pattern of a key: of all our keys together, or of a queue."""
    tag, found, _ = key.partition("}:")
    return f"{tag}}}:*" if found and "{redlock:" in tag else key
