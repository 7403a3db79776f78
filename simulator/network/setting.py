"""Setting that the runs of one seed have in common, with their stop condition and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...agents.compilation import form_of
from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.tasks.task import Task
from .adversaries import Adversaries
from .graph_changes import FixedGraph, GraphChanges
from .network import NetworkParameters
from .randomness import Draws


@dataclass(frozen=True)
class Stop:
    """Stop condition of a run, which ends at the first limit that is reached."""

    time: float | None = None
    """Time in expected wake-ups of a rate-1 agent."""
    activations: int | None = None
    """Steps of all agents together."""
    vectors: int | None = None
    """Model-sized vectors sent by all agents together."""
    updates: int | None = None
    """Steps of every agent."""
    epochs: float | None = None
    """Passes over the training samples; the protocol states the length of one."""

    def counted(self, epoch: float | None) -> Stop:
        """Count epochs as updates of every agent, if so many are an epoch.

        Raises `InputError` if the protocol does not say how many are.
        """
        if self.epochs is None:
            return self
        if epoch is None:
            raise InputError("cannot end a protocol that does not say what an epoch is", field=("stop", "epochs"))
        updates = math.ceil(self.epochs * epoch)
        return replace(self, epochs=None, updates=updates if self.updates is None else min(updates, self.updates))


@dataclass(frozen=True)
class Limits:
    """Limits of what a run may do and take before it ends as ``limited``, with what was recorded until then.

    Reactions are steps made on the arrival of a message, and count only if they send something: without delays a
    chain of them may never end.
    """

    events: int = 10**9
    """Wake-ups, copies of messages and timers; see `hushnet.simulator.world.watchdog`."""
    seconds: float = 86_400.0
    """Processor time of the thread that makes the run, without its data and compiling; not the time on the wall. A step
    that goes on for long beyond it is interrupted where it runs Python."""
    memory: int | None = None
    """Bytes that the run's process holds, everything that is in it included; by default nine tenths of the memory of
    the machine, or of the container that it is in."""
    at_once: int = 10**6
    at_once_each: int = 1000
    """`at_once` and `at_once_each`: Reactions at one instant, of all agents together and of an agent on average;
    whichever comes first. The latter is also how often a clock may wake an agent at one instant."""
    reactions: int | None = None
    """Reactions of the whole run."""


@dataclass(frozen=True)
class Setting:
    """Everything that the runs of one seed have in common."""

    task: Task
    graph: Graph
    clock: Any
    network: NetworkParameters
    availability: Any
    """`clock`, `network` and `availability`: As in the scenario."""
    stop: Stop
    draws: Draws
    base: Path | None = None
    """Folder that file names in the scenario are relative to."""
    assumed_public: tuple[str, ...] = ()
    """Inputs computed from private data that the setting treats as public."""
    limits: Limits = Limits()
    adversaries: Adversaries | None = None
    """Byzantine agents; all are honest by default."""
    changes: GraphChanges | None = None
    """Of the graph over time; none by default."""
    compute: Any = None
    """Time that steps take, as in the scenario; none by default."""

    @property
    def changing(self) -> bool:
        """True if agents do not send over all edges of the graph at all their steps."""
        return self.changes is not None and not isinstance(self.changes, FixedGraph)

    @property
    def unfailing(self) -> bool:
        """True if no message is lost and no agent is ever down between joining and leaving."""
        return self.network.lossless and self.always_up

    @property
    def always_up(self) -> bool:
        """True if no agent is ever down between joining and leaving."""
        return bool(form_of(self.availability, "unfailing"))
