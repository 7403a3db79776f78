"""What a world takes for every agent, beyond data and graph, and what that is: ``python -m tests.benchmarks.memory``.

Coordinate descent, p = 20, degree 10, compiled. Each size is looked at in processes of its own: how far the resident
memory grows, and who has allocated what (`tracemalloc`, which also counts pages that nobody has touched).
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from hushnet.simulator.world.world import World

from ..engine.driving import drive, fast_world
from .cases import CASES, Case, make_setting, protocol_of

UPDATES = 4.0
SIZES = (20_000, 100_000)
HERE = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memory", description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=SIZES, help="how many; 20,000 and 100,000")
    parser.add_argument("--only", choices=["resident", "allocated"], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only:
        (agents,) = options.agents
        print(json.dumps(resident(agents) if options.only == "resident" else allocated(agents)))
        return
    print(f"{'bytes per agent':<44}" + "".join(f"{agents:>12,}" for agents in options.agents))
    for what in ("resident", "allocated"):
        found = [_apart(what, agents) for agents in options.agents]
        for name in sorted(found[0], key=lambda name: -found[0][name]):
            print(f"{name:<44}" + "".join(f"{one.get(name, 0.0):12,.0f}" for one in found))
        print()


def resident(agents: int) -> dict[str, float]:
    """Bytes per agent by which the process grows, for data and graph and for the world once it has run."""
    _run(case_of(agents).toy)
    own = psutil.Process()
    before = own.memory_info().rss
    setting = make_setting(case_of(agents), UPDATES)
    gc.collect()
    given = own.memory_info().rss
    world = _world(setting)
    drive(world)
    after = own.memory_info().rss
    return {"resident: data and graph": (given - before) / agents, "resident: the world": (after - given) / agents}


def allocated(agents: int) -> dict[str, float]:
    """Bytes per agent that a world holds after its run, by the file that has allocated them; small ones together."""
    _run(case_of(agents).toy)
    setting = make_setting(case_of(agents), UPDATES)
    tracemalloc.start()
    world = _world(setting)
    drive(world)
    gc.collect()
    found: Counter[str] = Counter()
    for one in tracemalloc.take_snapshot().statistics("filename"):
        file = Path(one.traceback[0].filename)
        own = file.is_relative_to(HERE) and ".venv" not in file.parts
        found[f"allocated: {file.relative_to(HERE).as_posix()}" if own else "allocated: libraries"] += one.size
    tracemalloc.stop()
    large = {name: size / agents for name, size in found.items() if size >= 50 * agents}
    return {**large, "allocated: everything else": sum(found.values()) / agents - sum(large.values())}


def case_of(agents: int) -> Case:
    """The world of so many agents."""
    return replace(CASES["100k"], agents=agents, degree=10)


def _world(setting: Any) -> World:
    return fast_world(setting, *protocol_of("broadcast"))


def _run(case: Case) -> None:
    drive(_world(make_setting(case, UPDATES)))


def _apart(what: str, agents: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.memory", "--only", what, "--agents", str(agents)]
    return json.loads(subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
