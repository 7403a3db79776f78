"""Statement of what a run claims about its agents' privacy, what was verified, and why the two differ."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..world.world import World

TABLES = (
    "the results' own tables (trace, agents, objectives, accuracies): they are computed from raw data, without noise"
)
SHARED_NOISE = (
    "a second run of the same seed: runs of one seed share their noise, so that their epsilons do not add (of two "
    "noise scales the difference gives exact gradients back); publish at most one of them"
)
KEPT = "the models that are judged: the parties keep theirs and release none of them"
UNSEEN = (
    "what no replay can show: raw data that a protocol of your own takes as public by problem.assumed(...), and "
    "deliberate fraud of a plug-in, which behaves while it is replayed"
)
"""What no epsilon covers, in words that begin with what it is."""


def not_covered(*, model_released: bool, replayed: bool) -> list[str]:
    """List what the epsilon of a run does not cover.

    Models that are judged may follow from what was released; an epsilon rests on a replay if the protocol is custom.
    """
    return [TABLES, *([] if model_released else [KEPT]), SHARED_NOISE, *([UNSEEN] if replayed else [])]


def privacy_statement(
    world: World, verified_by: Literal["construction", "replay"]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return what a run claims and what can be verified at its end, for its worst agent, and warnings about it.

    There is no statement without noise. ``claimed`` and ``verified`` are the largest over the agents whose data the
    noise is to protect; ``because`` says why ``verified`` is infinite, where it is, and ``verified_by``, what it rests
    on otherwise, is None there. Where only one role is protected, ``role`` names it and ``unprotected`` says, by role,
    what the others reveal. ``unit`` and ``adjacency`` say between what data sets epsilon holds, and ``observer``
    against whom. ``not_covered`` says what may not be published on the strength of it.
    """
    privacy = world.protocol.privacy
    if privacy is None or not world.private:
        return None, []
    delta, protected = privacy.reported_delta, world.protected
    claimed = float(world.ledger.epsilon("claimed", delta)[protected].max())
    verified = float(world.ledger.epsilon("verified", delta)[protected].max())
    inside = np.flatnonzero(protected).tolist()
    common = "".join(f", {part} in common" for part in world.protocol.shared_parts)
    statement = {
        "mechanism": privacy.mechanism,
        "sensitivity": privacy.sensitivity,
        "claimed": claimed,
        "claimed_by": privacy.claimed_by,
        "verified": verified,
        "verified_by": verified_by if np.isfinite(verified) else None,
        "because": list(world.ledger.unverified(inside)),
        "delta": delta,
        "flagged": bool(claimed < verified * (1 - 1e-6)),
        "strict": privacy.strict,
        "assumed_public": list(world.assumed_public),
        "unit": list(world.ledger.units(inside)),
        "adjacency": [f"{each}{common}" for each in world.ledger.adjacencies(inside)],
        "observer": world.protocol.observer,
        "not_covered": not_covered(model_released=world.protocol.model_released, replayed=verified_by == "replay"),
    }
    outside = world.honest & ~protected
    if outside.any():
        statement |= {"role": world.protocol.protects, "unprotected": _unprotected(world, outside)}
    units = statement["unit"]
    unit = next((one for one in units if one != "record"), "record")
    return statement, delta_warnings(delta, world.setting.task.train.counts, unit)


def _unprotected(world: World, outside: NDArray[np.bool_]) -> dict[str, list[str]]:
    """List by role what honest agents outside the protected role reveal without noise."""
    roles = world.layout.roles
    assert roles is not None
    found: dict[str, list[str]] = {}
    for agent in np.flatnonzero(outside).tolist():
        reasons = found.setdefault(roles[agent], [])
        reasons += [reason for reason in world.ledger.unverified([agent]) if reason not in reasons]
    return found


def delta_warnings(delta: float, counts: NDArray[np.int64], unit: str) -> list[str]:
    """List in a sentence why a delta in [0, 1) is too large to promise anything, if it is, by agents' records."""
    records, agents = int(counts.max(initial=0)), len(counts)
    if unit == "agent":
        if delta * agents < 1:
            return []
        where = f"1/n for n = {agents} agents"
        allowed = "all records of an agent in full"
    elif delta * records >= 1:
        where = f"1/m for the agent with the most records (m = {records})"
        allowed = "one record in full" if unit == "record" else f"all of a {unit} with that probability"
    else:
        return []
    return [f"delta {delta:g} is not below {where}: publishing {allowed} would satisfy it"]
