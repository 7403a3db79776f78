"""Tier B: pairs of neighbouring data sets, replayed in the scenario's own first world.

Every pair is run on D and then on D' along the same transcript (`hushnet.simulator.contract.replay`): what leaves an
agent has to be the same, and what differs is the exact value under each noise. Its size, over what was charged, is the
realised sensitivity; draws of noise have to be as many as were charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

import numpy as np

from ..contract.neighbours import Domain
from ..contract.replay import Inadmissible, Noted
from ..contract.violation import ContractViolation
from ..world.world import World
from .pairs import Pair, pairs
from .worlds import Subject

EXCESS = 1e-6
"""What a realised change may be above the sensitivity charged for, in relation to it, however it came about."""


@dataclass(frozen=True)
class ReplayedPair:
    """Result of replaying one pair of neighbouring data sets."""

    pair: Pair
    verified: float = math.nan
    claimed: float = math.nan
    """`verified` and `claimed`: Epsilons of the attacked agent, at the subject's delta; NaN where the run itself
    failed."""
    draws: int = 0
    charges: int = 0
    """`draws` and `charges`: Number of draws of noise for the attacked agent's releases, and of releases that it was
    charged for."""
    ratio: float = math.nan
    """The largest realised change over the sensitivity charged for; NaN without releases of a finite one."""
    power: float = 0.0
    """Root of the sum over releases of (l2 norm of the realised change / noise scale)^2: how well the pair can be told
    apart."""
    held: bool = False
    """Whether constants that the protocol prepares had to be held fixed, because they come from the data and count as
    public."""
    failure: str = ""
    """Description of the failure; empty if there is none."""


def replay_pairs(
    subject: Subject, order: list[int], count: int, domain: Domain, *, whole: bool = False
) -> list[ReplayedPair]:
    """Replay so many candidates at most for the worst pair; those that the protocol refuses are left out.

    Of the ordered agents, two pairs of three are about the first, the rest about the others in turn; `whole` as of
    `pairs`.
    """
    first = pairs(subject.task, order[0], domain, whole=whole)
    others = (pair for agent in order[1:] for pair in islice(pairs(subject.task, agent, domain, whole=whole), 1))
    mixed = filter(None, chain.from_iterable(zip_longest(first, first, others)))
    admissible = filter(None, (replayed(subject, pair) for pair in mixed))
    return list(islice(admissible, count))


def replayed(subject: Subject, pair: Pair) -> ReplayedPair | None:
    """Run a subject on D, and on D' along the same transcript; None if it refuses the data."""
    try:
        noted = Noted(subject.made, subject.on(pair.data))
    except ContractViolation as error:
        return ReplayedPair(pair, failure=str(error))
    held, failure = False, ""
    try:
        _, held = noted.force(pair.neighbour, [pair.agent])
    except ContractViolation as error:
        failure = str(error)
    except Inadmissible:
        return None
    before = noted.recording.draws[pair.agent]
    forced = noted.forced if noted.forced is not None and not failure else subject.led(pair.neighbour, noted.recording)
    after = forced.draws[pair.agent]
    ratios, powers = [math.nan], 0.0
    for one, other in zip(before, after, strict=False):
        charged = one.release.verified_sensitivity
        ratios += [one.change(other) / charged] if 0 < charged < math.inf else []
        powers += (float(np.linalg.norm(other.exact - one.exact)) / one.release.scale) ** 2
    ledger, agent = noted.world.ledger, pair.agent
    ratio = float(np.nanmax(ratios)) if len(ratios) > 1 else math.nan
    if not failure and ratio > 1 + EXCESS:
        failure = f"an exact value moves by {ratio:.9g} of the sensitivity that is charged for"
    return ReplayedPair(
        pair,
        verified=float(ledger.verified(subject.delta)[agent]),
        claimed=float(ledger.epsilon("claimed", subject.delta)[agent]),
        draws=len(before),
        charges=ledger.releases(agent),
        ratio=ratio,
        power=math.sqrt(powers),
        held=held,
        failure=failure,
    )


def attacked(world: World, delta: float) -> list[int]:
    """Protected agents that made releases, those with the largest verified epsilon first, then by the claimed one."""
    verified, claimed = world.ledger.verified(delta), world.ledger.epsilon("claimed", delta)
    inside = [i for i in np.flatnonzero(world.protected).tolist() if world.ledger.releases(i)]
    return sorted(inside, key=lambda agent: (-verified[agent], -claimed[agent], agent))
