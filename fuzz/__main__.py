"""`python -m fuzz [TARGET…] --cases N --first CASE`: attack, print how many cases went how, exit 1 after a fault."""

from __future__ import annotations

import argparse
import sys
import time

from fuzz import Attack, targets

MOST_SHOWN = 20


def main() -> int:
    """Attack the targets named on the command line, or all of them."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=f"one of: {', '.join(known)}")
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    arguments = parser.parse_args()
    if unknown := set(arguments.target) - set(known):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    faults = 0
    for name in arguments.target or known:
        with known[name]() as attack:
            faults += _attacked(
                name, attack, range(arguments.first, arguments.first + arguments.cases)
            )
    return 1 if faults else 0


def _attacked(name: str, attack: Attack, cases: range) -> int:
    """Number of faults; each is printed with the command that repeats it."""
    faults, started, shown = 0, time.monotonic(), time.monotonic()
    for case in cases:
        if fault := attack(case):
            faults += 1
            if faults <= MOST_SHOWN:
                print(
                    f"{name}: {fault}\n  again: python -m fuzz {name} --first {case} --cases 1",
                    flush=True,
                )
        if sys.stderr.isatty() and time.monotonic() - shown > 1:
            shown = time.monotonic()
            print(
                f"\r{name}: {case - cases.start + 1:,} of {len(cases):,}", end="", file=sys.stderr
            )
    seconds = time.monotonic() - started
    print(f"\r{name}: {len(cases):,} cases, {faults} faults, {seconds:.0f} s", flush=True)
    return faults


if __name__ == "__main__":
    sys.exit(main())
