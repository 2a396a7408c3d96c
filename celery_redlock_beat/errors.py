"""The exceptions of the package, as one tree; nothing here knows how they come about.

RedlockBeatError
├── ConfigurationError (ValueError)      a setting or an entry that cannot work
│   ├── SettingError                     ends the start
│   └── EntryError                       leaves one entry out
├── LedgerError
│   ├── LedgerUnavailable (ConnectionError)   the ledger could not be asked
│   │   └── LedgerDisorder                    its keys hold what is not ours
│   └── LedgerRecovering                      it answers, but must first hear what nodes know
├── DeliveryError
│   ├── BrokerUnreachable (ConnectionError)   the message was certainly not tried
│   ├── DeliveryFailed                        it may have left or not; it may work later
│   └── DeliveryImpossible                    trying again cannot help
├── ControlError                         an operator's deed was not done
│   ├── NothingSelected (ValueError)          it was not said which entries are meant
│   ├── NoSuchEntry (LookupError)             there is none of this name
│   ├── EntryExists                           there is one of this name
│   ├── EntryChanged                          somebody else changed it meanwhile
│   ├── NotStored                             it is defined in code
│   ├── EntryPaused                           it is not fired while it is held back
│   └── TickRefused                           a tick that cannot be skipped
├── ServerNotFound (FileNotFoundError)   no server's binary, for the demo and for tests
└── ServerNotStarted (RuntimeError)      such a server ended, or did not answer in time
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_NAME = 300


class RedlockBeatError(Exception):
    """Root of every exception that this package raises."""


class ConfigurationError(RedlockBeatError, ValueError):
    """Something in the configuration cannot work; the message names it and the way out."""


class SettingError(ConfigurationError):
    """A setting is unknown, malformed, or impossible together with another."""


class EntryError(ConfigurationError):
    """One entry of the schedule cannot work; the others are not touched by it."""

    def __init__(self, entry: str, problem: str) -> None:
        name = repr(entry)
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME]}…"
        super().__init__(f"entry {name}: {problem}")
        self.entry = entry
        self.problem = problem


class LedgerError(RedlockBeatError):
    """The ledger did not do what it was asked.

    Nothing may be assumed about the call, unless ``undone`` tells that nothing was done.
    """

    undone = False


class LedgerUnavailable(LedgerError, ConnectionError):
    """The ledger could not be asked: no connection, no answer in time, or a server that refuses.

    ``advice`` says in one sentence what an operator can do about it. It is ``undone`` where the
    server said no.
    """

    def __init__(self, problem: str, advice: str = "", *, undone: bool = False) -> None:
        super().__init__(f"{problem} ({advice})" if advice else problem)
        self.problem = problem
        self.advice = advice
        self.undone = undone


class LedgerDisorder(LedgerUnavailable):
    """The server answers, and one of the ledger's keys holds what this release cannot work on."""


class LedgerRecovering(LedgerError):
    """The server may have lost data: nodes must first tell it what they remember."""

    undone = True


class DeliveryError(RedlockBeatError):
    """A granted tick did not become a message, as far as can be known."""


class BrokerUnreachable(DeliveryError, ConnectionError):
    """There is no usable connection to the broker: the message was certainly not tried."""


class DeliveryFailed(DeliveryError):
    """The message may have left or not, and the cause may pass: try again later."""


class DeliveryImpossible(DeliveryError):
    """The message cannot be sent, now or later: trying again cannot help."""


class ControlError(RedlockBeatError):
    """What an operator asked for was not done; the message names the entry and the way out."""


class NothingSelected(ControlError, ValueError):
    """It was not said which entries are meant."""


class NoSuchEntry(ControlError, LookupError):
    """There is no entry of this name, or none that matches; the message tells which is like it."""


class EntryExists(ControlError):
    """There is an entry of this name already, stored or in the code."""


class EntryChanged(ControlError):
    """Somebody changed or removed a stored entry that was to be changed.

    ``expected`` is the revision it should have, ``found`` the present one, 0 where it is gone.
    ``ours`` is the document that was to be stored, empty where it was to be removed; ``theirs`` the
    one that is stored.
    """

    def __init__(
        self,
        entry: str,
        expected: int,
        found: int,
        ours: Mapping[str, Any] | None = None,
        theirs: Mapping[str, Any] | None = None,
    ) -> None:
        self.entry = entry
        self.expected = expected
        self.found = found
        self.ours = dict(ours or {})
        self.theirs = dict(theirs or {})
        present = f"has revision {found}" if found else "is removed"
        both = f"; yours: {_as_json(self.ours)}" if self.ours else ""
        both += f"; now stored: {_as_json(self.theirs)}" if self.theirs else ""
        super().__init__(
            f"entry {entry!r} was changed meanwhile: it {present}, and not {expected}{both}; look "
            "at it, and try again with its present revision"
        )


class NotStored(ControlError):
    """The entry is defined in code, and only what is stored can be changed so."""


class EntryPaused(ControlError):
    """The entry is paused or disabled, and is not fired unless that is forced."""


class TickRefused(ControlError):
    """It is no tick, or it is too late to have it skipped."""


def _as_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, default=str)


class ServerNotFound(RedlockBeatError, FileNotFoundError):
    """No server binary was found in any of the places that were asked."""


class ServerNotStarted(RedlockBeatError, RuntimeError):
    """The child process ended, or did not answer in time; the message quotes its log."""
