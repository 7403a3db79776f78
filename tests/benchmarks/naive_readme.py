"""README's protocol as a SimPy script: gossip averaging with local gradient steps, without hushnet.

A process per agent and one per message in flight, NumPy's random numbers, a dictionary as mailbox: what one would write
for an experiment of one's own. It has no traffic to count, no ledger, no absences and no other protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simpy


class NaiveGossip:
    """The script as a class, so that several worlds may run in a process.

    Parameters
    ----------
    rows, labels : sequences of (m, p) and (m,) arrays
        By agent.
    neighbours, weights : sequences of (d,) arrays
    regularisation : sequence of float
    step_size, mean_delay, loss : float
    seed : int
    wait : callable, optional
        ``wait(agent, tick, now)``: how long until an agent's next wake-up; by default exponential of mean 1.
    """

    def __init__(
        self,
        rows: list[np.ndarray],
        labels: list[np.ndarray],
        neighbours: list[np.ndarray],
        weights: list[np.ndarray],
        regularisation: np.ndarray,
        *,
        step_size: float,
        mean_delay: float,
        loss: float,
        seed: int,
        wait: Callable[[int, int, float], float] | None = None,
    ) -> None:
        self.env, self.rng = simpy.Environment(), np.random.default_rng(seed)
        self.rows, self.labels, self.regularisation = rows, labels, regularisation
        self.neighbours, self.weights = [one.tolist() for one in neighbours], weights
        self.step_size, self.mean_delay, self.loss = step_size, mean_delay, loss
        self.wait = wait or (lambda agent, tick, now: self.rng.exponential())
        p = rows[0].shape[1]
        self.models = [np.zeros(p) for _ in rows]
        self.mailboxes = [{j: (-1.0, np.zeros(p)) for j in known} for known in self.neighbours]
        self.updates = 0
        for agent in range(len(rows)):
            self.env.process(self.live(agent))

    def run(self, until: float) -> None:
        """Run until a time."""
        self.env.run(until=until)

    def live(self, agent: int) -> Any:
        """Wake, step and broadcast, again and again."""
        tick = 0
        while True:
            yield self.env.timeout(self.wait(agent, tick, self.env.now))
            tick += 1
            self.step(agent)
            model = self.models[agent].copy()
            for neighbour in self.neighbours[agent]:
                if self.rng.random() >= self.loss:
                    self.env.process(self.deliver(agent, neighbour, model, self.env.now))

    def deliver(self, sender: int, receiver: int, model: np.ndarray, sent: float) -> Any:
        """Carry a message; one that was overtaken is dropped."""
        yield self.env.timeout(self.rng.exponential(self.mean_delay) if self.mean_delay else 0.0)
        if sent > self.mailboxes[receiver][sender][0]:
            self.mailboxes[receiver][sender] = (sent, model)

    def step(self, agent: int) -> None:
        """Average with the neighbours, and step down the own gradient."""
        model, rows, labels = self.models[agent], self.rows[agent], self.labels[agent]
        slopes = -labels / (1.0 + np.exp(labels * (rows @ model)))
        gradient = slopes @ rows / len(labels) + 2.0 * self.regularisation[agent] * model
        heard = np.array([vector for _, vector in self.mailboxes[agent].values()])
        around = self.weights[agent] @ heard / self.weights[agent].sum()
        self.models[agent] = (model + around) / 2 - self.step_size * gradient
        self.updates += 1
