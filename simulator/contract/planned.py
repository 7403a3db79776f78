"""Planned steps: they do what they do one by one, where that is looked at, whoever is in a batch with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.availability import Always
from ...agents.errors import HushnetError, LimitReached, StepFailure
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.steps.single_steps import PHASES, function_in, is_batched
from ..engine.driver import Driver
from ..engine.selection import BatchedEngine, Engine, EventEngine
from ..network.network import NetworkParameters
from ..network.setting import Limits, Setting
from ..world.world import World
from .bench import run_small
from .charges import books_of
from .draws import difference
from .small_settings import holds_columns, small_setting, split_setting
from .violation import ContractViolation

AGENTS = 24
"""So many that batches of 7 are cut out of wider ones."""
NETWORKS: tuple[dict[str, Any], ...] = ({}, {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.1})
ADVICE = (
    "an agent's step must not depend on who else is in its batch: where it reduces over agents, give axis; where it is "
    "rounded otherwise, use the operators of hushnet.protocols.steps"
)


@final
class Cut(BatchedEngine):
    """The batched engine, whose batches have so many agents at most.

    Parameters
    ----------
    widest : int, optional
    turned : bool
        Whether agents are in the opposite order.
    """

    def __init__(self, widest: int | None = None, *, turned: bool = False) -> None:
        super().__init__()
        self.widest, self.turned = widest, turned
        width = "" if widest is None else f" of {widest}"
        self.text = f"in batches{width}{' in another order of agents' if turned else ''}"

    @override
    def driver(self, world: World) -> Driver:
        driver: Any = super().driver(world)
        driver.planned.widest, driver.planned.turned = self.widest, self.turned
        return driver


CUTS = (Cut(1), Cut(2), Cut(7), Cut(), Cut(turned=True))
PLANNED = Cut()
PLANNED.text = "that are planned"


def functions_of(protocol: type[Protocol]) -> list[Callable[..., Any]]:
    """The step functions of a protocol."""
    functions = (function_in(protocol, name) for name in ("step", *PHASES))
    return [function for function in functions if function is not None]


def check_planned(protocol: type[Protocol], parameters: ProtocolParameters, *, seconds: float = Limits.seconds) -> None:
    """A step that is planned gives an agent the bits that it has one by one; one for many agents at once in any batch.

    A replay looks at steps that are made one by one, and a run makes planned ones.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : ProtocolParameters
    seconds : float
        Processor time of a run at most.

    Raises
    ------
    ContractViolation
        If it does not, or does something else than the protocol declares of its steps.
    LimitReached
        If a run takes longer than it may.
    """
    functions = functions_of(protocol)
    if not functions:
        return
    cuts = CUTS if any(map(is_batched, functions)) else (PLANNED,)
    small = split_setting if holds_columns(protocol, parameters) else small_setting

    def limited(**fields: Any) -> Setting:
        setting = small(**fields)
        return replace(setting, limits=replace(setting.limits, seconds=seconds))

    for network in NETWORKS:
        given = {"network": NetworkParameters.model_validate(network), "availability": Always(kind="always")}

        def run(engine: Engine) -> World:
            return run_small(protocol, parameters, engine=engine, small=limited, agents=AGENTS, **given)  # noqa: B023

        try:
            alone = run(EventEngine())
        except HushnetError as error:
            if cuts is CUTS and isinstance(error, StepFailure):
                raise ContractViolation(f"with steps one by one: {error}") from error
            continue  # other checks say so
        for cut in cuts:
            try:
                together = run(cut)
            except LimitReached:
                raise
            except HushnetError as error:
                raise ContractViolation(f"with steps {cut.text}, and not with steps one by one: {error}") from error
            if together.form is not None and together.form.form == "one by one":
                return  # they cannot be planned
            _compare(alone, together, cut)


def _compare(alone: World, together: World, cut: Cut) -> None:
    how = cut.text
    for agent in range(alone.setting.graph.agents):
        if books_of(alone, agent, exact=True) != books_of(together, agent, exact=True):
            raise ContractViolation(f"agent {agent} is charged otherwise for steps {how} than for steps one by one")
    if alone.traffic != together.traffic:
        raise ContractViolation(f"steps {how} send other messages than steps one by one")
    for (what, one), (_, other) in zip(_seen(alone), _seen(together), strict=True):
        if one.tobytes() != other.tobytes():
            apart = difference(one.reshape(-1), other.reshape(-1))
            advice = "" if cut is PLANNED or cut.widest == 1 else f"; {ADVICE}"
            raise ContractViolation(f"steps {how} differ from steps one by one in {what}: {apart}{advice}")


def _seen(world: World) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """All blocks, and what agents have heard last."""
    state, tails = world.state, world.setting.graph.tails.tolist()
    for name, block in state.agent.items():
        yield from ((f"{name} of agent {agent}", block[agent]) for agent in range(len(block)))
    for name, block in state.edge.items():
        yield from ((f"{name} of an edge of agent {agent}", block[edge]) for edge, agent in enumerate(tails))
    for kind, block in world.transport.inbox.values.items():
        yield from ((f"what agent {agent} has heard of {kind!r}", block[edge]) for edge, agent in enumerate(tails))
