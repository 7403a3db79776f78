"""Small worlds in which planted mistakes show, and what can be seen of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hushnet.agents.availability import Always
from hushnet.agents.errors import HushnetError
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.local_dp import LocalDP
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.protocols.base import Protocol
from hushnet.simulator.audit.worlds import Subject
from hushnet.simulator.contract.bench import protocol_parameters, small_setting, split_setting
from hushnet.simulator.engine.selection import Name, engine_for, run_exactly
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.world.step_form import Rewind
from hushnet.simulator.world.world import World

from .declarations import Form

DELTA = 1e-5


@dataclass(frozen=True)
class Case:
    """A protocol with parameters, in the small world that the contract uses.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : mapping
    split : bool
        Whether parties hold columns, around a centre.
    network : mapping
    """

    protocol: type[Protocol]
    parameters: Mapping[str, Any]
    split: bool = False
    network: Mapping[str, Any] = field(default_factory=dict)


LAPLACE = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 4, "clip": 0.2}
GAUSSIAN = {"mechanism": "gaussian", "target": {"verified": 4.0, "delta": DELTA}, "updates": 4, "clip": 0.2}
PRINTED = {**GAUSSIAN, "target": None, "budget": {"epsilon": 2.0, "delta": DELTA}}
GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 5, "clip": 0.2}
CLAIMED = {"mechanism": "laplace", "multiplier": 3.0, "updates": 4, "sensitivity": "claimed", "lipschitz": 0.3}
ONCE = {
    "mechanism": "gamma",
    "budget": {"epsilon": 2.0, "delta": 0.0, "by": "basic_composition"},
    "updates": 1,
    "clip": 0.5,
}
START = {"kind": "private_propagation", "epsilon": 0.5}
SCORES = {"mechanism": "gaussian", "multiplier": 3.0, "sensitivity": "clip", "clip": 0.5}

CASES: dict[str, Case] = {
    "descent": Case(CoordinateDescent, {"mu": 0.5, "privacy": LAPLACE}),
    "descent-loose": Case(CoordinateDescent, {"mu": 0.5, "privacy": {**LAPLACE, "clip": 2.0}}),
    "descent-spectral": Case(CoordinateDescent, {"mu": 0.5, "smoothness": "data", "privacy": LAPLACE}),
    "descent-gaussian": Case(CoordinateDescent, {"mu": 0.5, "privacy": GAUSSIAN}),
    "descent-printed": Case(CoordinateDescent, {"mu": 0.5, "privacy": PRINTED}),
    "descent-claimed": Case(CoordinateDescent, {"mu": 0.5, "privacy": CLAIMED, "radius": 0.5}),
    "descent-warm": Case(CoordinateDescent, {"mu": 0.5, "privacy": LAPLACE, "start": START}),
    "descent-plain": Case(CoordinateDescent, {"mu": 0.5, "updates": 4}),
    "averaging": Case(DualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}),
    "averaging-single": Case(DualAveraging, {"privacy": GIVEN, "batch": 1, "gamma": 1.0}),
    "averaging-poisson": Case(DualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0, "sampling": "poisson"}),
    "averaging-full": Case(DualAveraging, {"privacy": GIVEN, "sampling": "full", "gamma": 1.0}),
    "push-sum": Case(PushSumDualAveraging, {"privacy": GIVEN, "batch": 2, "gamma": 1.0}),
    "propagation": Case(ModelPropagation, {"alpha": 0.5, "privacy": ONCE}),
    "propagation-laplace": Case(ModelPropagation, {"alpha": 0.5, "privacy": {**ONCE, "mechanism": "laplace"}}),
    "propagation-async": Case(ModelPropagation, {"alpha": 0.5, "privacy": ONCE, "schedule": "async"}),
    "propagation-central": Case(ModelPropagation, {"alpha": 0.5, "privacy": ONCE, "closed_form": True}),
    "penalty": Case(PerturbedAdmm, {"noise": {"alpha": 3.0, "updates": 5}}),
    "consensus": Case(ConsensusAdmm, {}),
    "rows": Case(LocalDP, {"privacy": {**ONCE, "mechanism": "laplace"}}),
    "sharing": Case(FeatureSharing, {"rho": 1.0, "privacy": SCORES}, split=True),
    "sharing-stale": Case(StaleFeatureSharing, {"rho": 1.0, "privacy": SCORES}, split=True),
}


def under(name: str, mechanism: str) -> str | None:
    """The name of a case with other noise, which is entered into `CASES`; None where it has that noise or takes none.

    Parameters
    ----------
    name : str
    mechanism : str
        Of a registered mechanism with noise.
    """
    case, other = CASES[name], f"{name}-with-{mechanism}"
    privacy = dict(case.parameters.get("privacy", {}))
    if privacy.get("mechanism", mechanism) == mechanism:
        return None
    if other not in CASES:
        CASES[other] = replace(case, parameters={**case.parameters, "privacy": {**privacy, "mechanism": mechanism}})
        if len(seen(CASES[other])) == 1:  # the sentence by which the protocol refuses it
            del CASES[other]
            return None
    return other


class Notes:
    """An observer that writes down every message on every link."""

    def __init__(self) -> None:
        self.messages: list[tuple[Any, ...]] = []

    def woke(self, world: World, agent: Any) -> None:
        spent = world.ledger.epsilon("claimed", DELTA).tolist()
        self.messages.append(("woke", agent.index, world.now, *spent))

    def sent(self, world: World, message: Any, delay: float, lost: bool) -> None:
        seen = (message.sender, message.receiver, message.kind, message.vector.tobytes(), message.sent_at)
        self.messages.append((*seen, delay, lost))

    def arrived(self, world: World, message: Any, up: bool, newest: bool) -> None:
        pass


def setting_of(case: Case) -> Setting:
    """The small world of a case."""
    network = NetworkParameters.model_validate(dict(case.network))
    small = split_setting if case.split else partial(small_setting, empty=False)
    return small(network=network, availability=Always(kind="always"), time=12.0)


UPDATES = 30
"""Of every agent in an audited world: noise enough to be looked at."""


ENGINES: dict[Form, Name] = {"one by one": "event", "planned": "batched"}
"""What runs steps in each form; those that are watched are made one by one on either."""


def subject_of(name: str, form: Form = "one by one") -> Subject:
    """A case as an audit takes it, with more updates."""
    case, fields = CASES[name], dict(CASES[name].parameters)
    for key in ("privacy", "noise"):
        if fields.get(key, {}).get("updates", 1) > 1:
            fields[key] = {**fields[key], "updates": UPDATES}
    setting = replace(setting_of(case), stop=Stop(time=2.0 * UPDATES))
    return Subject(name, name, setting, case.protocol, protocol_parameters(case.protocol, fields), DELTA, ENGINES[form])


def seen(case: Case, form: Form = "one by one") -> tuple[Any, ...]:
    """Everything that a run of a case leaves behind: messages, states, charges, verified epsilons; or its error.

    Planned steps are made once more without anybody who sees messages, for then they are made in batches.
    """
    notes = Notes()
    try:
        world = _ran(case, form, notes)
        left = (*notes.messages, *_left(world))
        return left if form == "one by one" else (*left, *_left(_ran(case, form, None)))
    except (HushnetError, ValueError, AssertionError) as error:
        return (str(error),)


def _ran(case: Case, form: Form, notes: Notes | None) -> World:
    parameters = protocol_parameters(case.protocol, case.parameters)

    def make(again: Rewind | None) -> World:
        if notes is not None:
            notes.messages.clear()
        return World(setting_of(case), case.protocol, parameters, observer=notes, again=again)

    return run_exactly(make, lambda world: engine_for(ENGINES[form], world))


def _left(world: World) -> tuple[Any, ...]:
    """States, charges and verified epsilons after a run."""
    states = [(name, block.values.tobytes()) for name, block in world.state.agent.items()]
    charges = world.ledger.to_frame().to_json()
    epsilons = [
        world.ledger.epsilon(which, DELTA).tolist()
        for which in ("basic_composition", "advanced_composition", "verified")
    ]
    epsilons.append(world.ledger.epsilon("claimed", DELTA / 10).tolist())
    return (*states, charges, world.updates.tolist(), *epsilons)
