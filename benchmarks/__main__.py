"""Measure this scheduler beside stock beat and the raw limit of Redis, in one run on one machine.

tox -e bench
"""

from __future__ import annotations

import platform

import burst
import idle
from celery import __version__ as celery_version


def main() -> None:
    print(f"Celery {celery_version}, Python {platform.python_version()}, {platform.machine()}\n")
    bursts = burst.measure()
    stock = bursts[0].rate
    print(f"{burst.ENTRIES} crontabs due in the same minute\n")
    print("| | sent | last after | per second | to stock beat |\n|---|---|---|---|---|")
    for each in bursts:
        ratio = f"{each.rate / stock:.1f}×"
        print(f"| {each.name} | {each.sent} | {each.seconds:.2f} s | {each.rate:.0f} | {ratio} |")
    print(f"\n{idle.ENTRIES} entries, nothing due\n")
    print("| | CPU | commands per second |\n|---|---|---|")
    for each in idle.measure():
        print(f"| {each.name} | {each.cpu_per_second:.1%} | {each.commands_per_second:.1f} |")


if __name__ == "__main__":
    main()
