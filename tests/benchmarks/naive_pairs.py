"""Learning by gossip in pairs as a SimPy script, without hushnet: what one would write in an afternoon."""

from __future__ import annotations

from typing import Any

import numpy as np
import simpy


class NaivePairs:
    """The script as a class, so that several worlds may run in a process.

    Parameters
    ----------
    rows, labels : sequences of (m, p) and (m,) arrays
        By agent.
    neighbours : sequence of sequences of int
    step_size, decay, mean_delay, loss : float
        ``decay`` is what the gradient has of the model.
    seed : int
    """

    def __init__(
        self,
        rows: list[np.ndarray],
        labels: list[np.ndarray],
        neighbours: list[list[int]],
        *,
        step_size: float,
        decay: float,
        mean_delay: float,
        loss: float,
        seed: int,
    ) -> None:
        self.env, self.rng = simpy.Environment(), np.random.default_rng(seed)
        self.rows, self.labels, self.neighbours = rows, labels, neighbours
        self.step_size, self.decay, self.mean_delay, self.loss = step_size, decay, mean_delay, loss
        self.models = [np.zeros(one.shape[1]) for one in rows]
        self.updates = 0
        for agent in range(len(rows)):
            self.env.process(self.live(agent))

    def run(self, until: float) -> None:
        """Run until a time."""
        self.env.run(until=until)

    def live(self, agent: int) -> Any:
        """Wake and call a neighbour, again and again."""
        while True:
            yield self.env.timeout(self.rng.exponential())
            called = self.neighbours[agent][self.rng.integers(len(self.neighbours[agent]))]
            self.env.process(self.call(agent, called, self.models[agent].copy()))

    def call(self, caller: int, called: int, model: np.ndarray) -> Any:
        """Carry a model there and another one back, unless either is lost."""
        for receiver in (called, caller):
            if self.rng.random() < self.loss:
                return
            yield self.env.timeout(self.rng.exponential(self.mean_delay))
            reply = self.models[receiver].copy()
            self.learn(receiver, model)
            model = reply

    def learn(self, agent: int, heard: np.ndarray) -> None:
        """Average with a model that was heard, and step down the own gradient."""
        model, rows, labels = (self.models[agent] + heard) / 2, self.rows[agent], self.labels[agent]
        slopes = -labels / (1.0 + np.exp(labels * (rows @ model)))
        self.models[agent] = model - self.step_size * (slopes @ rows / len(labels) + self.decay * model)
        self.updates += 1
