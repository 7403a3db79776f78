"""Stop condition of a run: it has come as far as it was to, nobody can ever step again, or a limit was passed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from ...agents.errors import LimitReached
from ..network.setting import Limits, Stop
from ..tables.tallies import ACTIVE, SHORT

TIME_UP = "the time was up"
"""Why a run ended that was to last so long."""


class StopCondition:
    """Watches over the limits of one run, by the counts of its tables, where rules count, too.

    The event ``stopped`` happens when the run is over; ``why`` says why, and is empty until then.
    """

    def __init__(self, env: simpy.Environment, stop: Stop, counts: NDArray[np.int64], agents: int) -> None:
        self.stop, self.counts, self.why = stop, counts, ""
        self.stopped = env.event()
        counts[[ACTIVE, SHORT]] = agents

    def end(self, why: str) -> None:
        """End the run, unless it is over already."""
        if not self.stopped.triggered:
            self.why = why
            self.stopped.succeed()

    def retire(self, updates: int) -> None:
        """Note that an agent with so many updates will never step again."""
        self.counts[ACTIVE] -= 1
        if self.stop.updates is not None and updates < self.stop.updates:
            self.counts[SHORT] -= 1
        self.check()

    def check(self) -> None:
        """End once everybody has made the updates asked for or, without a time to run to, can never step again."""
        if self.stop.updates is not None and self.counts[SHORT] == 0:
            self.end("every agent has made its updates")
        if self.stop.time is None and self.counts[ACTIVE] == 0:
            self.end("every agent has finished")

    def check_vectors(self, vectors: float) -> None:
        """End once the vectors asked for were sent."""
        if self.stop.vectors is not None and vectors >= self.stop.vectors:
            self.end("the vectors were sent")

    def check_activations(self, activations: int) -> None:
        """End once the activations asked for were made."""
        if self.stop.activations is not None and activations >= self.stop.activations:
            self.end("the activations were reached")

    def check_updates(self, updates: int) -> None:
        """Note that an agent has just made so many updates, and end if it was the last one asked for."""
        if self.stop.updates is not None and updates == self.stop.updates:
            self.counts[SHORT] -= 1
            self.check()


class Reactions:
    """Counts reactions to messages that say something, in total and at once: a chain of them may have no end."""

    def __init__(self, limits: Limits, ids: Sequence[int | str]) -> None:
        self.limits, self.ids = limits, ids
        self.most_at_once = min(limits.at_once, limits.at_once_each * len(ids))
        self.most = math.inf if limits.reactions is None else limits.reactions
        self.total = self.at_once = 0
        self._instant = -math.inf
        self._last: deque[tuple[int, str]] = deque(maxlen=100)

    def count(self, agent: int, kinds: Iterable[str], now: float) -> None:
        """Count a reaction in which an agent has sent messages of these kinds.

        Raises `LimitReached` if it was one too many; the sentence names agents, kinds and time.
        """
        if now > self._instant:
            self._instant, self.at_once = now, 0
        self.total += 1
        self.at_once += 1
        self._last.extend((agent, kind) for kind in kinds)
        if self.at_once > self.most_at_once:
            raise LimitReached(
                f"{self._who(now)} at one instant: without delays they may never end; give messages a delay "
                "(network.latency), or let receive send nothing in the end",
                limit="at_once",
                most=self.most_at_once,
            )
        if self.total > self.most:
            said = f"{self._who(now)}; let receive answer fewer messages"
            raise LimitReached(said, limit="reactions", most=self.most)

    def _who(self, now: float) -> str:
        """The last agents and kinds of messages, and how many reactions there were."""
        agents = sorted({agent for agent, _ in self._last})
        kinds = " and ".join(repr(kind) for kind in dict.fromkeys(kind for _, kind in self._last))
        names = ", ".join(repr(self.ids[agent]) for agent in agents[:5]) + (", ..." if len(agents) > 5 else "")
        count = self.at_once if self.at_once > self.most_at_once else self.total
        who = f"agent{'s' * (len(agents) > 1)} {names}"
        return f"{who} at time {now:.6g}: {count:,} reactions to messages that send {kinds}"
