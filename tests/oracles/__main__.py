"""Compare engines with the frozen one: ``python -m tests.oracles 500 --engine event``; see README.md."""

from __future__ import annotations

import argparse
import sys

from . import compare, logs, mutants, planted, product, steps
from .worlds import world


def main() -> int:
    """Do what the command line says; 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=__doc__)
    parser.add_argument("worlds", type=int, nargs="?", default=100, help="how many random worlds")
    parser.add_argument("--engine", choices=[product.EVENT, *steps.FORMS], default="event")
    parser.add_argument("--seed", type=int, default=compare.SEED, help="of the generator; the logs have 1")
    parser.add_argument("--case", type=int, help="one world, with the first row that differs")
    parser.add_argument("--show", action="store_true", help="print the description of --case, and do not run it")
    parser.add_argument("--planted", action="store_true", help="plant errors into the frozen engine; renews the table")
    parser.add_argument("--mutants", action="store_true", help="plant errors into a copy of the project's own rules")
    parser.add_argument("--again", action="store_true", help="with --mutants: also those that no world has shown")
    parser.add_argument("--jobs", type=int, default=2, help="with --mutants: processes at once")
    parser.add_argument("--write-logs", action="store_true", help="only before anything has changed")
    asked = parser.parse_args()
    if asked.planted:
        return planted.renew()
    if asked.mutants:
        return mutants.renew(jobs=asked.jobs, again=asked.again)
    if asked.write_logs:
        return logs.write()
    if asked.show:
        print(world(asked.seed, asked.case or 0))
        return 0
    return run(range(asked.worlds) if asked.case is None else [asked.case], asked.seed, asked.engine)


def run(cases: range | list[int], seed: int, engine: str) -> int:
    """Compare on some worlds, and print where an engine differs."""
    same = differing = 0
    for case in cases:
        found = compare.compare(world(seed, case), engine)
        same, differing = same + (not found), differing + bool(found)
        if found:
            print(f"case {case} (--seed {seed} --case {case}): {found}", flush=True)
    print(f"{same} of {same + differing} worlds equal on engine {engine}")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
