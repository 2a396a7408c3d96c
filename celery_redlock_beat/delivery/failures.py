"""Decide whether a failed delivery may work later; nothing here retries, logs, or connects."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING

from celery.exceptions import NotRegistered, QueueNotFound
from kombu.exceptions import OperationalError, SerializationError, SerializerNotInstalled

from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryError,
    DeliveryFailed,
    DeliveryImpossible,
)
from celery_redlock_beat.store.errors import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

Kinds = tuple[type[BaseException], ...]

WRONG_TYPE = "WRONGTYPE "
"""What Redis says of a queue's key that is no list: it has to be deleted by hand."""

NOT_TAKEN = frozenset(
    {
        "BusyLoadingError",
        "ClusterDownError",
        "MasterDownError",
        "MasterNotFoundError",
        "NoReplicasError",
        "OutOfMemoryError",
        "ReadOnlyError",
    }
)
"""redis-py's names for a server that is there and takes nothing; no attempt was made."""
REFUSAL = re.compile(r"\b(BUSY|MISCONF|NOAUTH|NOREPLICAS|WRONGPASS) |max number of clients")
"""How Redis says the same where redis-py has no name for it, also within a pipeline."""
TRANSIENT: Kinds = (OSError, OperationalError)
PERMANENT: Kinds = (
    # kombu: EncodeError is a SerializationError, ContentDisallowed a SerializerNotInstalled.
    SerializationError,
    SerializerNotInstalled,
    QueueNotFound,
    NotRegistered,
    # A bug does not pass by itself.
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NameError,
    NotImplementedError,
)


def classify(exc: BaseException, connection_errors: Kinds = ()) -> DeliveryError:
    """Return the delivery error that an exception, with what caused it, amounts to.

    ``connection_errors`` are those that the connection at hand can recover from.
    """
    for link in _links(exc):
        if isinstance(link, DeliveryError):
            return link
        if WRONG_TYPE in str(link):
            return DeliveryImpossible(describe(link))
        if _is_refusal(link):
            return BrokerUnreachable(describe(link))
        if _passes(link, connection_errors) or _is_noise(link):
            return DeliveryFailed(describe(link))
        if isinstance(link, PERMANENT):
            return DeliveryImpossible(describe(link))
    return DeliveryFailed(describe(exc))


def is_connection_error(exc: BaseException, connection_errors: Kinds = ()) -> bool:
    """Answer whether an exception, or what caused it, came from the connection."""
    return any(_passes(link, connection_errors) for link in _links(exc))


def _links(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it came from, outermost first.

    What is innermost says least: kombu opens channels inside ``except IndexError``. But Celery
    wraps what kombu calls recoverable, a KeyError too, in an OperationalError, which says nothing.
    """
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if not (isinstance(link, OperationalError) and link.__cause__):
            yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_refusal(exc: BaseException) -> bool:
    if not type(exc).__module__.startswith("redis."):
        return False
    return type(exc).__name__ in NOT_TAKEN or bool(REFUSAL.search(str(exc)))


def _is_noise(exc: BaseException) -> bool:
    # What redis-py cannot read as a number came from the server, and not from the user.
    if not isinstance(exc, ValueError) or exc.__traceback__ is None:
        return False
    *_, (frame, _line) = traceback.walk_tb(exc.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("redis.")


def _passes(exc: BaseException, connection_errors: Kinds) -> bool:
    # kombu's Redis transport lists KeyError among its connection errors; to us it is a bug.
    kinds = tuple(kind for kind in connection_errors if not issubclass(kind, LookupError))
    return isinstance(exc, TRANSIENT + kinds)
