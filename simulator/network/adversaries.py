"""Adversaries of a scenario: which agents are byzantine, and how they attack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.parameters import Id, Parameters, Size, given
from ...agents.tasks.task import Task
from ...protocols.attacks import Attack, AttackParameters
from .randomness import Draws

CHOICES = ("share", "agents", "highest_degree")


class AdversaryParameters(Parameters):
    """Byzantine agents, by exactly one of share, agents and highest_degree, and their attack; all others are honest."""

    model_config: ClassVar[ConfigDict] = ConfigDict(**given(*CHOICES, how="oneOf"))

    attack: AttackParameters = Field(examples=[{"kind": "sign_flip"}])
    """What byzantine agents send in place of honest messages."""
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of all agents, drawn at random with the data; rounded to a number of agents."""
    agents: list[Id] | None = Field(default=None, min_length=1)
    """Ids of the byzantine agents."""
    highest_degree: Size | None = None
    """Number of byzantine agents, those with the most neighbours; of equals those listed first."""

    @model_validator(mode="after")
    def _one_choice(self) -> AdversaryParameters:
        if sum(getattr(self, name) is not None for name in CHOICES) != 1:
            raise ValueError(f"give exactly one of {', '.join(CHOICES)}")
        return self

    def build(self, task: Task, graph: Graph, draws: Draws) -> Adversaries:
        """Byzantine agents of a task; a share is drawn from a stream of its own, one of the data's.

        Raises `InputError` if an agent is unknown, or if nobody or everybody would be byzantine.
        """
        n, byzantine = task.agents, np.zeros(task.agents, dtype=bool)
        if self.agents is not None:
            for name in self.agents:
                place = self._place(name, task)
                if byzantine[place]:
                    raise InputError(f"names {name!r} twice; name each agent once", field=("adversaries", "agents"))
                byzantine[place] = True
        elif self.highest_degree is not None:
            byzantine[np.argsort(-graph.degrees, kind="stable")[: self.highest_degree]] = True
        else:
            assert self.share is not None
            byzantine[draws.generator("adversaries").permutation(n)[: round(self.share * n)]] = True
        count, field = int(byzantine.sum()), next(name for name in CHOICES if getattr(self, name) is not None)
        if not 0 < count < n:
            raise InputError(
                f"makes {count} of {n} agents byzantine; admissible: 1 to {n - 1}", field=("adversaries", field)
            )
        return Adversaries(self.attack, byzantine)

    def _place(self, name: object, task: Task) -> int:
        places = {str(one): place for place, one in enumerate(task.ids)}
        if str(name) not in places:
            raise InputError(
                f"there is no agent {name!r}; agents are called {task.ids[0]} to {task.ids[-1]}",
                field=("adversaries", "agents"),
            )
        return places[str(name)]


@dataclass(frozen=True)
class Adversaries:
    """Byzantine agents of a run."""

    attack: Attack
    byzantine: NDArray[np.bool_]
    """(n,) bool."""

    def learned_from(self, task: Task) -> Task:
        """The task as agents learn from it: with the labels of byzantine agents flipped, where they attack so.

        A label y becomes -y, and of K > 2 classes K - 1 - y (Fang et al. 2020, section 5.1).
        """
        if not self.attack.flips_labels:
            return task
        table = task.train
        flipped = task.classes - 1 - table.labels if task.classes > 2 else -table.labels
        return replace(task, train=replace(table, labels=np.where(self.byzantine[table.owners], flipped, table.labels)))
