"""Contract tests for protocols, shipped so that authors of plug-ins can call them.

>>> from hushnet.protocols.algorithms.baselines import Local
>>> from hushnet.simulator.contract import check_contract
>>> check_contract(Local, {})
()
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.errors import LimitReached, Undeclared
from ...protocols.base import Protocol, ProtocolParameters, Sent
from ...protocols.privacy.mechanisms import noises
from ...protocols.steps.declarations import POST_PROCESSING
from ...protocols.steps.single_steps import PHASES, function_in
from ...protocols.steps.step_charges import ScaleMismatch
from ..network.latency import Constant
from ..network.network import NetworkParameters
from .bench import Bench, protocol_parameters, run_small
from .draws import difference
from .engine_checks import check_engines
from .networks import check_networks
from .replay import check_listed
from .small_settings import AGENTS, SEED, disturb, holds_columns, split_setting
from .small_worlds import check_replay
from .violation import ContractViolation

Seen = Callable[[Bench, int], list[NDArray[np.float64]]]
SHARED = (
    "made again, it differs, too, so something has changed that its steps share, such as a counter of the class or a "
    "generator of its own; keep what changes in blocks, and draw by uniform, normal or choice"
)


def check_contract(protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters) -> tuple[str, ...]:
    """Run every contract test on a protocol.

    Parameters
    ----------
    parameters : mapping or ProtocolParameters
        Its parameters; ``kind`` may be left out.

    Returns
    -------
    tuple of str
        Networks that the protocol does not run on, and why (see `check_networks`).

    Raises
    ------
    ContractViolation
        If a start or a step reads or writes what is not its own, a message marked public depends on data, a message
        marked noisy does not depend on noise, constants of a private protocol come from data that are not listed as
        assumed public, zero noise differs from no noise, a run fails on some network, planned steps differ from those
        that are made one by one or depend on who is in their batch, the engines disagree, a run on neighbouring data
        cannot be led along the same transcript, its releases name another scale than the noise that its planned steps
        draw, or a step does something else than is declared.
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
    check_starts(protocol, checked)
    check_locality(protocol, checked)
    check_public_messages(protocol, checked)
    check_noisy_messages(protocol, checked)
    check_constants(protocol, checked)
    refused = check_networks(protocol, checked)
    check_zero_noise(protocol, checked)
    check_engines(protocol, checked)
    check_replay(protocol, checked)
    return refused


