"""The simulator that a person would write in an afternoon: a SimPy process per agent and one per message in flight.

It knows coordinate descent only. Its clocks, delays and losses are the engine's own draws, so that its models equal
the engine's bit for bit; beyond that it keeps no books: no traffic, no ledger, no inbox but a dictionary.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import simpy
from hushnet.simulator.network.network import Network
from hushnet.simulator.network.randomness import stable_ids
from hushnet.simulator.network.setting import Setting
from scipy.special import expit

from .cases import step_constants

Mailbox = dict[int, tuple[int, np.ndarray]]
"""Per neighbour, the newest tick and model that were heard."""


class NaiveWorld:
    """Coordinate descent under a setting whose agents are always there.

    Parameters
    ----------
    setting : Setting

    Attributes
    ----------
    models : (n, p) float64
    wake_ups, messages : int
        Steps, and messages sent over links.
    """

    def __init__(self, setting: Setting) -> None:
        task, graph = setting.task, setting.graph
        self.setting, self.env = setting, simpy.Environment()
        numbers = stable_ids(task.ids)
        self.clock = setting.clock.build(task.ids, numbers, setting.draws, setting.base)
        self.network = Network(setting.network, task.ids, numbers, setting.draws)
        self.alpha, self.mu_c = step_constants(task)
        self.models = np.zeros((task.agents, task.dimension))
        start = np.zeros(task.dimension)
        self.mailboxes: list[Mailbox] = [
            dict.fromkeys(graph.neighbours(i).tolist(), (-1, start)) for i in range(task.agents)
        ]
        self.wake_ups = self.messages = 0
        for i in range(task.agents):
            self.env.process(self._agent(i))

    def run(self) -> None:
        """Run until the setting's time is up."""
        self.env.run(until=self.setting.stop.time)

    def _agent(self, i: int) -> Generator[simpy.Event, None, None]:
        env, tick = self.env, 0
        while True:
            yield env.timeout(self.clock.next_time(i, tick, env.now) - env.now)
            self._step(i)
            self._broadcast(i, tick)
            tick += 1

    def _message(self, i: int, tick: int, vector: np.ndarray, mailbox: Mailbox, delay: float):
        yield self.env.timeout(delay)
        if tick > mailbox[i][0]:
            mailbox[i] = (tick, vector)

    def _step(self, i: int) -> None:
        task, graph = self.setting.task, self.setting.graph
        model, shard, weights = self.models[i], task.train.shard(i), graph.weights[graph.edges_of(i)]
        heard = np.array([vector for _, vector in self.mailboxes[i].values()])
        slopes = -shard.labels * expit(-shard.labels * (shard.features @ model))
        gradient = slopes @ shard.features / len(shard.labels) + (2.0 * task.regularisation[i]) * model
        around = weights @ heard / weights.sum()
        model[:] = (1 - self.alpha[i]) * model + self.alpha[i] * (around - self.mu_c[i] * gradient)
        self.wake_ups += 1

    def _broadcast(self, i: int, tick: int) -> None:
        receivers, vector = self.setting.graph.neighbours(i), self.models[i].copy()
        size = self.network.size(len(vector))
        delays, lost = self.network.delays_and_losses(i, receivers, tick, 0, self.env.now, size)
        self.messages += len(receivers)
        for receiver, delay, gone in zip(receivers.tolist(), delays.tolist(), lost.tolist(), strict=True):
            if not gone:
                self.env.process(self._message(i, tick, vector, self.mailboxes[receiver], delay))
