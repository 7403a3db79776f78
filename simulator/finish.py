"""When a run ends: at the first of its limits, or once nobody can ever step again."""

from __future__ import annotations

import simpy

from .setting import Stop

TIME_UP = "the time was up"
"""Why a run ended that was to last so long."""


class Finish:
    """Watches over the limits of one run.

    Parameters
    ----------
    env : simpy.Environment
    stop : Stop
    agents : int

    Attributes
    ----------
    stopped : simpy.Event
        Happens when the run is over.
    why : str
        Why it is over; empty until then.
    active : int
        Agents whose clock may still wake them.
    short : int
        Agents that may still make the updates asked for and have not made them yet.
    """

    def __init__(self, env: simpy.Environment, stop: Stop, agents: int) -> None:
        self.stop, self.why = stop, ""
        self.stopped = env.event()
        self.active = self.short = agents

    def end(self, why: str) -> None:
        """End the run, unless it is over already."""
        if not self.stopped.triggered:
            self.why = why
            self.stopped.succeed()

    def retire(self, updates: int) -> None:
        """Note that an agent with so many updates will never step again."""
        self.active -= 1
        if self.stop.updates is not None and updates < self.stop.updates:
            self.short -= 1
        self.check()

    def check(self) -> None:
        """End once everybody has made the updates asked for or, without a time to run to, can never step again."""
        if self.stop.updates is not None and self.short == 0:
            self.end("every agent has made its updates")
        if self.stop.time is None and self.active == 0:
            self.end("every agent has finished")

    def check_vectors(self, vectors: int) -> None:
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
            self.short -= 1
            self.check()
