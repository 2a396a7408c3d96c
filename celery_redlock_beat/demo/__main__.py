"""The command line of the demo: options, signals, exit status; what happens is not decided here."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING

from celery_redlock_beat.demo.cast import a_cast_of
from celery_redlock_beat.demo.play import Play, Problem, verdict
from celery_redlock_beat.testing.server import ServerNotFound, ServerNotStarted
from celery_redlock_beat.verify.signals import BY_SIGNAL, Interrupted, Signals

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD, BAD, MISSING = 0, 1, 2
LEAST, MOST = 3, 3600
INSTALL = "pip install 'celery-redlock-beat[demo]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every due tick was sent exactly once, 1 if not, 2 if it cannot."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # lines and marks, where there is no Unicode
    signals = Signals()
    with signals.listening():
        try:
            return _run(options, signals)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "rich":
                raise
            return _tell(f"The demo needs the package rich: {INSTALL}", MISSING)
        except ServerNotFound:
            line = f"The demo needs a server: {INSTALL}, or install redis-server or valkey-server"
            return _tell(line, MISSING)
        except Interrupted:
            return _tell("Ended before its time.", BY_SIGNAL + signals.number)
        except (Problem, ServerNotStarted) as problem:
            return _tell(f"The demo failed: {problem}", BAD)


def _run(options: argparse.Namespace, signals: Signals) -> int:
    from rich.console import Console  # noqa: PLC0415  of the extra, which may be missing

    from celery_redlock_beat.demo.screen import TerminalScreen  # noqa: PLC0415

    with a_cast_of(options.nodes) as cast, TerminalScreen(Console(highlight=False)) as screen:
        play = Play(cast, screen, options.seconds, signals.asked)
        tallies = play.run(kill=options.kill)
        good, sentence = verdict(tallies, play.scene.killed)
        screen.conclude(play.scene, tallies, sentence, good=good)
    return GOOD if good else BAD


def _tell(line: str, status: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{line}\n")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m celery_redlock_beat.demo",
        description="Run Celery beat on several nodes, kill one, and count what was sent.",
    )
    parser.add_argument("--seconds", type=_seconds, default=20, help="how long ticks count (20)")
    parser.add_argument(
        "--nodes", type=int, choices=range(2, 5), default=3, help="how many beats run (3)"
    )
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="let all of them live")
    return parser


def _seconds(text: str) -> int:
    seconds = int(text)
    if not LEAST <= seconds <= MOST:
        raise argparse.ArgumentTypeError(f"choose {LEAST} to {MOST} seconds")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
