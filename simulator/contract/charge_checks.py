"""Check that draws of noise and privacy costs match one to one, and that whoever sends without noise is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...protocols.privacy.mechanisms import mechanism_of
from ...protocols.privacy.mechanisms.release import noise_multiplier
from ..world.world import World
from .draws import Draw, protects_nothing
from .transcript import Recording
from .violation import ContractViolation

Distribution = tuple[str, float, float]
"""Mechanism, multiplier (to 12 digits) and sampling: what the cost of a release depends on."""


def check_charges(world: World, recording: Recording) -> None:
    """Every draw of noise is charged for, with its own multiplier and sampling, and every charge for noise has a draw.

    Identical values drawn twice are one. An agent that said nothing afterwards owes nothing, unless nobody ever says
    anything in this protocol, so that models are all that is released. Raises `ContractViolation`.
    """
    _check_plain(world, recording)
    spoke = {step.agent for step in recording.steps if step.phase != "start" and step.sent}
    for agent in range(world.setting.graph.agents):
        draws = [draw for draw in recording.draws[agent] if not protects_nothing(draw.release)]
        made, distinct = _counted(draws), _counted({draw.noisy.tobytes(): draw for draw in draws}.values())
        charged = _charged(world, agent)
        heard = agent in spoke and len(world.setting.graph.neighbours(agent))
        if not charged and not heard and world.layout.messages:
            continue
        who = recording.agent(agent)
        if len(draws) < len(recording.draws[agent]) and not exposed(world, agent):
            raise ContractViolation(
                f"{who} has drawn noise for an unbounded sensitivity and was not charged for it; send what was "
                "perturbed under its own release, or charge it by me.disclose"
            )
        if not distinct.total() <= charged.total() <= made.total():
            raise ContractViolation(
                f"{who} has drawn noise {distinct.total()} times and was charged for {charged.total()} releases; "
                "send what was perturbed under its own release, or charge it by me.disclose"
            )
        for distribution in made | charged:
            if not distinct[distribution] <= charged[distribution] <= made[distribution]:
                mechanism, multiplier, sampling = distribution
                raise ContractViolation(
                    f"{who} has drawn {mechanism} noise of multiplier {multiplier:g} and sampling {sampling:g} "
                    f"{distinct[distribution]} times and was charged for {charged[distribution]} such releases"
                )


def _check_plain(world: World, recording: Recording) -> None:
    """Whoever says something that protects nothing is charged for it."""
    graph = world.setting.graph
    said = (step for step in recording.steps if step.phase != "start" and len(graph.neighbours(step.agent)))
    plain = {step.agent for step in said if any(protects_nothing(sent.release) for sent in step.sent)}
    for agent in sorted(plain):
        if not exposed(world, agent):
            raise ContractViolation(f"{recording.agent(agent)} sends something without noise and is not charged for it")


def exposed(world: World, agent: int) -> bool:
    """True if an agent was charged for a release that protects nothing."""
    return any(charge.multiplier == 0 for charge in world.ledger.histogram(agent))


def _counted(draws: Iterable[Draw]) -> Counter[Distribution]:
    # Not release.multiplier: what everybody reads is what is to be checked.
    releases = [draw.release for draw in draws]
    multipliers = [noise_multiplier(one.scale, one.verified_sensitivity) for one in releases]
    pairs = zip(releases, multipliers, strict=True)
    return Counter(_rounded(one.mechanism, multiplier, one.sampling) for one, multiplier in pairs)


def _charged(world: World, agent: int) -> Counter[Distribution]:
    """Count an agent's charges for noise that protects something, by mechanism, multiplier and sampling."""
    found: Counter[Distribution] = Counter()
    for charge, count in world.ledger.histogram(agent).items():
        if charge.multiplier > 0 and mechanism_of(charge.mechanism).noisy:
            found[_rounded(charge.mechanism, charge.multiplier, charge.sampling)] += count
    return found


def _rounded(mechanism: str, multiplier: float, sampling: float) -> Distribution:
    return mechanism, float(f"{multiplier:.12g}"), float(f"{sampling:.12g}")
