"""The exceptions of the package, as one tree; nothing here knows how they come about.

RedlockBeatError
├── ConfigurationError (ValueError)      a setting or an entry that cannot work
│   ├── SettingError                     ends the start
│   └── EntryError                       leaves one entry out
├── LedgerError
│   ├── LedgerUnavailable (ConnectionError)   the ledger could not be asked
│   └── LedgerRecovering                      it answers, but must first hear what nodes know
├── DeliveryError
│   ├── BrokerUnreachable (ConnectionError)   the message was certainly not tried
│   ├── DeliveryFailed                        it may have left or not; it may work later
│   └── DeliveryImpossible                    trying again cannot help
├── ServerNotFound (FileNotFoundError)   no server's binary, for the demo and for tests
└── ServerNotStarted (RuntimeError)      such a server ended, or did not answer in time
"""

from __future__ import annotations

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


class ServerNotFound(RedlockBeatError, FileNotFoundError):
    """No server binary was found in any of the places that were asked."""


class ServerNotStarted(RedlockBeatError, RuntimeError):
    """The child process ended, or did not answer in time; the message quotes its log."""
