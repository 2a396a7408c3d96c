"""What a Redis error means for an operator: a problem and a piece of advice, never a password."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from redis import exceptions
from redis.sentinel import MasterNotFoundError

from celery_redlock_beat.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_TEXT = 300
NOISE = (ValueError, TypeError, OverflowError, RecursionError)
"""What reading something that is no answer of Redis may raise, besides redis-py's own errors."""
CREDENTIALS = {
    r"://[^\s/]*@": "://***@",
    # A server without AUTH or HELLO, such as a proxy, quotes what they were called with.
    r"args beginning with: .*": "args beginning with: ***",
}
SENTINELS_REFUSE = re.compile(r"Authentication|NOAUTH|WRONGPASS|NoPermission")
# redis-py shows the client of each sentinel that it asked, in some versions with its password.
SENTINELS_CLIENT = re.compile(r"<.*?\)>\)>\)> - ")


class Meaning(NamedTuple):
    """What is wrong, and what an operator can do about it."""

    problem: str
    advice: str


# redis-py cuts the code off the text of the errors that it has a class for.
CODES: dict[type[Exception], str] = {
    exceptions.AuthenticationWrongNumberOfArgsError: "AUTH",
    exceptions.AuthenticationError: "AUTH",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.BusyLoadingError: "LOADING",
    exceptions.MasterDownError: "MASTERDOWN",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.AskError: "MOVED",  # MovedError is one
    exceptions.TryAgainError: "TRYAGAIN",
    exceptions.ClusterCrossSlotError: "MOVED",
    MasterNotFoundError: "MASTER NOT FOUND",
    exceptions.MaxConnectionsError: "POOL",
    exceptions.InvalidResponse: "PROTOCOL",
    exceptions.TimeoutError: "TIMEOUT",
    TimeoutError: "TIMEOUT",
}

MEANINGS: dict[str, Meaning] = {
    "AUTH": Meaning(
        "the server refuses our user or password",
        "check the user and the password of redlock_beat_url or broker_url, percent-encoded, "
        "and that the user is enabled",
    ),
    "NOPERM": Meaning(
        "the server forbids our user a command or a key",
        "grant it ~{redlock:*} (behind the broker's key prefix), the queues, +eval +evalsha "
        "+info|replication and the commands that the scripts call",
    ),
    "OOM": Meaning(
        "the server has reached its maxmemory",
        "raise maxmemory, drain the queues, and keep the policy noeviction",
    ),
    "READONLY": Meaning(
        "the server is a replica, which takes no writes",
        "point the URL at the primary, or at Sentinel, which finds it",
    ),
    "LOADING": Meaning(
        "the server is loading its data", "wait: it answers as soon as that is done"
    ),
    "BUSY": Meaning(
        "the server is busy with a script of somebody",
        "look at its SLOWLOG; SCRIPT KILL ends a script that has not written",
    ),
    "MISCONF": Meaning(
        "the server takes no writes, because it cannot save its data to disk",
        "free its disk, or see its log for why saving fails",
    ),
    "MASTERDOWN": Meaning(
        "the server is a replica that has lost its primary",
        "point the URL at the primary, or restore the replication",
    ),
    "CLUSTERDOWN": Meaning(
        "the cluster is down", "see CLUSTER INFO: some of its slots are not served"
    ),
    "MOVED": Meaning(
        "the server is a node of a Redis Cluster, and our keys live on another one",
        "write redlock_beat_url = 'redis+cluster://host:port,host:port' for the Cluster, or name a "
        "server that is not in cluster mode",
    ),
    "TRYAGAIN": Meaning(
        "the cluster is moving our keys to another node",
        "wait: it answers as soon as their slot has moved",
    ),
    "NO CLUSTER": Meaning(
        "the server is not in cluster mode",
        "write its URL with redis:// instead of redis+cluster://",
    ),
    "NOREPLICAS": Meaning(
        "the primary has fewer replicas than min-replicas-to-write demands",
        "bring a replica back: until then the primary rightly takes no writes",
    ),
    "MAX CLIENTS": Meaning(
        "the server has reached its limit of clients",
        "raise maxclients, or find who holds the connections with CLIENT LIST",
    ),
    "POOL": Meaning(
        "all our connections are in use", "raise max_connections in the transport options"
    ),
    "NO SUCH DB": Meaning(
        "the server has no database of that number",
        "use a lower number at the end of the URL, or raise the server's 'databases'",
    ),
    "MASTER NOT FOUND": Meaning(
        "Sentinel knows no primary of that name that is up",
        "check master_name in the transport options or in the URL, and that the sentinels can be "
        "reached, with TLS also the certificates",
    ),
    "SENTINEL AUTH": Meaning(
        "the sentinels refuse our user or password, which are their own",
        "write theirs as sentinel_username and sentinel_password behind the '?' of "
        "redlock_beat_url, or as sentinel_kwargs in broker_transport_options",
    ),
    "PROTOCOL": Meaning(
        "what answers there does not speak the Redis protocol",
        "check host, port, and whether the port wants TLS (rediss://)",
    ),
    "TIMEOUT": Meaning(
        "the server did not answer in time",
        "check its load, the network, and whether the port wants TLS (rediss://), or raise "
        "redlock_beat_socket_timeout",
    ),
    "DNS": Meaning("the name of the server cannot be resolved", "check the host in the URL"),
    "REFUSED": Meaning(
        "nothing listens at the server's address", "check that it runs, and host and port"
    ),
    "TLS AUTHORITY": Meaning(
        "the server's certificate is signed by no authority that we trust",
        "name the file of its authority as ssl_ca_certs, in broker_use_ssl or behind the '?' of "
        "redlock_beat_url",
    ),
    "TLS STRICT": Meaning(
        "a certificate, the server's or its authority's, lacks what the standard demands",
        "have it issued with that extension: Python checks this since 3.13",
    ),
    "TLS NAME": Meaning(
        "the server's certificate is for another host",
        "write the host as the certificate has it, have it issued for this one, or, where that is "
        "safe, turn off ssl_check_hostname",
    ),
    "TLS CLIENT": Meaning(
        "the server wants a certificate of ours, and takes none or not this one",
        "name its file and its key as ssl_certfile and ssl_keyfile, in broker_use_ssl or behind "
        "the '?' of redlock_beat_url",
    ),
    "TLS": Meaning(
        "no TLS connection can be made",
        "check the certificates, whether the server wants one of ours (ssl_certfile and "
        "ssl_keyfile), and whether it speaks TLS on that port",
    ),
    "UNREACHABLE": Meaning(
        "there is no connection to the server", "check that it runs and the network to it"
    ),
}

