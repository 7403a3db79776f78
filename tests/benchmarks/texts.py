"""Steps compiled from texts beside those compiled by hand, and private ones beside plain ones: by turns in a process.

``python -m tests.benchmarks.texts``. The worlds are those of the matrix, without losses; steps by hand compute what
texts do (a test looks at the models).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hushnet.agents.blocks import State
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.base import Protocol, ProtocolParameters
from hushnet.protocols.kernel import Kernel, PairKernel
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World
from threadpoolctl import threadpool_limits

from ..engine.driving import drive, fast_world
from .cases import Gossip, GossipParameters, HandCoordinateDescent, HandGossip
from .hand import model_propagation_step
from .matrix.cases import DIMENSIONS, ENTRIES, Row
from .measure import Stopwatch, undisturbed
from .run import machine

UPDATES = 40


class HandModelPropagation(ModelPropagation):
    """Model propagation, compiled by hand."""

    def kernel(self, state: State) -> Kernel | PairKernel:
        """See `hand.model_propagation_step`."""
        task, graph = self.problem.task, self.problem.graph
        if self.parameters.gossip:
            return model_propagation_step.gossip_kernel(task, graph, state, self.mu_c, self.partner_law())
        return model_propagation_step.broadcast_kernel(task, graph, state, self.mu_c)


@dataclass(frozen=True)
class Pair:
    """Two forms of a step in one world.

    Parameters
    ----------
    name : str
    row : Row
        Whose world it is.
    mine, other : (type of Protocol, ProtocolParameters)
        What is measured, and what it is compared with.
    """

    name: str
    row: Row
    mine: tuple[type[Protocol], ProtocolParameters]
    other: tuple[type[Protocol], ProtocolParameters]


def pairs(dimension: int, *, toy: bool = False) -> Iterator[Pair]:
    """All pairs of a size."""
    kinds = {entry.kind: entry for entry in ENTRIES}
    descent, propagation = kinds["coordinate_descent"], kinds["model_propagation"]
    rows = {way: Row(descent, way, "plain", dimension, toy) for way in ("broadcast", "rounds")}
    for way, row in rows.items():
        mine = (descent.protocol, row.parameters())
        yield Pair(f"coordinate descent, {way}, text / hand", row, mine, (HandCoordinateDescent, row.parameters()))
    for way in ("broadcast", "exchange"):
        row = Row(propagation, way, "plain", dimension, toy)
        mine = (propagation.protocol, row.parameters())
        yield Pair(f"model propagation, {way}, text / hand", row, mine, (HandModelPropagation, row.parameters()))
    gossip = GossipParameters()
    yield Pair("gossip with gradients, text / hand", rows["broadcast"], (Gossip, gossip), (HandGossip, gossip))
    for way, row in rows.items():
        for noise in ("laplace", "gaussian", "gamma"):
            mine = (descent.protocol, Row(descent, way, noise, dimension, toy).parameters())
            plain = (descent.protocol, row.parameters())
            yield Pair(f"coordinate descent, {way}, {noise} / plain", row, mine, plain)


def compare(pair: Pair, repetitions: int, updates: int = UPDATES) -> tuple[list[float], list[float]]:
    """Microseconds a step of either form, by turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions + 1):
        for form, times in zip((pair.mine, pair.other), found, strict=True):
            with undisturbed():
                times.append(run_once(pair, form, updates)[1])
    return found[0][1:], found[1][1:]  # the first one compiles


def run_once(pair: Pair, form: tuple[type[Protocol], Any], updates: int) -> tuple[World, float]:
    """A world that has run, and microseconds a step."""
    watch = Stopwatch()
    setting = pair.row.setting("lossless", Stop(time=float(updates)))
    world = drive(fast_world(setting, *form, recorder=watch))
    assert world.engine == "batched (compiled step)", world.engine
    return world, 1e6 * (watch.ended - watch.began) / world.activations


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.texts", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7, help="the median of so many is given (7)")
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--pairs", default="", help="only those whose names have this in them")
    options = parser.parse_args(arguments)
    print(machine())
    with threadpool_limits(limits=1):
        for pair in (pair for p in options.dimensions for pair in pairs(p) if options.pairs in pair.name):
            mine, other = compare(pair, options.repetitions)
            ratios = [one / two for one, two in zip(mine, other, strict=True)]
            print(
                f"{pair.name}, p={pair.row.dimension}: {statistics.median(mine):.2f} and "
                f"{statistics.median(other):.2f} us, {statistics.median(ratios):.2f} times "
                f"({min(ratios):.2f}-{max(ratios):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
