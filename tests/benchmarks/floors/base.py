"""What all floors have in common: what they are told in place of clocks, and where they find their arrays."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hushnet.agents.compilation import compiled, part
from hushnet.agents.loss_codes import code_of
from hushnet.agents.streams import DRAWS, USED_UP, generator
from hushnet.simulator.world.world import World

from ..floor import FAST

loop: Any = compiled(fastmath=FAST, error_model="numpy")
inner: Any = part(fastmath=FAST, error_model="numpy")
"""Compiles a floor; sums may be reassociated, because the kernels of steps may do so too."""


@dataclass(frozen=True)
class Plan:
    """Who steps when, and with what luck.

    Parameters
    ----------
    agents : (k,) int64
        Who steps, one after the other; in rounds all agents by turns.
    edges : (k,) int64
        Of exchanges: the caller's directed edge.
    times : (k,) float64
        When.
    rows : (k, b) int64
        Which of its rows the agent draws; (k, 0) where it takes all.
    noise : (k, p) float64
        The noise of a protocol that has it in its updates, drawn beforehand; (k, 0) for none.
    itself : bool
        Whether the loop draws rows and noise of itself, from the streams of the run and with the draws that steps
        have; of those given it then takes no more than how many there are.
    """

    agents: np.ndarray
    edges: np.ndarray
    times: np.ndarray
    rows: np.ndarray
    noise: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    itself: bool = False

    @property
    def draws(self) -> bool:
        """Whether agents draw anything."""
        return self.rows.shape[1] > 0 or self.noise.shape[1] > 0


class Floor(ABC):
    """One protocol's loop.

    Parameters
    ----------
    world : World
        Whose agents have started, and which goes no further.

    Attributes
    ----------
    scales : (n,) float64
        Of the agents' noise, where updates have some without which they are not the protocol's; else (0,).
    """

    scales = np.empty(0)

    def __init__(self, world: World) -> None:
        task, graph = world.setting.task, world.setting.graph
        self.world, self.in_rounds, self.pairwise = world, world.in_rounds is not None, world.sessions is not None
        constants = world.protocol.constants()
        self.constants: dict[str, Any] = {**constants.run, **constants.agent, **constants.edge}
        self.parameters: Any = world.protocol.parameters
        self.graph = (graph.offsets, graph.heads)
        self.weights, self.reverse = graph.weights, graph.reverse
        train = task.train
        self.data = (np.ascontiguousarray(train.features, dtype=np.float64), train.labels, train.offsets)
        self.regularisation, self.loss = task.regularisation, code_of(task.loss)
        seed = world.setting.draws.seed
        self.streams = {purpose: generator(purpose) for purpose in ("sampling", "noise")}
        for stream in self.streams.values():
            stream.key[0] = seed
        self.numbers = np.asarray(world.numbers, dtype=np.int64)

    def block(self, name: str) -> np.ndarray:
        """A copy of a block of agents or of edges, a row for each."""
        state = self.world.state
        return (state.agent[name] if name in state.agent else state.edge[name]).rows.copy()

    def timed(self, plan: Plan) -> float:
        """Seconds of processor time that a plan takes."""
        began = time.process_time()
        self.run(plan)
        return time.process_time() - began

    @abstractmethod
    def run(self, plan: Plan) -> None:
        """Make a plan's updates, from where the last one ended."""

    @abstractmethod
    def models(self) -> np.ndarray:
        """(n, p) models."""


@part(**DRAWS)
def begin_stream(stream, tick, number):  # pragma: no cover - compiled
    """Go to the beginning of what an agent's step at a tick draws."""
    stream.counter[0], stream.counter[1], stream.counter[2], stream.counter[3] = 0, tick + 1, number, 0
    stream.state[:] = 0
    stream.state[0] = USED_UP


@part(**DRAWS)
def fill_spherical(stream, scale, out):  # pragma: no cover - compiled
    """Fill (p,) with noise of a uniform direction, whose norm is Gamma(p, scale)."""
    total = 0.0
    for k in range(len(out)):
        out[k] = stream.rng.normal(0.0, 1.0)
        total += out[k] * out[k]
    factor = stream.rng.gamma(np.float64(len(out)), scale) / math.sqrt(total)
    for k in range(len(out)):
        out[k] *= factor


def started(world: World) -> World:
    """A new world whose agents have started."""
    for agent in world.agents:
        world.start(agent)
    return world
