"""Observers of a scenario: against whom epsilon is computed, and what they hear."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from ...agents.parameters import Id, Parameters, given

EVERYONE, EAVESDROPPER, NEIGHBOURS, AGENTS = "everyone", "eavesdropper", "neighbours", "agents"


class ObservingParty(Parameters):
    """One observer: an agent, agents that share what they hear, or an eavesdropper on a link."""

    model_config: ClassVar[ConfigDict] = ConfigDict(**given("agent", "coalition", "share", "link", how="oneOf"))

    agent: Id | None = None
    """Name of an agent."""
    coalition: list[Id] | None = Field(default=None, min_length=1)
    """Names of agents that tell each other all that they hear and draw."""
    share: float | None = Field(default=None, gt=0, lt=1)
    """Share of all agents that do so, drawn at random by the run's seed; at least one."""
    link: list[Id] | None = Field(default=None, min_length=2, max_length=2)
    """Names of two neighbours whose messages to each other are overheard."""

    @model_validator(mode="after")
    def _one_kind(self) -> ObservingParty:
        if sum(one is not None for one in (self.agent, self.coalition, self.share, self.link)) != 1:
            raise ValueError("give exactly one of agent, coalition, share, link")
        if self.link is not None and self.link[0] == self.link[1]:
            raise ValueError(f"link names agent {self.link[0]!r} twice; it has two ends")
        return self


Group = Literal["everyone", "eavesdropper", "neighbours", "agents"]
Against = Annotated[list[Group | ObservingParty], Field(min_length=1)]


class ObserverParameters(Parameters):
    """Observers against whom an agent's epsilon is computed, on what the network delivered."""

    against: Against = Field(default=[EVERYONE])
    """``everyone`` on the wire, who may know all seeds of agents; an ``eavesdropper`` on all links, who knows no seed;
    all ``neighbours`` of an agent together; all other ``agents``, each by itself; or ``{agent: name}``,
    ``{coalition: [names]}``, ``{share: 0.1}``, ``{link: [name, name]}``."""
    heard: Literal["delivered", "sent"] = "delivered"
    """What observers hear: messages that arrived while their receiver was up, or whatever was sent to them or over
    their link, also what was lost."""
    record: bool = False
    """Whether the run keeps the tables ``releases`` and ``copies``: every release, and every copy of a message with the
    steps that sent and read it."""


def _in_full(observers: Any) -> Any:
    """A list stands for observers with the defaults."""
    return {"against": observers} if isinstance(observers, list) else observers


Observers = Annotated[
    ObserverParameters, BeforeValidator(_in_full, json_schema_input_type=ObserverParameters | Against)
]
