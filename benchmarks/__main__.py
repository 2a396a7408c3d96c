"""Measure this scheduler beside its peers and the raw limit of Redis, in one run on one machine.

tox -e bench                     all of it, which takes some ten minutes
tox -e bench -- faults           what becomes of the messages when something fails
tox -e bench -- faults --quick   the same with fewer faults
tox -e bench -- burst            many crontabs due in the same minute
tox -e bench -- idle             what waiting costs
tox -e bench -- time             what it costs to know what is due; needs no Redis
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import burst
import idle
import instants
import passes
import peers

from celery_redlock_beat.testing.server import Server

PACKAGES = ("celery", "kombu", "redis", "celery-redbeat", "celery-redlock-beat")
PARTS = ("time", "burst", "idle", "faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer faults")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    chosen = given.parts or PARTS
    _print_versions()
    if set(chosen) != {"time"}:
        _print_server()
    if "time" in chosen:
        _print_passes()
        _print_instants()
    if "burst" in chosen:
        _print_burst()
    if "idle" in chosen:
        _print_idle()
    if "faults" in chosen:
        print("\nFaults\n")
        peers.report(quick=given.quick)


def _print_versions() -> None:
    print(", ".join(f"{each} {_version(each)}" for each in PACKAGES))
    print(f"Python {platform.python_version()}, {platform.machine()}")


def _print_server() -> None:
    with Server() as server, server.client() as client:
        info = client.info("server")
    name = info.get("server_name", "redis")
    print(name, info.get(f"{name}_version", info["redis_version"]))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _print_passes() -> None:
    print(f"\n{passes.ENTRIES} entries, seconds of CPU, without broker and Redis\n")
    print("| | | stock beat | redlock | to stock beat |\n|---|---|---|---|---|")
    compared = passes.stock(passes.DISTINCT)
    for load, stock in (
        (passes.THIRTY, passes.stock(passes.THIRTY)),
        (passes.DISTINCT, compared),
        (passes.HASHED, compared),  # which stock beat does not have
    ):
        ours = passes.ours(load)
        for what in ("start", "idle", "due"):
            one, other = getattr(stock, what), getattr(ours, what)
            print(f"| {load.name} | {what} | {one:.3f} | {other:.3f} | {other / one:.2f}× |")


def _print_instants() -> None:
    print("\nOne instant, microseconds of CPU\n")
    print("| | stock Celery | first | again |\n|---|---|---|---|")
    for each in instants.measure():
        stock = "" if each.stock is None else f"{each.stock:.1f}"
        print(f"| {each.name} | {stock} | {each.first:.1f} | {each.again:.2f} |")


def _print_burst() -> None:
    bursts = burst.measure()
    stock = bursts[0].rate
    print(f"\n{burst.ENTRIES} crontabs due in the same minute\n")
    print("| | sent | last after | per second | to stock beat |\n|---|---|---|---|---|")
    for each in bursts:
        ratio = f"{each.rate / stock:.1f}×"
        print(f"| {each.name} | {each.sent} | {each.seconds:.2f} s | {each.rate:.0f} | {ratio} |")


def _print_idle() -> None:
    print(f"\n{idle.ENTRIES} entries, nothing due\n")
    print("| | CPU | commands per second |\n|---|---|---|")
    for each in idle.measure():
        print(f"| {each.name} | {each.cpu_per_second:.1%} | {each.commands_per_second:.1f} |")


if __name__ == "__main__":
    main()
