"""What a proof of an own protocol costs, here against another checkout: ``python -m tests.benchmarks.proofs OTHER``.

A private gossip is run with and without its proof, under another noise each time, so that nothing is kept; the
difference is the proof. Both checkouts have a process each, and measure by turns, in processor time, with that of their
children. What is done once for a plug-in (its repeat in a fresh process) or once for a process is not in it.
"""

from __future__ import annotations

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
ROOMS = ("simulator", "agents", "protocols", "scenarios")
NAMES = ("gaussian", "laplace", "gaussian, in rounds")
MOST = 1.3
"""How many times as long a proof may take here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each protocol; 1 if a proof takes longer than it may."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.proofs", description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of another commit")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        both = [_measuring(checkout, Path(folder) / str(rank)) for rank, checkout in enumerate((given.other, HERE))]
        found: dict[str, list[list[float]]] = {name: [] for name in NAMES}
        for turn in range(given.turns + 1):
            for name in NAMES:
                taken = [_asked(process, name) for process in both]
                if turn:  # what is compiled, imported or kept once is not measured
                    found[name].append(taken)
        for process in both:
            process.communicate()
    print(f"| protocol | {given.other} | here | times |", "| --- | --- | --- | --- |", sep="\n")
    ratios = []
    for name, turns in found.items():
        other, here = (statistics.median(column) for column in zip(*turns, strict=True))
        ratios.append(statistics.median(now / before for before, now in turns))
        print(f"| {name} | {other:.2f} s | {here:.2f} s | {ratios[-1]:.2f} |")
    return int(max(ratios) > MOST)


def _measuring(checkout: Path, folder: Path) -> subprocess.Popen[str]:
    """A process that measures with the package of a checkout, and the protocols of this one."""
    environment = environment_of(checkout, folder)
    command = [sys.executable, "-c", "from tests.benchmarks.proofs import measure; measure()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=folder)


def environment_of(checkout: Path, folder: Path) -> dict[str, str]:
    """The environment in which the package is that of a checkout, by links in a new folder."""
    package = folder / "hushnet"
    package.mkdir(parents=True)
    for room in ROOMS:
        (package / room).symlink_to(checkout.resolve() / room)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(HERE)))}


def _asked(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measure() -> None:
    """Print the seconds that each proof takes whose name comes in."""
    from hushnet.simulator import run

    protocols = _protocols()
    for turn, text in enumerate(sys.stdin):
        mechanism, _, rounds = text.strip().partition(", ")
        privacy = {"mechanism": mechanism, "clip": 0.5, "multiplier": 3 + turn / 100, "updates": 6, "delta": 1e-5}
        scenario = {
            "schema": 1,
            "scenario": "proofs",
            "task": {"kind": "linear_classification", "agents": 20, "dimension": 4, "points": "ball"},
            "topology": {"kind": "random_regular", "degree": 4},
            "protocols": {"own": {"kind": "Own", "privacy": privacy}},
            "stop": {"time": 10.0},
            "record": {"every": 10.0, "metrics": ["epsilon"]},
        }
        seconds = []
        for contract in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                began = sum(os.times()[:4])
                run(scenario, protocols={"Own": protocols[bool(rounds)]}, out=folder, contract=contract)
                seconds.append(sum(os.times()[:4]) - began)
        print(seconds[0] - seconds[1], flush=True)


def _protocols() -> tuple[type, type]:
    """The gossip, woken by a clock and in rounds; its `start` is in the form that the checkout takes."""
    import numpy as np
    from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
    from hushnet.protocols.noise import GradientNoise
    from hushnet.protocols.privacy.budget import Privacy
    from hushnet.protocols.steps import Constants, average, local_gradient, perturbed

    class Parameters(ProtocolParameters):
        step_size: float = 0.1
        privacy: Privacy

    class Gossip(Protocol):
        def prepare(self) -> None:
            updates = self.parameters.privacy.updates
            shares = np.full(updates, 1 / updates)
            self.step_noise = GradientNoise(self.parameters.privacy, self.problem.task, weights=shares)

        def constants(self) -> Constants:
            return Constants(run={"limit": self.parameters.privacy.updates})

        def layout(self) -> Layout:
            p = self.problem.task.dimension
            return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

        if "out" in inspect.signature(Protocol.start).parameters:

            def start(self, view, out):
                out.send("model", view.state["model"], out.public("no data in it"))

        else:

            def start(self, me):
                me.send("model", me.model, me.public("no data in it"))

        @staticmethod
        def step(me):
            gradient = perturbed(me, local_gradient(me, me.model))
            if me.degree > 0:
                me.model = (me.model + average(me)) / 2
            me.model -= me.step_size * gradient
            me.message = me.model
            return me.updates + 1 >= me.limit

    Gossip.Parameters = Parameters
    rounds = type("Rounds", (Gossip,), {"traits": Traits(trigger="round", inbox="per_round")})
    return Gossip, rounds


if __name__ == "__main__":
    sys.exit(main())
