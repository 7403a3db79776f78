"""Contract tests for protocols, shipped so that authors of plug-ins can call them.

>>> from hushnet.protocols.algorithms.baselines import Local
>>> from hushnet.simulator.contract import check_contract
>>> check_contract(Local, {})
()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...agents.blocks import State
from ...agents.errors import LimitReached, Undeclared
from ...protocols.base import Protocol, ProtocolParameters
from ...protocols.privacy.mechanisms import noises
from ...protocols.steps.single_steps import PHASES, function_in
from ...protocols.steps.step_charges import ScaleMismatch
from ..network.latency import Constant
from ..network.network import NetworkParameters
from .bench import holds_columns, protocol_parameters, run_small, split_setting
from .engine_checks import check_engines
from .networks import check_networks
from .own_checks import check_own
from .small_worlds import check_replay
from .violation import ContractViolation


def check_contract(protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters) -> tuple[str, ...]:
    """Run every contract test on a protocol with these parameters, of which ``kind`` may be left out.

    It returns networks that the protocol does not run on, and why (see `check_networks`).

    Raises `ContractViolation` if a start or a step reads or writes what is not its own, a message marked public depends
    on data, constants of a private protocol come from data that are not listed as assumed public, zero noise differs
    from no noise, a run fails on some network, planned steps differ from those that are made one by one or depend on
    who is in their batch, the engines disagree, a run on neighbouring data cannot be led along the same transcript, its
    releases name another scale than the noise that its planned steps draw, or a step does something else than is
    declared.
    """
    try:
        return _checked(protocol, protocol_parameters(protocol, parameters))
    except (ScaleMismatch, Undeclared) as mismatch:
        raise ContractViolation(str(mismatch)) from mismatch


def _checked(protocol: type[Protocol], checked: ProtocolParameters) -> tuple[str, ...]:
    check_methods(protocol, checked)
    if holds_columns(protocol, checked):
        refused = check_networks(protocol, checked, small=split_setting)
        check_replay(protocol, checked)
        return refused
    check_own(protocol, checked)
    refused = check_networks(protocol, checked)
    check_zero_noise(protocol, checked)
    check_engines(protocol, checked)
    check_replay(protocol, checked)
    return refused


def check_methods(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A protocol that exchanges pairwise has all three functions of an exchange."""
    if protocol.traits_for(parameters).exchange == "pairwise":
        for name in PHASES:
            if function_in(protocol, name) is None:
                raise ContractViolation(f"{protocol.__name__} exchanges pairwise, but has no function {name}")


def check_zero_noise(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """Noise of multiplier 0 gives the plain protocol, bit for bit."""
    if "privacy" not in type(parameters).model_fields:
        return
    fields = {name: getattr(parameters, name) for name in sorted(parameters.model_fields_set - {"privacy"})}
    plain = type(parameters).model_validate(fields)
    network = NetworkParameters()
    try:
        reference = run_small(protocol, plain)
    except LimitReached:
        network = NetworkParameters(latency=Constant(kind="constant", value=1.0))
        reference = run_small(protocol, plain, network=network)
    for mechanism in noises():
        zero = {"mechanism": mechanism, "multiplier": 0.0, "sensitivity": "claimed"}
        silent = run_small(protocol, type(parameters).model_validate({**fields, "privacy": zero}), network=network)
        if not _same_state(reference.state, silent.state):
            raise ContractViolation(f"{mechanism} noise of multiplier 0 differs from the protocol without noise")


def _same_state(one: State, other: State) -> bool:
    pairs = [(one.agent, other.agent), (one.edge, other.edge)]
    return all(a[name].values.tobytes() == b[name].values.tobytes() for a, b in pairs for name in a)
