"""Gossip in pairs on hushnet, in a SimPy script and on gossipy, by turns: ``python -m tests.benchmarks.peers``.

Gossipy (PyPI: gossipy-dfl) is installed into an environment of its own, `FOLDER`, by the command; it needs torch. Every
exchange makes two updates: both ends average the two models and take a step down the gradient over all their rows.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hushnet.agents.tables import Table
from hushnet.simulator.engine.selection import engine_for
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.world.world import World
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, prepared
from .cases import LATENCY, LOSS, SEED, STEP_SIZE, Case, Gossip, GossipParameters, make_setting
from .measure import Stopwatch, undisturbed
from .naive_pairs import NaivePairs
from .run import machine

FOLDER = Path(tempfile.gettempdir()) / "hushnet-peers"
REQUIREMENTS = ("torch>=2,<2.14", "gossipy-dfl==0.0.1")
SCRIPT = Path(__file__).with_name("peers_gossipy.py")
LENGTH = 5.0
"""Factor of the rows, so that steps of `STEP_SIZE` learn within a few updates, whatever gossipy's models start from."""
REGULARISATION = 0.01
"""Of every agent: gossipy has one for all."""
CASES = {
    agents: Case(f"peers, {agents}", agents=agents, dimension=20, degree=10, family="gossip") for agents in (100, 1_000)
}


@dataclass(frozen=True)
class Outcome:
    """One run of one of them.

    Parameters
    ----------
    seconds : float
        Of processor time in the simulation's loop, all agents having started.
    updates : int
    loss, accuracy : float
        Of the agents' models on all agents' rows, averaged.
    """

    seconds: float
    updates: int
    loss: float
    accuracy: float

    @property
    def microseconds(self) -> float:
        """An update."""
        return 1e6 * self.seconds / self.updates


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, install, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="the median of so many is given (3)")
    parser.add_argument("--updates", type=int, default=20, help="wake-ups an agent, on average (20)")
    parser.add_argument("--agents", type=int, nargs="+", choices=CASES, default=list(CASES), help="only these worlds")
    options = parser.parse_args(arguments)
    why = install()
    print(machine() + (f"; gossipy does not install: {why}" if why else ""))
    print("| agents | simulator | us an update | times hushnet (min-max) | updates | mean loss | accuracy |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for case in (CASES[agents] for agents in options.agents):
        for line in lines(case, measure(case, options.updates, options.repetitions)):
            print(line, flush=True)


def lines(case: Case, measured: dict[str, list[Outcome]]) -> list[str]:
    """Rows of the table for one world."""
    found = []
    for name, outcomes in measured.items():
        ratios = [
            other.microseconds / own.microseconds for own, other in zip(measured["hushnet"], outcomes, strict=True)
        ]
        middle = {
            what: statistics.median(getattr(outcome, what) for outcome in outcomes)
            for what in ("microseconds", "updates", "loss", "accuracy")
        }
        found.append(
            f"| {case.agents:,} | {name} | {middle['microseconds']:.3g} | {statistics.median(ratios):.3g} "
            f"({min(ratios):.3g}-{max(ratios):.3g}) | {middle['updates']:,.0f} | {middle['loss']:.3f} | "
            f"{middle['accuracy']:.3f} |"
        )
    return found


def measure(case: Case, updates: int, repetitions: int) -> dict[str, list[Outcome]]:
    """All runs by simulator, in alternation; gossipy's only if it is installed."""
    simulators = {"hushnet": run_hushnet, "SimPy script": run_script}
    if installed():
        simulators["gossipy"] = run_gossipy
    found: dict[str, list[Outcome]] = {name: [] for name in simulators}
    with threadpool_limits(limits=1):
        run_hushnet(setting_of(case.toy, 2), 2)  # compiles
        setting = setting_of(case, updates)
        for _ in range(repetitions):
            for name, run in simulators.items():
                found[name].append(run(setting, updates))
    return found


def setting_of(case: Case, updates: int) -> Setting:
    """The world of a case, with longer rows, and in which all agents are regularised alike."""
    setting = make_setting(case, float(updates))
    task, train = setting.task, setting.task.train
    longer = Table(LENGTH * train.features, train.labels, train.offsets)
    alike = np.full(len(task.ids), REGULARISATION)
    task = replace(task, train=longer, regularisation=alike, bounds={"l2": LENGTH * task.bounds["l2"]})
    return replace(setting, task=task)


def run_hushnet(setting: Setting, updates: int) -> Outcome:
    """The exchange of `cases.Gossip` on the engine that is chosen for it."""
    watch = Stopwatch()
    world = World(setting, Gossip, GossipParameters(), recorder=watch)
    with undisturbed():
        drive(prepared(world, engine_for("auto", world)))
    return _outcome(setting, watch.ended - watch.began, 2 * world.activations, world.state.agent["model"].rows)


def run_script(setting: Setting, updates: int) -> Outcome:
    """The script, with a setting's data and graph and nothing else of it."""
    task, graph = setting.task, setting.graph
    shards = [task.train.shard(agent) for agent in range(task.agents)]
    script = NaivePairs(
        [shard.features for shard in shards],
        [shard.labels for shard in shards],
        [graph.neighbours(agent).tolist() for agent in range(task.agents)],
        step_size=STEP_SIZE,
        decay=2 * REGULARISATION,
        mean_delay=LATENCY["mean"],
        loss=LOSS,
        seed=SEED,
    )
    with undisturbed():
        began = time.process_time()
        script.run(float(updates))
        seconds = time.process_time() - began
    return _outcome(setting, seconds, script.updates, np.array(script.models))


def run_gossipy(setting: Setting, updates: int) -> Outcome:
    """Gossipy, in a process of the environment that has it."""
    task, graph = setting.task, setting.graph
    adjacency = np.zeros((task.agents, task.agents), dtype=np.int64)
    adjacency[graph.tails, graph.heads] = 1
    with tempfile.TemporaryDirectory() as folder:
        world, result = Path(folder) / "world.npz", Path(folder) / "result.npz"
        np.savez(
            world,
            features=task.train.features,
            labels=task.train.labels,
            offsets=task.train.offsets,
            adjacency=adjacency,
            step_size=STEP_SIZE,
            decay=2 * REGULARISATION,
            delay=LATENCY["mean"],
            loss=LOSS,
        )
        command = [python(), SCRIPT, world, result, updates, SEED]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        with np.load(result) as found:
            return _outcome(setting, float(found["seconds"]), int(found["updates"]), found["models"], found["shifts"])


def _outcome(
    setting: Setting, seconds: float, updates: int, models: np.ndarray, shifts: np.ndarray | float = 0.0
) -> Outcome:
    """With the quality of (n, p) models and what they add to scores."""
    train = setting.task.train
    margins = train.labels[:, None] * (train.features @ models.T + shifts)
    return Outcome(seconds, updates, float(np.logaddexp(0.0, -margins).mean()), float((margins > 0).mean()))


def python() -> Path:
    """The interpreter of gossipy's environment."""
    return FOLDER / "gossipy" / "bin" / "python"


def installed() -> bool:
    """Whether there is one, with gossipy."""
    return (
        python().exists()
        and not subprocess.run([python(), "-m", "pip", "show", "-q", "gossipy-dfl"], check=False).returncode
    )


def install() -> str:
    """Install gossipy, unless it is there; empty, or what pip said last."""
    if installed():
        return ""
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER / "gossipy")], check=True)
    ran = subprocess.run(
        [str(python()), "-m", "pip", "install", *REQUIREMENTS], check=False, capture_output=True, text=True
    )
    return "" if not ran.returncode else ran.stderr.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
