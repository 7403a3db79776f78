"""README's protocol on hushnet against a naive SimPy script of it: ``python -m tests.benchmarks.readme``."""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hushnet.protocols.base import Protocol
from hushnet.protocols.user_files import load_object
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.world.world import World
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, prepared
from .cases import LATENCY, LOSS, SEED, Case, make_setting
from .measure import Stopwatch, undisturbed
from .naive_readme import NaiveGossip
from .run import machine

CASES = {agents: Case(f"README, {agents}", agents=agents, dimension=20, degree=10) for agents in (100, 1_000)}
README = Path(__file__).resolve().parents[2] / "README.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.readme", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="the median of so many is given (5)")
    parser.add_argument("--updates", type=float, default=40.0, help="wake-ups an agent, on average (40)")
    options = parser.parse_args(arguments)
    print(machine())
    for agents, case in CASES.items():
        engine, mine, naive = measure(case, options.updates, options.repetitions)
        ratios = [slow / quick for quick, slow in zip(mine, naive, strict=True)]
        print(
            f"{agents:,} agents, degree 10, p=20, 10-100 rows: hushnet {statistics.median(mine):.1f} us an update "
            f"({engine}), script {statistics.median(naive):.0f} us, {statistics.median(ratios):.0f} times "
            f"({min(ratios):.0f}-{max(ratios):.0f})"
        )


def measure(case: Case, updates: float, repetitions: int) -> tuple[str, list[float], list[float]]:
    """The engine that ran the protocol, and microseconds an update of hushnet and of the script, by turns."""
    setting = make_setting(case, updates)
    engine, mine, naive = "", [], []
    with threadpool_limits(limits=1), protocol_of_readme() as protocol:
        run_hushnet(make_setting(case.toy, 2.0), protocol)  # compiles
        for _ in range(repetitions):
            with undisturbed():
                world, seconds = run_hushnet(setting, protocol)
            engine = world.engine
            mine.append(1e6 * seconds / world.activations)
            script = script_of(setting, step_size=0.1, mean_delay=LATENCY["mean"], loss=LOSS)
            with undisturbed():
                began = time.process_time()
                script.run(updates)
                naive.append(1e6 * (time.process_time() - began) / script.updates)
    return engine, mine, naive


@contextmanager
def protocol_of_readme() -> Iterator[type[Protocol]]:
    """The class that README shows, as its reader would have it: in a file of its own."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    (block,) = (block for block in blocks if "class Mine(Protocol)" in block)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.py"
        path.write_text(block)
        found: Any = load_object(f"{path}:Mine", trust_code=True)
        yield found


def run_hushnet(setting: Setting, protocol: type[Protocol]) -> tuple[World, float]:
    """A world that has run, and the processor time from when all agents had started."""
    watch = Stopwatch()
    world = World(setting, protocol, protocol.Parameters.model_validate({"kind": "mine"}), recorder=watch)
    drive(prepared(world, engine_for("auto", world)))
    return world, watch.ended - watch.began


def script_of(setting: Setting, **options: Any) -> NaiveGossip:
    """The script with a setting's data, graph and nothing else of it."""
    task, graph = setting.task, setting.graph
    shards = [task.train.shard(agent) for agent in range(task.agents)]
    neighbours = [graph.neighbours(agent) for agent in range(task.agents)]
    weights = [graph.weights[graph.edges_of(agent)] for agent in range(task.agents)]
    rows, labels = [shard.features for shard in shards], [shard.labels for shard in shards]
    return NaiveGossip(rows, labels, neighbours, weights, task.regularisation, seed=SEED, **options)


if __name__ == "__main__":
    main()