def check_starts(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A start reads nothing of what others have, unless the protocol says that starts are computed centrally.

    What a protocol knows before, it has read while it prepared (see `check_constants`).
    """
    if protocol.traits_for(parameters).central:
        return
    for changed in range(AGENTS):
        reference, other = Bench(protocol, parameters), Bench(protocol, parameters, changed=changed)
        agent = _first_that_differs(reference, other, _started, but=changed)
        if agent is not None:
            raise ContractViolation(f"start of agent {agent} depends on the data of agent {changed}")


def check_locality(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A step reads its own blocks, data and inbox, and writes its own blocks; nothing else.

    What everybody else has, and does before it, makes no difference.
    """
    for agent in range(AGENTS):
        names = [name for name, _ in Bench(protocol, parameters).steps(agent)]
        for rank, name in enumerate(names):
            reference, disturbed = Bench(protocol, parameters), Bench(protocol, parameters)
            disturbed.disturb_all_but(agent, np.random.default_rng(SEED + 1))
            disturbed.step_all_but(agent)
            before = disturbed.everything_else(agent)
            global_draws = _global_draws()
            sent = [list(bench.steps(agent))[rank][1]() for bench in (reference, disturbed)]
            if _global_draws() != global_draws:
                raise ContractViolation(
                    f"{name} of agent {agent} draws from np.random, which no rerun repeats; draw by uniform, normal or "
                    "choice"
                )
            after = disturbed.everything_else(agent)
            for what, array in before.items():
                if not _same(array, after[what]):
                    gap = difference(array.reshape(-1), after[what].reshape(-1))
                    raise ContractViolation(f"{name} of agent {agent} writes what is not its own: {what}, {gap}")
            try:
                _check_alike(f"{name} of agent {agent}", (reference, disturbed), sent, agent)
            except ContractViolation as found:
                again = Bench(protocol, parameters)
                repeated = list(again.steps(agent))[rank][1]()
                if not _equal(_came_to(reference, agent, sent[0]), _came_to(again, agent, repeated)):
                    raise ContractViolation(f"{found}; {SHARED}") from None
                raise


def _came_to(bench: Bench, agent: int, sent: list[Sent]) -> list[NDArray[np.float64]]:
    """Return the agent's blocks after a step, and the vectors that the step has sent."""
    return [*bench.owned(agent).values(), *(one.vector for one in sent)]


def _global_draws() -> bytes:
    """Return the state of NumPy's global random generator, as bytes to compare."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002 - to see whether others draw from it


def _check_alike(who: str, benches: tuple[Bench, Bench], sent: list[list[Sent]], agent: int) -> None:
    """A step has to come to the same on two benches."""
    mine, theirs = (bench.owned(agent) for bench in benches)
    for block in mine:
        _check_number(f"{who} sets {block} to", mine[block])
        if not _same(mine[block], theirs[block]):
            raise ContractViolation(
                f"{who} sets {block} from something outside its own data, state and inbox: "
                f"{difference(mine[block].reshape(-1), theirs[block].reshape(-1))}"
            )
    _check_own(f"{who} sends", *sent)


def _check_own(who: str, reference: list[Sent], disturbed: list[Sent]) -> None:
    """Check that an agent sends the same when others' state differs."""
    kinds = [[one.kind for one in sent] for sent in (reference, disturbed)]
    if kinds[0] != kinds[1]:
        raise ContractViolation(f"{who} {kinds[0]} or {kinds[1]}, by something that is not its own")
    for one, other in zip(reference, disturbed, strict=True):
        _check_number(f"{who} {one.kind!r},", one.vector)
        if not _same(one.vector, other.vector):
            gap = difference(one.vector, other.vector)
            raise ContractViolation(f"{who} {one.kind!r}, something that is not its own: {gap}")


def _check_number(what: str, values: NDArray[np.float64]) -> None:
    """Nothing that a step computes may be NaN."""
    if np.isnan(values).any():
        place = int(np.flatnonzero(np.isnan(values.reshape(-1)))[0])
        raise ContractViolation(f"{what} what is not a number (NaN), coordinate {place}")


def check_methods(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A protocol that exchanges pairwise has all three functions of an exchange."""
    if protocol.traits_for(parameters).exchange == "pairwise":
        for name in PHASES:
            if function_in(protocol, name) is None:
                raise ContractViolation(f"{protocol.__name__} exchanges pairwise, but has no function {name}")


def check_public_messages(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A message with a public release stays the same when the sender's data change.

    What follows from a noisy value that the same step has disclosed, or from rows that were perturbed before the start,
    is what noise has made of the data: what steps may say of that is left to the replay, which puts the same noisy
    values in both runs.
    """
    reference, other = (Bench(protocol, parameters, draw_seed=other).data for other in (None, SEED + 1))
    perturbed = [not _same(one.features, two.features) for one, two in zip(reference, other, strict=True)]
    for agent in range(AGENTS):
        benches = [Bench(protocol, parameters, changed=changed) for changed in (None, agent)]
        _check_public(
            "start", agent, *(bench.started[agent] for bench in benches), noisy=benches[0].perturbed[agent] > 0
        )
        names = [name for name, _ in Bench(protocol, parameters).steps(agent)]
        for rank, name in enumerate(names):
            reference, changed = Bench(protocol, parameters), Bench(protocol, parameters)
            if not perturbed[agent]:
                disturb(changed.data[agent], np.random.default_rng(SEED + 2))
            disturb(changed.task.train.shard(agent), np.random.default_rng(SEED + 2))
            before = reference.perturbed[agent]
            sent = [list(bench.steps(agent))[rank][1]() for bench in (reference, changed)]
            _check_public(name, agent, *sent, noisy=reference.perturbed[agent] > before)


def _check_public(name: str, agent: int, reference: list[Sent], changed: list[Sent], *, noisy: bool) -> None:
    """Check that messages released as public do not depend on the data, unless they follow from noisy values."""
    for one, other in zip(reference, changed, strict=False):
        if noisy and one.release.reason == POST_PROCESSING:
            continue
        if one.release.free and not np.array_equal(one.vector, other.vector):
            raise ContractViolation(
                f"{name} of agent {agent} sends {one.kind!r} as public ({one.release.reason}), "
                f"but it depends on the agent's data: {difference(one.vector, other.vector)}"
            )


def check_noisy_messages(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A message with a noisy release is another one when other noise is drawn."""
    for agent in range(AGENTS):
        reference, other = (Bench(protocol, parameters, draw_seed=other) for other in (None, SEED + 3))
        _check_noisy("start", agent, reference.started[agent], other.started[agent])
        for (name, one), (_, two) in zip(reference.steps(agent), other.steps(agent), strict=True):
            _check_noisy(name, agent, one(), two())


def _check_noisy(name: str, agent: int, reference: list[Sent], other: list[Sent]) -> None:
    """Check that messages released as noisy depend on the noise that is drawn."""
    for one, two in zip(reference, other, strict=False):
        if one.release.scale > 0 and np.array_equal(one.vector, two.vector):
            raise ContractViolation(
                f"{name} of agent {agent} sends {one.kind!r} as released with {one.release.mechanism} noise of scale "
                f"{one.release.scale:g}, but it does not depend on any"
            )


def check_constants(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """Constants of a private protocol from agents' data are listed among what is assumed public, each by name.

    What agents prepare together, each from its own data, is compared by replay.
    """
    prepared = Bench(protocol, parameters)
    if prepared.protocol.privacy is None or prepared.traits.central:
        return
    check_listed(prepared.constants, prepared.protocol.assumed_public)
    for changed in range(AGENTS):
        reference = Bench(protocol, parameters)
        other = Bench(protocol, parameters, changed=changed, prepared=True, constants=reference.constants)
        agent = _first_that_differs(reference, other, _doings, but=changed)
        if agent is not None:
            raise ContractViolation(
                f"what agent {agent} does depends on constants that come from the data of agent {changed}; take them "
                "from problem.assumed(name, value) and list the name in assumed_public"
            )


def _first_that_differs(reference: Bench, other: Bench, seen: Seen, *, but: int) -> int | None:
    """The first agent, but for one, for whom something that is seen of it differs between two benches."""
    for agent in range(AGENTS):
        if agent != but and not _equal(seen(reference, agent), seen(other, agent)):
            return agent
    return None


def _started(bench: Bench, agent: int) -> list[NDArray[np.float64]]:
    """Return the vectors that an agent sent at its start, and its blocks after it."""
    return [one.vector for one in bench.started[agent]] + list(bench.owned(agent).values())


def _doings(bench: Bench, agent: int) -> list[NDArray[np.float64]]:
    """Return the vectors that an agent sends at its start and in every kind of step, and its blocks after each."""
    vectors = _started(bench, agent)
    for _, step in bench.steps(agent):
        vectors += [one.vector for one in step()] + list(bench.owned(agent).values())
    return vectors


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


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return np.array_equal(one, other, equal_nan=True)


def _equal(one: list[NDArray[np.float64]], other: list[NDArray[np.float64]]) -> bool:
    return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))


def _same_state(one: State, other: State) -> bool:
    pairs = [(one.agent, other.agent), (one.edge, other.edge)]
    return all(a[name].values.tobytes() == b[name].values.tobytes() for a, b in pairs for name in a)
