"""Checks that a protocol does the same on both engines, whoever is in a batch with an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.availability import Always, OnOff
from ...agents.errors import HushnetError, LimitReached, StepFailure, Undeclared
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.steps.single_steps import PHASES, function_in, is_batched
from ..engine.driver import Driver
from ..engine.selection import BatchedEngine, Engine, EventEngine
from ..network.network import NetworkParameters
from ..network.setting import Limits, Setting
from ..world.watchdog import OF_THE_MACHINE
from ..world.world import World
from .bench import holds_columns, run_small, small_setting, split_setting
from .draws import difference
from .violation import ContractViolation

AGENTS = 24
"""So many that batches of 7 are cut out of wider ones."""
ALWAYS, AWAY = Always(kind="always"), OnOff(kind="on_off", online=0.5, mean_down=1.0)
WIDE: tuple[dict[str, Any], ...] = ({}, {"latency": {"kind": "exponential", "mean": 1.0}, "loss": 0.1})
"""Networks of so many agents, on which batches are cut in every way."""
SMALL: tuple[tuple[dict[str, Any], Any], ...] = (
    ({"latency": 3.0, "start": "own"}, ALWAYS),
    ({"latency": {"kind": "exponential", "mean": 2.0}, "start": "zero"}, ALWAYS),
    ({"latency": {"kind": "lognormal", "mean": 1.0, "sigma": 1.5}, "loss": 0.3}, AWAY),
)
"""Networks of few agents, with their availability."""
ADVICE = (
    "an agent's step must not depend on who else is in its batch: where it reduces over agents, give axis; where it is "
    "rounded otherwise, use the operators of hushnet.protocols.steps"
)


@final
class Cut(BatchedEngine):
    """The batched engine, whose batches have so many agents at most, in the opposite order if `turned`."""

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


def check_engines(protocol: type[Protocol], parameters: ProtocolParameters, *, seconds: float = Limits.seconds) -> None:
    """A step that is planned gives an agent the bits that it has one by one; one for many agents at once in any batch.

    A replay looks at steps that are made one by one, and a run makes planned ones. A network that a protocol refuses
    (see `hushnet.simulator.contract.networks.check_networks`) it refuses on both engines, in the same words.

    Raises `ContractViolation` if it does not, or does something else than the protocol declares of its steps, and
    `LimitReached` if a run takes more seconds of processor time than it may.
    """
    together = any(map(is_batched, functions_of(protocol)))
    small = split_setting if holds_columns(protocol, parameters) else small_setting

    def limited(**fields: Any) -> Setting:
        setting = small(**fields)
        return replace(setting, limits=replace(setting.limits, seconds=seconds))

    for given, cuts in _worlds(together=together):

        def run(engine: Engine) -> World:
            return run_small(protocol, parameters, engine=engine, small=limited, **given)  # noqa: B023

        reference = _ran(run, EventEngine())
        if isinstance(reference, Undeclared) or (together and isinstance(reference, StepFailure)):
            raise ContractViolation(f"with steps one by one: {reference}") from reference
        if isinstance(reference, HushnetError) and not isinstance(reference, LimitReached):
            continue  # other checks say so
        for cut in cuts:
            _compare(reference, _ran(run, cut), cut, given)


def _worlds(*, together: bool) -> Iterator[tuple[dict[str, Any], tuple[Cut, ...]]]:
    """Fields of small settings, and how batches are cut in each; agents alone with data and without any, too."""
    whole = Cut() if together else PLANNED
    for network in WIDE:
        given = {"network": NetworkParameters.model_validate(network), "availability": ALWAYS, "agents": AGENTS}
        yield given, CUTS if together else (whole,)
    for network, availability in SMALL:
        yield {"network": NetworkParameters.model_validate(network), "availability": availability}, (whole,)
    for empty in (False, True):
        yield {"agents": 1, "empty": empty}, (whole,)


def _ran(run: Callable[[Engine], World], engine: Engine) -> World | HushnetError:
    """A run, or the sentence with which it ends, unless that depends on the machine."""
    try:
        return run(engine)
    except LimitReached as limit:
        if limit.limit in OF_THE_MACHINE:
            raise
        return limit
    except HushnetError as error:
        return error


def _compare(reference: World | HushnetError, other: World | HushnetError, cut: Cut, given: dict[str, Any]) -> None:
    """Both are equal bit for bit, or end with the same sentence."""
    if isinstance(reference, HushnetError):
        if str(reference) != str(other):
            raise ContractViolation(f"the engines end differently under {given.get('network')!r}: {reference}")
        return
    if isinstance(other, HushnetError):
        raise ContractViolation(f"with steps {cut.text}, and not with steps one by one: {other}") from other
    planned = other.form is None or other.form.form != "one by one"
    for what in _differences(reference, other):
        how = cut.text if planned else "that are made again"
        advice = f"; {ADVICE}" if planned and cut is not PLANNED and cut.widest != 1 else ""
        raise ContractViolation(f"steps {how} differ from steps one by one in {what}{advice}")


def _differences(one: World, other: World) -> Iterator[str]:
    """Yield a description of each difference between two runs: counts, traffic, privacy costs, and final state."""
    yield from (what for what in ("ended", "activations", "traffic") if getattr(one, what) != getattr(other, what))
    for agent in range(one.setting.graph.agents):
        if one.ledger.histogram(agent) != other.ledger.histogram(agent):
            yield f"what agent {agent} is charged"
    for (what, before), (_, now) in zip(_seen(one), _seen(other), strict=True):
        if before.tobytes() != now.tobytes():
            yield f"{what}: {difference(before.reshape(-1), now.reshape(-1))}"


def _seen(world: World) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """All blocks, and what agents have heard last."""
    state, tails = world.state, world.setting.graph.tails.tolist()
    for name, block in state.agent.items():
        yield from ((f"{name} of agent {agent}", block[agent]) for agent in range(len(block)))
    for name, block in state.edge.items():
        yield from ((f"{name} of an edge of agent {agent}", block[edge]) for edge, agent in enumerate(tails))
    for kind, block in world.transport.inbox.values.items():
        yield from ((f"what agent {agent} has heard of {kind!r}", block[edge]) for edge, agent in enumerate(tails))