# A script is refused before its first write or not at all.
REFUSALS = frozenset(
    {
        "AUTH",
        "BUSY",
        "CLUSTERDOWN",
        "DNS",
        "LOADING",
        "MASTER NOT FOUND",
        "MASTERDOWN",
        "MAX CLIENTS",
        "MISCONF",
        "MOVED",
        "NOREPLICAS",
        "NO SUCH DB",
        "OOM",
        "POOL",
        "READONLY",
        "REFUSED",
    }
)

# Where there is no class, or where the error of a command within a script was wrapped in another.
TEXTS: dict[str, str] = {
    r"\bOOM\b": "OOM",
    r"\bREADONLY\b": "READONLY",
    r"\bNOPERM\b|has no permissions|The user executing the script|ACL failure in": "NOPERM",
    r"\b(?:NOAUTH|WRONGPASS)\b|[Aa]uthentication required|invalid password": "AUTH",
    r"AUTH.* called without any password configured": "AUTH",
    # What a server that wants a password says of a long command before it has heard one.
    r"unauthenticated (?:multi)?bulk length": "AUTH",
    r"\bMISCONF\b": "MISCONF",
    r"\bNOREPLICAS\b": "NOREPLICAS",
    r"\bBUSY\b.*script": "BUSY",
    r"\bMASTERDOWN\b": "MASTERDOWN",
    r"\bCLUSTERDOWN\b": "CLUSTERDOWN",
    r"\b(?:MOVED|CROSSSLOT)\b|not allowed in cluster mode": "MOVED",
    r"\bTRYAGAIN\b": "TRYAGAIN",
    r"cluster support disabled": "NO CLUSTER",
    r"max number of clients": "MAX CLIENTS",
    r"DB index is out of range|invalid DB index": "NO SUCH DB",
    r"No master found": "MASTER NOT FOUND",
    r"Protocol Error": "PROTOCOL",
    r"[Tt]imed out|Timeout": "TIMEOUT",
    r"not known|getaddrinfo|name resolution|nodename nor servname": "DNS",
    r"(?:Hostname|IP address) mismatch|doesn't match": "TLS NAME",
    r"key usage extension|Missing (?:Authority|Subject) Key|Basic Constraints": "TLS STRICT",
    r"CERTIFICATE_VERIFY_FAILED": "TLS AUTHORITY",
    r"CERTIFICATE_REQUIRED|certificate required|ALERT_UNKNOWN_CA": "TLS CLIENT",
    r"SSL|_ssl\.c|CERTIFICATE|certificate": "TLS",
    r"[Cc]onnection refused|No such file or directory": "REFUSED",
}


def unavailable(exc: BaseException) -> LedgerUnavailable:
    """Return what an exception of the Redis client means, as a ``LedgerUnavailable``."""
    name = next(_names(exc), None)
    if name is None:
        connection = isinstance(exc, (exceptions.ConnectionError, OSError))
        name = "UNREACHABLE" if connection else None
    if name is None:
        return LedgerUnavailable(f"the server refused: {describe(exc)}")
    meaning = MEANINGS[name]
    problem = f"{meaning.problem} [{describe(exc)}]"
    return LedgerUnavailable(problem, meaning.advice, undone=name in REFUSALS)


def _names(exc: BaseException) -> Iterator[str]:
    if isinstance(exc, MasterNotFoundError) and SENTINELS_REFUSE.search(str(exc)):
        yield "SENTINEL AUTH"
    if isinstance(exc, NOISE) and not isinstance(exc, OSError):  # as some errors of TLS are, too
        yield "PROTOCOL"
    for kind, name in CODES.items():
        if isinstance(exc, kind):
            yield name
    text = str(exc)
    for pattern, name in TEXTS.items():
        if re.search(pattern, text):
            yield name


def describe(exc: BaseException) -> str:
    """Return the type and text of an exception: one line, bounded, printable, no credentials."""
    text = " ".join(str(exc).split())
    if isinstance(exc, MasterNotFoundError):
        text = SENTINELS_CLIENT.sub("", text)
    for pattern, shown in CREDENTIALS.items():
        text = re.sub(pattern, shown, text)
    text = "".join(char if char.isprintable() else "?" for char in text[:LONGEST_TEXT])
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
