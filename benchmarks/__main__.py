"""Measure this scheduler beside its peers and the raw limit of Redis, in one run on one machine.

tox -e bench                     all of it, which takes some ten minutes
tox -e bench -- faults           what becomes of the messages when something fails
tox -e bench -- faults --quick   the same with fewer faults
tox -e bench -- burst            many crontabs due in the same minute
tox -e bench -- idle             what waiting costs
"""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import burst
import idle
import peers

from celery_redlock_beat.testing.server import Server

PACKAGES = ("celery", "kombu", "redis", "celery-redbeat", "celery-redlock-beat")
PARTS = ("burst", "idle", "faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer faults")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    chosen = given.parts or PARTS
    _print_versions()
    if "burst" in chosen:
        _print_burst()
    if "idle" in chosen:
        _print_idle()
    if "faults" in chosen:
        print("\nFaults\n")
        peers.report(quick=given.quick)


def _print_versions() -> None:
    with Server() as server, server.client() as client:
        info = client.info("server")
    name = info.get("server_name", "redis")
    found = info.get(f"{name}_version", info["redis_version"])
    packages = [f"{each} {_version(each)}" for each in PACKAGES]
    print(f"{', '.join(packages)}, {name} {found}")
    print(f"Python {platform.python_version()}, {platform.machine()}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


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
