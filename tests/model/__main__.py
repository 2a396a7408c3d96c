# ruff: noqa: T201 - it prints, that is all
"""`python tests/model`: the rules, the worlds, and the shortest way to a broken law without a rule.

python tests/model                  explore all worlds with all rules
python tests/model --rules          list the rules, and where the loss of each is noticed
python tests/model --without RULE   show the shortest counterexample without that rule
python tests/model --large          explore the larger worlds
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from model.bounds import Bounds, World
from model.explore import Found, explore, shortest
from model.rules import TEXTS, Rules
from model.telling import told
from model.worlds import LARGE, NOTICED, WORLDS, world_of


def main() -> int:
    """Do what the command line asks; return 1 where a law is broken with all rules on."""
    parser = argparse.ArgumentParser(prog="python tests/model", description="Explore the model.")
    parser.add_argument("--rules", action="store_true", help="list the rules")
    parser.add_argument("--without", metavar="RULE", choices=sorted(TEXTS), help="remove one rule")
    parser.add_argument("--large", action="store_true", help="explore the larger worlds")
    asked = parser.parse_args()
    if asked.without:
        show(world_of(NOTICED[asked.without]), Rules().without(asked.without), shortest)
        return 0
    if asked.rules:
        for rule, text in TEXTS.items():
            print(f"{rule:24} {text}\n{'':24} noticed in: {' / '.join(NOTICED[rule])}")
        return 0
    found = [show(bounds, Rules(), explore) for bounds in (LARGE if asked.large else WORLDS)]
    print(f"{sum(each.states for each in found):,} states")
    return int(any(each.law for each in found))


def show(bounds: Bounds, rules: Rules, look: Callable[[World], Found]) -> Found:
    """Explore one world, and print what was found."""
    began = time.monotonic()
    found = look(World(bounds, rules))
    seconds = time.monotonic() - began
    print(
        f"{bounds.name} / {bounds.delivery}: {found.states:,} states, {seconds:.1f} s", flush=True
    )
    if found.law:
        print(told(found))
    return found


if __name__ == "__main__":
    sys.exit(main())
