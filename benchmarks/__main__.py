"""Measure this scheduler beside its peers and the raw limit of Redis, in one run on one machine.

tox -e bench                     all of it, which takes some twenty minutes
tox -e bench -- faults           what becomes of the messages when something fails
tox -e bench -- faults --quick   the same with fewer faults
tox -e bench -- burst            many crontabs due in the same minute
tox -e bench -- idle             what waiting costs
tox -e bench -- stored           entries that are kept in Redis: to load, to wait with, to change
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
import stored
from stored import Cost

from celery_redlock_beat.testing.server import Server

PACKAGES = ("celery", "kombu", "redis", "celery-redbeat", "celery-redlock-beat")
PARTS = ("time", "burst", "idle", "stored", "faults")


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
    if "stored" in chosen:
        _print_stored()
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


def _print_stored() -> None:
    costs = list(stored.measure())
    empty = {each.name: each for each in costs if not each.entries}
    print("\nEntries that are kept in Redis: to store and to load them\n")
    print(
        "| | entries | stored per second | bytes in Redis, each | loaded after | of that for them ",
        end="",
    )
    print("| one HGETALL of them | the server was held at most | bytes in the node, each |")
    print("|---|---|---|---|---|---|---|---|---|")
    for each in costs:
        print(_row(each.name, f"{each.entries:,}", *_loading(each, empty[each.name])))
    print("\nTo wait with them, and to follow a change of one\n")
    print("| | entries | CPU | a pass | commands per second | bytes per second ", end="")
    print("| commands per change | bytes per change | new one sends after |")
    print("|---|---|---|---|---|---|---|---|---|")
    for each in costs:
        print(_row(each.name, f"{each.entries:,}", *_waiting(each)))


def _loading(cost: Cost, empty: Cost) -> list[str]:
    if not cost.entries:
        return ["", "", f"{cost.loaded:.2f} s", "", "", "", ""]
    for_them = cost.loaded - empty.loaded
    return [
        f"{cost.entries / cost.filled:,.0f}",
        f"{cost.kept:.0f}",
        f"{cost.loaded:.2f} s",
        f"{for_them:.2f} s",
        f"{cost.raw * 1000:.1f} ms, 1 : {for_them / cost.raw:.0f}" if cost.raw else "",
        f"{cost.held * 1000:.1f} ms",
        f"{(cost.resident - empty.resident) / cost.entries:.0f}",
    ]


def _waiting(cost: Cost) -> list[str]:
    return [
        f"{cost.cpu:.1%}",
        "" if cost.passing is None else f"{cost.passing * 1000:.2f} ms",
        f"{cost.idle.commands:.1f}",
        f"{cost.idle.bytes:.0f}",
        f"{cost.change.commands:.1f}",
        f"{cost.change.bytes:.0f}",
        f"{cost.latency:.2f} s",
    ]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
